/*
 * A candidate that could not do the work, by its looks at the Lease. Elections on a real API server: test/integration/election.test.ts.
 */
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { silent } from '../../../test/support/database.ts';
import { type KubeObject, KubeObjectSchema } from '../../kube/object.ts';
import { aborted } from '../../platform/stopSignal.ts';
import { type Election, startElection } from './election.ts';

const TIMES = { durationMs: 3_600_000, renewWithinMs: 3_600_000, retryMs: 1, releaseWithinMs: 60_000 };

const heldBy = (holderIdentity: string): KubeObject =>
  v.parse(KubeObjectSchema, {
    metadata: { name: 'lead', uid: 'uid', resourceVersion: '1' },
    spec: { holderIdentity, leaseDurationSeconds: 3_600 },
  });
const FREE = heldBy('');
const TAKEN = heldBy('another');

/** Its actions at each of these looks at the Lease. The last one is repeated. */
async function doneWhile(leases: readonly KubeObject[]): Promise<string[]> {
  const done: string[] = [];
  const looked = Promise.withResolvers<void>();
  let looks = 0;
  const election: Election = startElection({
    kube: {
      async get() {
        looks += 1;
        done.push(`look ${looks}`);
        if (looks > leases.length) looked.resolve();
        return leases[Math.min(looks, leases.length) - 1];
      },
      apply: () => Promise.reject(new Error('it takes no Lease')),
    },
    lease: { namespace: 'default', name: 'lead' },
    log: silent,
    isFit: () => false,
    lead: () => Promise.reject(new Error('it does not lead')),
    async whileNobodyLeads(signal) {
      done.push('nobody leads');
      await aborted(signal);
      done.push('somebody leads');
    },
    times: TIMES,
  });
  await looked.promise;
  await election.stop();
  return done.slice(0, done.indexOf(`look ${leases.length + 1}`));
}

test('while others may still take a Lease that was released, nothing is done as if nobody led', async () => {
  expect(await doneWhile([FREE, FREE, TAKEN])).toEqual(['look 1', 'look 2', 'look 3']);
});

test('once nobody has taken a free Lease, that is said until somebody does', async () => {
  expect(await doneWhile([FREE, FREE, FREE, TAKEN])).toEqual([
    ...['look 1', 'look 2', 'look 3', 'nobody leads', 'look 4', 'somebody leads'],
  ]);
});

test('a Lease that was taken meanwhile is waited for anew', async () => {
  expect(await doneWhile([FREE, FREE, TAKEN, FREE, FREE, TAKEN])).not.toContain('nobody leads');
});
