/*
 * Reports while no controller can work, and again when one can: the built controllers with a real Redis, Postgres and API server. No row of a table
 * may look as if all were well while nobody looks.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type LocalPlegwatch,
  type PlegwatchSettings,
  startPlegwatch,
} from '../../devtools/localServices/plegwatch.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { PLEG_REPORTS } from '../../src/kube/object.ts';
import { CLI } from '../support/build.ts';
import { needs } from '../support/needs.ts';
import { conditionsOf } from '../support/plegreports.ts';
import { answerOf, CLUSTER } from '../support/system.ts';
import { SystemBed } from '../support/systemBed.ts';
import { WITHIN_MS, waitFor } from '../support/waitFor.ts';

const NODE = 'worker-1';
const LEASED: PlegwatchSettings = { lease: 'default/plegwatch-controller' };
const WRONG_PASSWORD = /:[^:@/]+@/;

needs(
  'redis-server',
  'postgres',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('reports', () => {
  const bed = new SystemBed({ kube: true, controller: LEASED });
  let controllers: LocalPlegwatch[] = [];
  let runtime: SimulatedRuntime;

  beforeAll(async () => {
    controllers = [bed.controller, await bed.system.controller(LEASED)];
    await bed.system.addNode(NODE);
    runtime = await startSimulatedRuntime({ socket: bed.system.folder('cri.sock') });
    await bed.watch(NODE, runtime.socket);
    await saysWhatIsSo();
  });
  afterAll(() => runtime?.stop());

  test('reports of controllers that have lost Postgres say that the present is unknown, keep what is history, and then what is so again', async () => {
    const { agent } = await status();
    await bed.system.postgres.kill();
    const killedAt = Date.now();
    const unknown = await saysUnknown();
    expect(unknown).toMatchObject({ agent });
    expect(Date.parse(String(unknown['observedAt']))).toBeLessThanOrEqual(killedAt);
    expect(await bed.system.kubectl('get', 'pleg', NODE)).toMatch(
      /^worker-1 +Unknown +Unknown +.* Unknown +/m,
    );
    await bed.system.postgres.restart();
    await saysWhatIsSo();
  });

  test('say nothing of a controller that cannot start while another one leads', async () => {
    expect(await startWith(wrongPassword())).toContain('DATABASE_');
    await saysWhatIsSo();
  });

  test('say that the present is unknown when the schema becomes incompatible with the controllers, which end, until one that fits leads', async () => {
    await bed.system.sql(`INSERT INTO store.migration VALUES (9999, '', 9999)`);
    await waitFor('both have ended', () => controllers.every((each) => !each.running()), WITHIN_MS);
    await saysUnknown();
    for (const each of controllers) expect(each.log()).toContain('MIGRATION_MISMATCH');
    await bed.system.sql('DELETE FROM store.migration WHERE number = 9999');
    controllers = [await bed.system.controller(LEASED)];
    await saysWhatIsSo();
  });

  test('say that the present is unknown if the only controller ends at its start, and then what is so again', async () => {
    await stopControllers();
    expect(await startWith(wrongPassword())).toContain('DATABASE_');
    await saysUnknown();
    controllers = [await bed.system.controller(LEASED)];
    await saysWhatIsSo();
  });

  test('say that the present is unknown while a controller that starts waits for Postgres, which then needs no other start', async () => {
    await stopControllers();
    await bed.system.postgres.kill();
    const waiting = await bed.system.controller(LEASED);
    controllers = [waiting];
    const { pid } = waiting;
    await saysUnknown();
    expect(await answerOf(waiting, '/readyz')).toMatchObject({
      status: 503,
      body: expect.stringMatching(/^not ok start: Postgres at .* cannot be reached/),
    });
    await bed.system.postgres.restart();
    await saysWhatIsSo();
    await waitFor('it is ready', async () => (await waiting.ask('/readyz'))?.status === 200, WITHIN_MS);
    expect([waiting.pid, waiting.running()]).toEqual([pid, true]);
  });

  test('a controller that waits for Postgres ends at once when it is stopped', async () => {
    await stopControllers();
    await bed.system.postgres.kill();
    const waiting = await bed.system.controller(LEASED);
    await waiting.kill('SIGTERM');
    await waitFor('it has ended', () => !waiting.running(), WITHIN_MS);
    expect(waiting.log()).not.toContain('the controller cannot work');
    await bed.system.postgres.restart();
  });

  const stopControllers = async () => {
    for (const controller of controllers.splice(0)) await controller.stop();
  };
  const wrongPassword = () => bed.system.controllerUrl.replace(WRONG_PASSWORD, ':wrong@');

  /** The error with which a controller ends. */
  const startWith = async (databaseUrl: string): Promise<string> => {
    const { api, redis } = bed.system;
    const settings = { ...LEASED, cluster: CLUSTER, databaseUrl, kubeconfig: api.kubeconfig };
    try {
      const controller = await startPlegwatch({
        cli: CLI,
        command: 'controller',
        settings: { ...settings, redisUrl: redis.urlOf('controller') },
      });
      await controller.stop();
      return 'it started';
    } catch (error) {
      return String(error);
    }
  };

  async function status(): Promise<Readonly<Record<string, unknown>>> {
    const report = await bed.system.kube.get(PLEG_REPORTS, NODE);
    return { ...Object(report?.['status']) };
  }

  const statusWith = (what: string, ready: string): Promise<Readonly<Record<string, unknown>>> =>
    waitFor(
      what,
      async () => {
        const report = await bed.system.kube.get(PLEG_REPORTS, NODE);
        return conditionsOf(report).get('Ready') === ready ? status() : undefined;
      },
      WITHIN_MS,
    );

  const saysWhatIsSo = () => statusWith('the report says what is so', 'True');
  const saysUnknown = () => statusWith('the report says that the present is unknown', 'Unknown');
});
