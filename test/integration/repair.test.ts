/*
 * The effect of `plegwatch repair` on batches that somebody forged, from a real Redis to a real Postgres.
 */
import { beforeEach, expect, it } from 'vitest';
import { ReportQueue } from '../../src/controller/reports/queue.ts';
import type { Batch } from '../../src/protocol/batch.ts';
import { repair } from '../../src/store/repair.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { silent } from '../support/database.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { needs } from '../support/needs.ts';
import { event, events, missedFinding, nodeState, relistMinute } from '../support/records.ts';

const QUEUES = 1;
const MAX_SEQ = 2_147_483_646;

needs('postgres', 'redis-server')('the store', () => {
  const bed = new IngestBed(QUEUES);
  const { rows, sendInTurn, ackedSeq } = bed;

  beforeEach(() => bed.start());

  it('a repair forgets a forged epoch with its records, and the state of the real agent counts again', async () => {
    const real = agentIncarnation('node-a', 1_000);
    const forged = agentIncarnation('node-a', MAX_SEQ, 30_000);
    await sendInTurn(
      real.batch(1, [nodeState({ mode: 'Evented' }), event(2)]),
      forged.batch(1, [nodeState({ mode: 'Fallback' }), event(3), missedFinding(), relistMinute()]),
    );
    const what = { databaseUrl: bed.databaseUrl, cluster: CLUSTER, log: silent };
    await repair({ ...what, node: 'node-a', forgetEpoch: forged.epoch });
    expect(await rows('SELECT mode FROM plegwatch.nodes')).toEqual([{ mode: 'Evented' }]);
    expect(await rows('SELECT epoch, end_cause FROM plegwatch.epochs')).toEqual([
      { epoch: real.epoch, end_cause: null },
    ]);
    expect(await rows('SELECT seq FROM plegwatch.container_events')).toEqual([{ seq: 2 }]);
    expect(await rows('SELECT finding_id FROM plegwatch.findings')).toEqual([]);
    await expect(repair({ ...what, node: 'node-b', forgetEpoch: real.epoch })).rejects.toMatchObject({
      code: 'SETTING_INVALID',
    });
  });

  it('a repair brings no epoch of an earlier machine back before the agent of the present one reports', async () => {
    const cluster = await bed.store.ensureCluster(CLUSTER);
    const earlier = agentIncarnation('node-a', 1_000, 600_000);
    /** A batch that was cut five minutes ago. */
    const cutEarlier = (first: number, mode: 'Evented' | 'Generic'): Batch => {
      const mono0 = 300_000_000 + first;
      const { startedMono } = earlier.batch(first, []);
      return earlier.batch(first, [nodeState({ mode })], { mono0, wall0: startedMono + mono0 });
    };
    const register = (uid: string) =>
      new ReportQueue(bed.store, cluster).recordNodes([
        { name: 'node-a', uid, createdAt: new Date().toISOString() },
      ]);
    const state = () => rows('SELECT mode, runtime_version FROM plegwatch.nodes');
    await sendInTurn(cutEarlier(1, 'Evented'));
    // It was stored as soon as it was cut.
    await rows('UPDATE store.epoch SET delay_us = 0, last_seen = last_batch_at');
    await register('first');
    await register('second');
    const forged = agentIncarnation('node-a', 2_000, 1_000);
    await sendInTurn(forged.batch(1, [nodeState({ mode: 'Fallback' })]));
    await repair({
      databaseUrl: bed.databaseUrl,
      cluster: CLUSTER,
      log: silent,
      node: 'node-a',
      forgetEpoch: forged.epoch,
    });
    await sendInTurn(cutEarlier(2, 'Generic'));
    expect(await state()).toEqual([{ mode: 'Unknown', runtime_version: null }]);
    const present = agentIncarnation('node-a', 1_001, 1_000);
    await sendInTurn(present.batch(1, [nodeState({ mode: 'HintDisabled' })]));
    expect(await state()).toEqual([{ mode: 'HintDisabled', runtime_version: '2.1.4' }]);
  });

  it('a repair forgets forged losses, and the agent is asked for the records again', async () => {
    const one = agentIncarnation('node-a', 1);
    const forged = agentIncarnation('node-a', 2, 30_000);
    await sendInTurn(
      one.batch(1, events(1, 2)),
      forged.batch(1, events(1, 1)),
      one.batch(3, [], { lost: [{ from: 3, to: 900, cause: 'spool_full' }] }),
    );
    expect(await ackedSeq(one)).toBe(900);
    await repair({
      databaseUrl: bed.databaseUrl,
      cluster: CLUSTER,
      log: silent,
      node: 'node-a',
      forgetEpoch: forged.epoch,
      forgetLosses: one.epoch,
    });
    await sendInTurn(one.batch(3, [], { ackGeneration: 2 }));
    expect(await bed.sender.reply(one)).toEqual({ ackGeneration: 2, ackedSeq: 2 });
    expect(await rows('SELECT * FROM plegwatch.gaps WHERE scope = $1', ['seq'])).toEqual([]);
    await sendInTurn(one.batch(3, events(3, 900).slice(0, 400)));
    expect(await ackedSeq(one)).toBe(402);
  });
});
