/*
 * Which pod makes relists hang (kubernetes#93886), with the built programs: a runtime that never answers for the status of one sandbox, and
 * a kubelet whose relists hang.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import {
  type Authority,
  FakeKubelet,
  makeAuthority,
  metricsText,
  plain,
  removeAuthority,
} from '../support/fakeKubelet.ts';
import { needs } from '../support/needs.ts';
import { CLUSTER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const NODE = 'node-1';
/** A minute may end just before the status hangs, and on a busy machine other statuses are slow as well. */
const WITHIN_MS = 900_000;

let system: System;
let authority: Authority;
let runtime: SimulatedRuntime;
let kubelet: FakeKubelet;

needs('redis-server', 'postgres')('the pod that makes relists hang', () => {
  beforeAll(async () => {
    authority = makeAuthority();
    kubelet = await FakeKubelet.start(authority);
    system = await System.start({ kube: false });
    runtime = await startSimulatedRuntime({ socket: system.folder('cri.sock'), seed: 1 });
    await system.controller();
  });
  afterAll(async () => {
    await system?.stop();
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
});
