import { expect, test } from 'vitest';
import { silent } from '../../test/support/database.ts';
import { runnerOf } from '../store/runner.ts';
import { startClusterIdentity } from './clusterIdentity.ts';

const MAX_TRIES = 50;

test('a cluster that another controller binds meanwhile is asked for again, with a pause before each time', async () => {
  let tries = 0;
  let isBound = false;
  setTimeout(() => {
    isBound = true;
  }, 20);
  const metadata = { name: 'kube-system', uid: 'u1', resourceVersion: '1' };
  const { stop } = await startClusterIdentity({
    store: {
      ...runnerOf(async () => {
        tries += 1;
        if (tries > MAX_TRIES) throw new Error('asked without a pause');
        return { rows: isBound ? [{ uid: 'u1' }] : [], rowCount: null };
      }),
      ensureCluster: async () => 1,
    },
    kube: { get: async () => ({ metadata: { ...metadata, creationTimestamp: null, ownerReferences: [] } }) },
    cluster: 'prod',
    log: silent,
    onUnknown: () => undefined,
    onRefused: () => undefined,
  });
  await stop();
  expect(tries).toBeGreaterThan(1);
});
