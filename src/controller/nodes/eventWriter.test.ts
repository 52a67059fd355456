import { expect, test } from 'vitest';
import { silent } from '../../../test/support/database.ts';
import { KubeStatusError } from '../../kube/kubeErrors.ts';
import { runnerOf } from '../../store/runner.ts';
import { EventWriter } from './eventWriter.ts';

const NODE = {
  uid: 'u1',
  createdAt: null,
  labels: {},
  info: { labels: {}, osImage: '', kernelVersion: '' },
  ready: null,
  published: [],
};
const { signal } = new AbortController();

/** A writer of the Events of these fallbacks; `fails` says whether the API server is away. */
function writerOf(fallbacks: number, fails: () => boolean) {
  const rows = Array.from({ length: fallbacks }, (_, n) => ({
    ...{ node: 'node-a', kind: 'fallback', detail: 'StreamBroke' },
    ...{ pod_namespace: null, pod_name: null, pod_uid: null },
    at: new Date(Date.now() - 60_000 + n).toISOString().replace('T', ' ').replace('Z', '+00'),
  }));
  const results: string[] = [];
  const writer = new EventWriter({
    store: {
      ...runnerOf(async () => ({ rows: structuredClone(rows), rowCount: rows.length })),
      ensureCluster: async () => 1,
    },
    kube: {
      async apply() {
        if (fails()) throw new KubeStatusError(503, 'ServiceUnavailable', 'etcd is away');
        return {
          metadata: { name: '', uid: '', resourceVersion: '', creationTimestamp: null, ownerReferences: [] },
        };
      },
    },
    nodes: { get: () => NODE },
    cluster: 'prod',
    onPods: false,
    log: silent,
    onResult: (result) => results.push(result),
  });
  return { writer, results };
}

test('an Event is written however often its write failed before', async () => {
  let isAway = true;
  const { writer, results } = writerOf(1, () => isAway);
  for (let failed = 0; failed < 5; failed++)
    await expect(writer.pass(signal)).rejects.toThrow('etcd is away');
  isAway = false;
  await writer.pass(signal);
  await writer.pass(signal);
  expect(results).toEqual(['written']);
});

test('a write that failed takes no token from the next Events of its node', async () => {
  let isAway = true;
  const { writer, results } = writerOf(4, () => isAway);
  for (let failed = 0; failed < 5; failed++)
    await expect(writer.pass(signal)).rejects.toThrow('etcd is away');
  isAway = false;
  await writer.pass(signal);
  expect(results).toEqual(['written', 'written', 'written', 'suppressed']);
});
