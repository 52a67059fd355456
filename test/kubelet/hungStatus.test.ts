/*
 * Which pod makes a real kubelet's relist hang (kubernetes#93886): the status of one sandbox hangs in containerd itself. containerd asks the
 * shim for it, and the shim is frozen; lists do not need the shim. No proxy is between these programs.
 */
import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { SHIM_SANDBOXES } from '../../devtools/localServices/containerd.ts';
import { connectCri } from '../../devtools/simulator/criClient.ts';
import { needs } from '../support/needs.ts';
import { shimOf } from '../support/shims.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { waitFor } from '../support/waitFor.ts';

const NODE = 'hung-status';
/** A minute may end just before the status hangs, and on a busy machine other statuses are slow as well. */
const WITHIN_MS = 900_000;
/** A kubelet that last relisted longer ago than this hangs. */
const LONG_UNSEEN_MS = 10_000;

needs(...KUBELET_NEEDS, 'containerd-1.7')('the pod whose status hangs in a real containerd', () => {
  const bed = new SystemBed({ kube: true });

  test('is named while a real kubelet waits for it', { timeout: 2 * WITHIN_MS }, async () => {
    const containerd = await bed.containerd({ version: '1.7', shimSandboxes: true });
    const cri = connectCri(containerd.socket);
    bed.atEnd(() => cri.close());
    const pods = bed.pods(containerd);
    await pods.runPod({ name: 'web', namespace: 'shop' });
    const { sandbox, uid } = await pods.runPod({
      ...{ name: 'cart', namespace: 'shop', containers: [], runtimeHandler: SHIM_SANDBOXES },
    });
    // Before the kubelet starts, which removes pods that no API server has.
    const shim = shimOf(sandbox);
    bed.atEnd(() => thaw(shim));
    await freeze(shim);
    const request = { podSandboxId: sandbox, verbose: false };
    const asked = cri.call('podSandboxStatus', request, { deadline: Date.now() + LONG_UNSEEN_MS }).then(
      () => status.OK,
      ({ code }) => code,
    );
    const { items } = await cri.call('listPodSandbox', { filter: undefined });
    expect(items.map(({ id }) => id)).toContain(sandbox);
    expect(await asked).toBe(status.DEADLINE_EXCEEDED);

    const kubelet = await bed.kubelet({ node: NODE, containerd, eventedPleg: false });
    await bed.watch(NODE, containerd.socket, {
      ...(await bed.metricsOf(kubelet)),
      kubeletCaFile: kubelet.caFile,
      kubeletServerName: kubelet.serverName,
      intervalScrape: '1s',
    });
    const named = await waitFor(
      'the pod is named',
      async () =>
        (
          await bed.system.sql(
            `SELECT s.*, k.last_seen_age_ms FROM plegwatch.status_checks s JOIN plegwatch.kubelet_minutes k USING (cluster, node, minute)
              WHERE s.node = $1 AND s.container_id = $2 AND s.timed_out AND k.last_seen_age_ms > $3 ORDER BY s.at LIMIT 1`,
            ...[NODE, sandbox, LONG_UNSEEN_MS],
          )
        )[0],
      WITHIN_MS,
    );
    expect(named).toMatchObject({
      ...{ pod_namespace: 'shop', pod_name: 'cart', pod_uid: uid, is_sandbox: true, container_name: null },
      ...{ runtime_name: 'containerd', at: expect.any(Date) },
    });
    expect(Number(named['status_ms'])).toBeGreaterThanOrEqual(5_000);
  });
});
