/*
 * An outage of the API server of a running system: a controller stores what an agent records meanwhile, and publishes the reports that were pending
 * once the server is back. Single faults of an API server are in apiServerFailures.test.ts.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fleet } from '../support/fleet.ts';
import { needs } from '../support/needs.ts';
import { answerOf, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const NODE = 'pending';
const EVERY_MS = 60;

let system: System;

needs(
  'redis-server',
  'postgres',
  'kube-apiserver',
  'etcd',
)('an outage of a running system:', () => {
  beforeAll(async () => {
    system = await System.start({ kube: true });
    await system.addNode(NODE);
  });
  afterAll(() => system?.stop());

  test('an API server that is killed and restarted receives the pending reports, and no record is lost', async () => {
    const controller = await system.controller();
    const readiness = () => answerOf(controller, '/readyz');
    const becomesReady = () =>
      waitFor('the controller is ready', async () => (await readiness())?.status === 200);
    await becomesReady();
    await system.api.kill();
    // Its report was never published before.
    const fleet = await Fleet.start(system, [NODE], {});
    try {
      fleet.startChurn(EVERY_MS);
      await waitFor('the controller cannot publish', async () => {
        const answer = await readiness();
        return answer?.status === 503 && answer.body.includes('not ok reports');
      });
      await fleet.deliveredSinceNow(100);
      await system.api.restart();
      await becomesReady();
      await waitFor('the report is there', () => system.publishedReport(NODE));
      await fleet.expectEverythingOnce();
      expect(await system.undeclaredGaps(NODE)).toEqual([]);
      await system.expectNoDifference();
    } finally {
      await fleet.stop();
    }
  });
});
