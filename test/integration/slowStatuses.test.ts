/*
 * Which pod or container makes relists hang, with the built programs. A runtime that never answers for the status of one sandbox, and a kubelet
 * whose relists hang (kubernetes#93886); a runtime that holds the lock of one container's status, so that ListContainers hangs (containerd#12680); one
 * that answers all but ListPodSandbox; and a node without free processors.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { run, startProcess } from '../../devtools/localServices/process.ts';
import { type CriProxy, startCriProxy } from '../../devtools/simulator/proxy.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { CLI } from '../support/build.ts';
import {
  type Authority,
  FakeKubelet,
  makeAuthority,
  metricsText,
  plain,
  removeAuthority,
} from '../support/fakeKubelet.ts';
import { needs } from '../support/needs.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { CLUSTER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const NODE = 'node-1';
/** A minute may end just before the status hangs, and on a busy machine other statuses are slow as well. */
const WITHIN_MS = 900_000;
/** More than a tenth of a minute. */
const STALL_US = 15_000_000;

let system: System;
let authority: Authority;
let runtime: SimulatedRuntime;
let kubelet: FakeKubelet;
let proxy: CriProxy;

needs('redis-server', 'postgres')('the pod that makes relists hang', () => {
  beforeAll(async () => {
    authority = makeAuthority();
    kubelet = await FakeKubelet.start(authority);
    system = await System.start({ kube: false });
    runtime = await startSimulatedRuntime({ socket: system.folder('cri.sock'), seed: 1 });
    proxy = await startCriProxy({ upstream: runtime.socket, socket: system.folder('proxy.sock') });
    await system.controller();
  });
  afterAll(async () => {
    await system?.stop();
    await proxy?.stop();
    await runtime?.stop();
    await kubelet?.stop();
    removeAuthority(authority);
  });

  test('is named in SQL and in the timeline', { timeout: 2 * WITHIN_MS }, async () => {
    for (const name of ['web', 'db']) runtime.runPod({ name, namespace: 'shop', containers: ['app'] });
    const { sandbox } = runtime.runPod({ name: 'cart', namespace: 'shop', containers: ['app'] });
    runtime.core.hangingStatuses.add(sandbox.id);
    // It last relisted in 2023.
    kubelet.answer = plain(metricsText());
    const agent = await system.agent(NODE, runtime.socket, {
      kubeletUrl: kubelet.url.href,
      kubeletCaFile: authority.caFile,
      intervalScrape: '1s',
    });
    const named = await waitFor(
      'the pod is named',
      async () => {
        const rows = await system.sql(
          'SELECT * FROM plegwatch.status_checks WHERE container_id = $1 AND timed_out ORDER BY at LIMIT 1',
          sandbox.id,
        );
        return rows[0];
      },
      WITHIN_MS,
    );
    expect(named).toMatchObject({
      ...{ cluster: CLUSTER, node: NODE, pod_namespace: 'shop', pod_name: 'cart', pod_uid: sandbox.pod.uid },
      ...{ container_id: sandbox.id, container_name: null, is_sandbox: true, at: expect.any(Date) },
    });
    expect(Number(named['status_ms'])).toBeGreaterThanOrEqual(5_000);
    expect(Number(named['asked'])).toBeGreaterThanOrEqual(Number(named['slow']));
    const entries = await system.sql(
      `SELECT * FROM plegwatch.timeline($1, $2, '-infinity') WHERE kind = 'status' AND (epoch, seq) = ($3, $4)`,
      CLUSTER,
      NODE,
      named['epoch'],
      named['seq'],
    );
    expect(entries).toMatchObject([
      { at: named['at'], what: 'timed out', pod: 'shop/cart', container_id: sandbox.id },
    ]);
    await system.end(agent);
    await system.expectNoDifference();
  });

  test('a container that holds up ListContainers is named by report, SQL, timeline and verdict while it hangs, and by none once it does not', {
    timeout: 2 * WITHIN_MS,
  }, async () => {
    const node = 'node-2';
    runtime.core.hangingStatuses.clear();
    for (let i = 0; i < 20; i += 1)
      runtime.runPod({ name: `web-${i}`, namespace: 'shop', containers: ['app'] });
    const { containers } = runtime.runPod({ name: 'held', namespace: 'shop', containers: ['app'] });
    const [culprit = ''] = containers.map(({ id }) => id);
    kubelet.answer = plain(metricsText());
    const agent = await system.agent(node, runtime.socket, {
      kubeletUrl: kubelet.url.href,
      kubeletCaFile: authority.caFile,
      relistPeriod: '1s',
      intervalScrape: '1s',
    });
    await waitFor('the container was listed', async () => (await minutesOf(node)).length > 0, WITHIN_MS);
    runtime.core.statusLocks.hold(culprit);
    const [hang] = await waitFor(
      'the container is named',
      async () => {
        const rows = await hangsOf(node);
        return rows[0]?.['verdict'] === 'container' ? rows : undefined;
      },
      WITHIN_MS,
    );
    expect(hang).toMatchObject({
      ...{ list_call: 'ListContainers', to_at: null, pod_namespace: 'shop', pod_name: 'held' },
      ...{ container_name: 'app', container_id: culprit, unanswered: 1 },
      why: 'ListContainers waits for this container, whose status does not answer; others answer',
    });
    expect(Number(hang?.['quick'])).toBeGreaterThan(0);
    const reported = await reportOf(node);
    expect(reported).toMatchObject({
      listHang: {
        call: 'ListContainers',
        verdict: 'Container',
        heldUpBy: 'shop/held/app',
        containerID: culprit,
      },
    });
    const [entry] = await system.sql(
      "SELECT * FROM plegwatch.timeline($1, $2, '-infinity') WHERE kind = 'hang'",
      ...[CLUSTER, node],
    );
    expect(entry).toMatchObject({ what: 'ListContainers', pod: 'shop/held', container: 'app', until: null });
    const [verdict] = await waitFor(
      'a minute in which the kubelet hung has a verdict',
      async () => {
        const rows = await system.sql(
          "SELECT * FROM plegwatch.pleg_verdicts WHERE node = $1 AND verdict = 'container'",
          node,
        );
        return rows.length > 0 ? rows : undefined;
      },
      WITHIN_MS,
    );
    expect(verdict).toMatchObject({ list_call: 'ListContainers', pod_name: 'held', container_name: 'app' });
    runtime.core.statusLocks.release(culprit);
    const [ended] = await waitFor(
      'the end of the hang is stored',
      async () => {
        const rows = await hangsOf(node);
        return rows[0]?.['to_at'] instanceof Date ? rows : undefined;
      },
      WITHIN_MS,
    );
    expect(ended).toMatchObject({ verdict: 'container', container_id: culprit });
    expect(await reportOf(node)).not.toHaveProperty('listHang');
    expect(await hangsOf(node)).toHaveLength(1);
    await system.end(agent);
    await system.expectNoDifference();
  });

  test('ListPodSandbox that hangs alone, while every status is answered, is the runtime, and no container or pod is named', {
    timeout: 2 * WITHIN_MS,
  }, async () => {
    const node = 'node-3';
    runtime.core.hangingStatuses.clear();
    for (const name of ['mail', 'news']) runtime.runPod({ name, namespace: 'shop', containers: ['app'] });
    const agent = await system.agent(node, proxy.socket, {
      kubeletUrl: kubelet.url.href,
      kubeletCaFile: authority.caFile,
      relistPeriod: '1s',
      intervalScrape: '1s',
    });
    await waitFor('the pods were listed', async () => (await minutesOf(node)).length > 0, WITHIN_MS);
    proxy.hold('ListPodSandbox');
    const hang = await waitFor(
      'every status was answered',
      async () => (await hangsOf(node)).find(({ verdict }) => verdict === 'none'),
      WITHIN_MS,
    );
    expect(hang).toMatchObject({
      ...{ list_call: 'ListPodSandbox', to_at: null, pod_name: null, container_id: null, unanswered: 0 },
      why: 'ListPodSandbox does not answer, but every status does',
    });
    expect(Number(hang['asked'])).toBeGreaterThanOrEqual(Number(hang['listed']));
    expect(await reportOf(node)).toMatchObject({
      listHang: { call: 'ListPodSandbox', verdict: 'None', heldUpBy: 'runtime' },
    });
    const entries = await system.sql(
      "SELECT * FROM plegwatch.timeline($1, $2, '-infinity') WHERE kind = 'hang'",
      ...[CLUSTER, node],
    );
    expect(entries).toMatchObject([{ what: 'ListPodSandbox', pod: null, container_id: null, until: null }]);
    const verdict = await waitFor(
      'a minute in which the kubelet hung has a verdict',
      async () =>
        (
          await system.sql(
            "SELECT * FROM plegwatch.pleg_verdicts WHERE node = $1 AND list_call = 'ListPodSandbox' AND why = $2",
            ...[node, hang['why']],
          )
        )[0],
      WITHIN_MS,
    );
    expect(verdict).toMatchObject({ verdict: 'runtime', pod_name: null, container_id: null });
    proxy.hold();
    const ended = await waitFor(
      'the end of the hang is stored',
      async () => {
        const rows = await hangsOf(node);
        return rows[0]?.['to_at'] instanceof Date ? rows : undefined;
      },
      WITHIN_MS,
    );
    expect(ended).toMatchObject([{ list_call: 'ListPodSandbox', verdict: 'none' }]);
    await system.end(agent);
    await system.expectNoDifference();
  });

  needs('pressure')('a node whose tasks wait for a processor', () => {
    test('is the verdict if its agent did not run either, by the pressure that the kernel reports', {
      timeout: 2 * WITHIN_MS,
    }, async () => {
      const node = 'node-4';
      // They run when nothing else does. The kernel weighs processors by their load: on each, one of them must always wait.
      const idlers = await Promise.all(
        Array.from({ length: 4 * availableParallelism() }, () =>
          startProcess({
            ...{ name: 'idler', command: 'chrt', logFile: system.folder('idlers.log') },
            args: ['--idle', '0', 'sh', '-c', 'while :; do :; done'],
          }),
        ),
      );
      try {
        const agent = await system.agent(node, proxy.socket, {
          kubeletUrl: kubelet.url.href,
          kubeletCaFile: authority.caFile,
          intervalScrape: '1s',
        });
        await waitFor('the pods were listed', async () => (await minutesOf(node)).length > 0, WITHIN_MS);
        const before = proxy.calls.get('ListContainers') ?? 0;
        proxy.hold('ListContainers');
        await waitFor('a list is under way', () => (proxy.calls.get('ListContainers') ?? 0) > before);
        const waited = waitedForProcessor();
        await freeze(agent.pid);
        await waitFor('tasks have waited for long', () => waitedForProcessor() > waited + STALL_US);
        proxy.hold();
        thaw(agent.pid);
        const verdict = await waitFor(
          'the minute has a verdict',
          async () =>
            (
              await system.sql(
                "SELECT * FROM plegwatch.pleg_verdicts WHERE node = $1 AND verdict = 'node'",
                node,
              )
            )[0],
          WITHIN_MS,
        );
        // A busy disk would be named first.
        expect(verdict['why']).toMatch(
          /^tasks of the node waited for its (processor|disk) for \d+ % of the time, and the agent did not run for \d+ %$/,
        );
        expect(Number(verdict['cpu_some'])).toBeGreaterThanOrEqual(0.9);
        await system.end(agent);
        await system.expectNoDifference();
      } finally {
        await Promise.all(idlers.map((idler) => idler.stop()));
      }
    });
  });

  /** The status, as `plegwatch report` prints it. */
  async function reportOf(node: string): Promise<unknown> {
    const args = ['report', '--node', node, '--output', 'json', '--database-url', system.postgres.url];
    const { items } = JSON.parse(await run(process.execPath, [CLI, ...args]));
    return items[0].status;
  }
  const hangsOf = (node: string) =>
    system.sql('SELECT * FROM plegwatch.list_hangs WHERE node = $1 ORDER BY from_at', node);
  const minutesOf = (node: string) =>
    system.sql('SELECT minute FROM plegwatch.relist_minutes WHERE node = $1 AND containers > 0', node);
});

/** For how long at least one task has waited, in microseconds. */
const waitedForProcessor = (): number =>
  Number(/^some .*total=(\d+)$/m.exec(readFileSync('/proc/pressure/cpu', 'utf8'))?.[1]);
