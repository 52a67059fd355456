/*
 * A miss whose event another incarnation of the agent received is resolved, whichever of the two is stored first.
 */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { beforeEach, expect, it } from 'vitest';
import { runReport } from '../../src/controller/reports/command.ts';
import type { EvidenceRecord, RecordOf } from '../../src/protocol/record.ts';
import { agentIncarnation, type BatchIncarnation, CLUSTER } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { needs } from '../support/needs.ts';
import { event, hexId, missedFinding } from '../support/records.ts';

const QUEUES = 2;
const US_PER_SECOND = 1_000_000;
const STOPPED = 2;

function permutations<T>(all: readonly T[]): T[][] {
  if (all.length === 0) return [[]];
  return all.flatMap((one, at) => permutations(all.toSpliced(at, 1)).map((rest) => [one, ...rest]));
}

needs('postgres', 'redis-server')('a miss whose event another incarnation received', () => {
  const bed = new IngestBed(QUEUES);
  const { rows, sendInTurn } = bed;

  beforeEach(() => bed.start());

  /** A missed STOPPED, due by second 2 of its epoch and reported in second 32. */
  const missed = (n: number, more: Partial<RecordOf<'finding'>> = {}) => {
    const window = { from: US_PER_SECOND, to: 2 * US_PER_SECOND };
    return missedFinding({ t: 32 * US_PER_SECOND, containerId: hexId(n), window, ...more });
  };

  /** The STOPPED of an id, received in that second of its epoch. */
  const received = (n: number, second: number, more: Partial<RecordOf<'container_event'>> = {}) =>
    event(n, { t: second * US_PER_SECOND, eventType: STOPPED, ...more });

  /** When the misses of a node were resolved, in whole seconds since the epoch began; null if unresolved. */
  const resolvedAt = async (one: BatchIncarnation) =>
    (
      await rows<{ after: number | null }>(
        `SELECT round(extract(epoch FROM f.resolved_at - e.started_at))::float8 AS after
           FROM plegwatch.findings f JOIN plegwatch.epochs e ON e.node = f.node AND e.epoch = $2
           WHERE f.node = $1 AND f.kind = 'missed' ORDER BY f.seq`,
        [one.node, one.epoch],
      )
    ).map(({ after }) => after);

  it('a miss is resolved by the event of another incarnation, whichever of the two is stored first', async () => {
    for (const node of ['node-a', 'node-b']) {
      const older = agentIncarnation(node, 1, 60_000);
      const newer = agentIncarnation(node, 2, 20_000);
      const batches = [older.batch(1, [missed(1)]), newer.batch(1, [received(1, 3)])];
      await sendInTurn(...(node === 'node-a' ? batches : batches.toReversed()));
      expect(await resolvedAt(newer), node).toEqual([3]);
    }
  });

  it('a miss is resolved by a replayed event, and by one received between its window and its report', async () => {
    const older = agentIncarnation('node-a', 1, 60_000);
    const replayed = agentIncarnation('node-a', 2, 20_000);
    const askew = agentIncarnation('node-a', 3, 57_000);
    await sendInTurn(
      older.batch(1, [missed(1), missed(2)]),
      replayed.batch(1, [received(1, 1, { replayed: true })]),
      askew.batch(1, [received(2, 1)]),
    );
    expect(await resolvedAt(older)).toEqual([41, 4]);
  });

  it('a miss is not resolved by an event of another type, id or node', async () => {
    for (const order of ['forwards', 'backwards']) {
      const older = agentIncarnation(`node-${order}`, 1, 60_000);
      const newer = agentIncarnation(`node-${order}`, 2, 20_000);
      const otherNode = agentIncarnation(`other-${order}`, 1, 20_000);
      const batches = [
        older.batch(1, [missed(1)]),
        newer.batch(1, [received(1, 1, { eventType: 1 }), received(1, 2, { eventType: 9 }), received(2, 3)]),
        otherNode.batch(1, [received(1, 1)]),
      ];
      await sendInTurn(...(order === 'forwards' ? batches : batches.toReversed()));
      expect(await resolvedAt(older), order).toEqual([null]);
    }
  });

  it('a miss is not resolved by an event from before the end of its window', async () => {
    for (const order of ['forwards', 'backwards']) {
      const before = agentIncarnation(`node-${order}`, 1, 90_000);
      const reporter = agentIncarnation(`node-${order}`, 2, 60_000);
      // The last event falls on the end of the window, or just before it.
      const batches = [
        before.batch(1, [received(1, 5), received(2, 60), received(1, 32)]),
        reporter.batch(1, [missed(1)]),
      ];
      await sendInTurn(...(order === 'forwards' ? batches : batches.toReversed()));
      expect(await resolvedAt(reporter), order).toEqual([null]);
    }
  });

  it('only a live epoch resolves its own misses', async () => {
    const one = agentIncarnation('node-a', 1, 60_000);
    await sendInTurn(one.batch(1, [missed(1), received(1, 40)]), one.batch(3, [received(1, 41)]));
    expect(await resolvedAt(one)).toEqual([null]);
  });

  it('an event of another incarnation resolves no finding of another kind', async () => {
    const older = agentIncarnation('node-a', 1, 60_000);
    const newer = agentIncarnation('node-a', 2, 20_000);
    await sendInTurn(
      older.batch(1, [
        missed(1, { kind: 'unobservable' }),
        missed(2, { containerId: null, eventType: null }),
      ]),
      newer.batch(1, [received(1, 1), received(2, 1)]),
      older.batch(3, [missed(1, { kind: 'late' })]),
    );
    expect(await rows('SELECT FROM store.finding_update')).toEqual([]);
  });

  it('a miss is resolved at the earliest event or resolution record, in any order of arrival', async () => {
    for (const order of permutations([0, 1, 2, 3])) {
      const node = `node-${order.join('')}`;
      const older = agentIncarnation(node, 1, 60_000);
      const newer = agentIncarnation(node, 2, 20_000);
      const finding = randomUUID();
      const resolution: EvidenceRecord = {
        type: 'finding_resolved',
        t: 35 * US_PER_SECOND,
        findingId: finding,
      };
      const batches = [
        older.batch(1, [missed(1), missed(2, { findingId: finding })]),
        older.batch(3, [resolution]),
        newer.batch(1, [received(1, 1), received(1, 2), received(2, 1)]),
        newer.batch(4, [received(1, 3), received(2, 4)]),
      ];
      await sendInTurn(...order.flatMap((at) => batches[at] ?? []));
      expect(await resolvedAt(older), node).toEqual([41, 35]);
    }
  });

  it('a miss is resolved once, however often it and its event are delivered', async () => {
    const older = agentIncarnation('node-a', 1, 60_000);
    const newer = agentIncarnation('node-a', 2, 20_000);
    const batches = [older.batch(1, [missed(1)]), newer.batch(1, [received(1, 1), received(1, 2)])];
    await sendInTurn(...batches, ...batches, newer.batch(3, [received(1, 5)]), ...batches.toReversed());
    expect(await rows('SELECT what FROM store.finding_update')).toEqual([{ what: 'resolved' }]);
    expect(await resolvedAt(newer)).toEqual([1]);
  });

  it('a miss is resolved when it and its event are committed concurrently', async () => {
    const older = agentIncarnation('node-a', 1, 60_000);
    const newer = agentIncarnation('node-a', 2, 20_000);
    // The older epoch is closed: its batches and those of the newer one do not lock each other out.
    await sendInTurn(older.batch(1, [event(7)]), newer.batch(1, [event(8)], { prev: older.epoch }));
    const holder = new Client({ connectionString: bed.databaseUrl });
    await holder.connect();
    try {
      await holder.query("BEGIN; SELECT FROM store.node WHERE name = 'node-a' FOR NO KEY UPDATE");
      const both = [
        commitAll(bed.databaseUrl, [older.batch(2, [missed(1)])]),
        commitAll(bed.databaseUrl, [newer.batch(2, [received(1, 3)])]),
      ];
      await bed.lockWaits(2);
      await holder.query('COMMIT');
      await Promise.all(both);
      expect(await resolvedAt(newer)).toEqual([3]);
    } finally {
      await holder.end();
    }
  });

  it('resolving a miss creates the missing partition', async () => {
    await rows(
      `DO $$ BEGIN EXECUTE 'DROP TABLE store.' || store.partition_name('finding_update', (now() AT TIME ZONE 'UTC')::date); END $$`,
    );
    const older = agentIncarnation('node-a', 1, 60_000);
    const newer = agentIncarnation('node-a', 2, 20_000);
    await sendInTurn(older.batch(1, [missed(1)]), newer.batch(1, [received(1, 3)]));
    expect(await resolvedAt(newer)).toEqual([3]);
  });

  it('a resolved miss counts as resolved in the report, which becomes due at once', async () => {
    const older = agentIncarnation('node-a', 1, 60_000);
    const newer = agentIncarnation('node-a', 2, 20_000);
    const reportStatus = async () =>
      JSON.parse((await runReport({ store: bed.store, clusters: [CLUSTER], output: 'json' })).text).items[0]
        .status;
    await sendInTurn(older.batch(1, [missed(1), missed(2)]), newer.batch(1, [event(8)]));
    expect((await reportStatus()).missed).toMatchObject({ total: 2, last24h: 2, resolved24h: 0 });
    await rows('DELETE FROM store.report_queue');
    await sendInTurn(newer.batch(2, [received(3, 1)]));
    expect(await rows('SELECT FROM store.report_queue')).toEqual([]);
    await sendInTurn(newer.batch(3, [received(1, 3)]));
    expect(await rows('SELECT urgent FROM store.report_queue')).toEqual([{ urgent: true }]);
    const { missed: figures, findings24h } = await reportStatus();
    expect(figures).toMatchObject({ total: 1, last24h: 1, resolved24h: 1 });
    expect(findings24h).toEqual([{ kind: 'missed', count: 1 }]);
  });
});
