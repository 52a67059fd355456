/*
 * What reports say while no controller can work, and that they say what is so again when one can: the built controllers with a real Redis, Postgres and
 * API server. No row of a table may look as if all were well while nobody looks.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type LocalPlegwatch,
  type PlegwatchSettings,
  startPlegwatch,
} from '../../devtools/localServices/plegwatch.ts';
import { startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { PLEG_REPORTS } from '../../src/kube/object.ts';
import { CLI } from '../support/build.ts';
import { needs } from '../support/needs.ts';
import { conditionsOf } from '../support/plegreports.ts';
import { CLUSTER, System } from '../support/system.ts';
import { WITHIN_MS, waitFor } from '../support/waitFor.ts';

const NODE = 'worker-1';
const LEASED: PlegwatchSettings = { lease: 'default/plegwatch-controller' };
const WRONG_PASSWORD = /:[^:@/]+@/;

let system: System;
let controllers: LocalPlegwatch[] = [];

const stops: (() => Promise<void>)[] = [];

needs(
  'redis-server',
  'postgres',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('reports', () => {
  beforeAll(async () => {
    system = await System.start({ kube: true });
    controllers = [await system.controller(LEASED), await system.controller(LEASED)];
    await system.addNode(NODE);
    const runtime = await startSimulatedRuntime({ socket: system.folder('cri.sock') });
    stops.push(() => runtime.stop());
    await system.agent(NODE, runtime.socket);
    await saysWhatIsSo();
  });
  afterAll(async () => {
    await system?.stop();
    for (const stop of stops) await stop();
  });

  test('of controllers that have lost Postgres say that the present is unknown, keep what is history, and then what is so again', async () => {
    const { agent } = await status();
    await system.postgres.kill();
    const killedAt = Date.now();
    const unknown = await saysUnknown();
    expect(unknown).toMatchObject({ agent });
    expect(Date.parse(String(unknown['observedAt']))).toBeLessThanOrEqual(killedAt);
    expect(await system.kubectl('get', 'pleg', NODE)).toMatch(/^worker-1 +Unknown +Unknown +.* Unknown +/m);
    await system.postgres.restart();
    await saysWhatIsSo();
  });

  test('say nothing of a controller that cannot start while another one leads', async () => {
    expect(await startsWith(system.controllerUrl.replace(WRONG_PASSWORD, ':wrong@'))).toContain('DATABASE_');
    await saysWhatIsSo();
  });

  test('say that the present is unknown if the only controller ends at its start, and then what is so again', async () => {
    for (const controller of controllers.splice(0)) await controller.stop();
    expect(await startsWith(system.controllerUrl.replace(WRONG_PASSWORD, ':wrong@'))).toContain('DATABASE_');
    await saysUnknown();
    await system.controller(LEASED);
    await saysWhatIsSo();
  });
});

/** The error with which a controller ends. */
const startsWith = async (databaseUrl: string): Promise<string> =>
  startPlegwatch({
    cli: CLI,
    command: 'controller',
    settings: {
      ...{ ...LEASED, cluster: CLUSTER, databaseUrl, kubeconfig: system.api.kubeconfig },
      redisUrl: system.redis.urlOf('controller'),
    },
  }).then(
    async (controller) => {
      await controller.stop();
      return 'it started';
    },
    (error: unknown) => String(error),
  );

async function status(): Promise<Readonly<Record<string, unknown>>> {
  const report = await system.kube.get(PLEG_REPORTS, NODE);
  return { ...Object(report?.['status']) };
}

async function statusWith(what: string, ready: string): Promise<Readonly<Record<string, unknown>>> {
  return waitFor(
    what,
    async () => {
      const report = await system.kube.get(PLEG_REPORTS, NODE);
      return conditionsOf(report).get('Ready') === ready ? status() : undefined;
    },
    WITHIN_MS,
  );
}

const saysWhatIsSo = () => statusWith('the report says what is so', 'True');
const saysUnknown = () => statusWith('the report says that the present is unknown', 'Unknown');
