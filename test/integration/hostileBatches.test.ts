/*
 * Batches that anybody with the agents' Redis user can send in the name of another node, from a real Redis to a real Postgres: nothing is
 * believed that the epoch cannot have done, and none of them keeps other batches waiting.
 */
import { randomUUID } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import { INGEST_INTERVALS } from '../../src/controller/config.ts';
import { ReportQueue } from '../../src/controller/reports/queue.ts';
import { defaultsOf } from '../../src/platform/settings.ts';
import type { Batch } from '../../src/protocol/batch.ts';
import { millis } from '../../src/protocol/units.ts';
import { maintain } from '../../src/store/maintain.ts';
import { agentIncarnation, type BatchIncarnation, CLUSTER } from '../support/batches.ts';
import { silent } from '../support/database.ts';
import { HOSTILE_STATUSES } from '../support/hostileValues.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { needs } from '../support/needs.ts';
import {
  event,
  events,
  hexId,
  missedFinding,
  nodeState,
  relistMinute,
  streamSession,
} from '../support/records.ts';
import { passes } from '../support/waitFor.ts';

const QUEUES = 1;
const US_PER_DAY = 86_400_000_000;
const MAX_SEQ = 2_147_483_646;

const slowStatusAt = (at: number) => ({
  ...{ asked: 3, slow: 1 },
  slowest: { containerId: hexId(7), isSandbox: true, at, took: 5_000_000, timedOut: true },
});

needs('postgres', 'redis-server')('the store', () => {
  const bed = new IngestBed(QUEUES);
  const { rows, sendInTurn, drained, ackedSeq } = bed;

  beforeEach(() =>
    bed.start({ intervals: { ...defaultsOf(INGEST_INTERVALS), intervalFaultDelay: millis(300) } }),
  );

  const gapsOfRecords = () =>
    rows(`SELECT node, cause, from_seq, to_seq FROM plegwatch.gaps WHERE scope = 'seq'`);

  const unbelieved = async (claim: string): Promise<number> => {
    const { values } = await bed.metrics.unbelievedClaims.get();
    return values.find(({ labels }) => labels['claim'] === claim)?.value ?? 0;
  };

  /** Lets the last batches of an incarnation have been stored this many minutes ago. */
  const silentFor = (one: BatchIncarnation, minutes: number) =>
    rows(
      `UPDATE store.epoch SET last_seen = last_seen - $2 * interval '1 min', last_new_at = last_new_at - $2 * interval '1 min' WHERE epoch = $1`,
      [one.epoch, minutes],
    );

  it('a probe moves the acked seq of a running agent to no seq that no record reached, however much it declares lost', async () => {
    const one = agentIncarnation('node-a');
    await sendInTurn(one.batch(1, events(1, 2)));
    await sendInTurn(
      one.batch(3, [], { lost: [{ from: 3, to: MAX_SEQ, cause: 'spool_full' }], ackGeneration: 2 }),
      one.batch(3, [], { lost: [{ from: 3, to: 500, cause: 'spool_full' }], ackGeneration: 3 }),
      one.batch(1, [], { lost: [{ from: 1, to: MAX_SEQ, cause: 'spool_full' }], ackGeneration: 4 }),
    );
    expect(await bed.sender.reply(one)).toEqual({ ackGeneration: 4, ackedSeq: 2 });
    expect(await rows('SELECT * FROM plegwatch.gaps')).toEqual([]);
    expect(await unbelieved('loss')).toBe(3);
    await sendInTurn(one.batch(3, events(3, 4)));
    expect(await ackedSeq(one)).toBe(4);
  });

  it('a probe moves the acked seq of a running agent to no seq that no record reached, whatever its oldest seq', async () => {
    const one = agentIncarnation('node-a');
    await sendInTurn(
      one.batch(1, events(1, 2)),
      one.batch(600, [], { oldestSeq: 600, ackGeneration: 2 }),
      one.batch(MAX_SEQ, [], { oldestSeq: MAX_SEQ, ackGeneration: 3 }),
    );
    expect(await ackedSeq(one)).toBe(2);
    expect(await rows('SELECT reason FROM plegwatch.rejected')).toEqual([{ reason: 'implausible_seq' }]);
  });

  it('no batch reaches a seq that its epoch cannot have reached, whatever it declares lost before it', async () => {
    const one = agentIncarnation('node-a');
    const far = MAX_SEQ - 10;
    await sendInTurn(
      one.batch(1, events(1, 2)),
      one.batch(far, events(1, 1), { oldestSeq: far, lost: [{ from: 3, to: far - 1, cause: 'spool_full' }] }),
    );
    expect(await ackedSeq(one)).toBe(2);
    expect(await rows('SELECT last_seq FROM plegwatch.epochs')).toEqual([{ last_seq: 2 }]);
  });

  it('a first batch that is rejected leaves neither its node nor its epoch behind', async () => {
    await sendInTurn(agentIncarnation('node-a').batch(MAX_SEQ - 10, events(1, 1)));
    expect(await rows('SELECT reason FROM plegwatch.rejected')).toEqual([{ reason: 'implausible_seq' }]);
    expect(await rows('SELECT epoch FROM plegwatch.epochs')).toEqual([]);
    expect(await rows('SELECT node FROM plegwatch.nodes')).toEqual([]);
  });

  it('a later epoch closes an earlier one without losses that the earlier one cannot have reached', async () => {
    const one = agentIncarnation('node-a', 1);
    const next = agentIncarnation('node-a', 2, 30_000);
    await sendInTurn(one.batch(1, events(1, 2)));
    const held = (last: number) => [
      { epoch: one.epoch, incarnation: 1, last },
      { epoch: next.epoch, incarnation: 2, last: 1 },
    ];
    await sendInTurn(
      next.batch(1, events(1, 1), { held: held(MAX_SEQ) }),
      next.batch(2, events(2, 2), { held: held(MAX_SEQ).slice(1) }),
    );
    expect(await rows('SELECT acked_seq, records_lost FROM plegwatch.epochs ORDER BY incarnation')).toEqual([
      { acked_seq: 2, records_lost: 0 },
      { acked_seq: 2, records_lost: 0 },
    ]);
  });

  it('a whole backlog that a running agent lost is acknowledged with the next record', async () => {
    const one = agentIncarnation('node-a', 1, 3 * 86_400_000);
    const lost = [{ from: 3, to: 2_000_000, cause: 'spool_full' }];
    await sendInTurn(one.batch(1, events(1, 2)));
    await silentFor(one, 5);
    await sendInTurn(one.batch(2_000_001, events(1, 1), { lost, oldestSeq: 2_000_001 }));
    expect(await ackedSeq(one)).toBe(2_000_001);
    expect(await rows('SELECT cause, from_seq, to_seq, records FROM plegwatch.gaps')).toEqual([
      { cause: 'spool_full', from_seq: 3, to_seq: 2_000_000, records: 1_999_998 },
    ]);
  });

  it('the last records that an ended epoch lost are acknowledged by a probe', async () => {
    const one = agentIncarnation('node-a', 1);
    const next = agentIncarnation('node-a', 2, 30_000);
    const held = [
      { epoch: one.epoch, incarnation: 1, last: 900 },
      { epoch: next.epoch, incarnation: 2, last: 1 },
    ];
    await sendInTurn(
      one.batch(1, events(1, 2)),
      next.batch(1, events(1, 1), { held }),
      one.batch(901, [], { oldestSeq: 901, lost: [{ from: 3, to: 900, cause: 'spool_corrupt' }], held }),
    );
    expect(await ackedSeq(one)).toBe(900);
  });

  it.each([
    ['the last records', 3, 900, 'one.last_record_at', 'next.started_at'],
    ['earlier records', 1, 1, 'one.started_at', 'one.last_record_at'],
    ['all records', 1, 900, 'one.started_at', 'next.started_at'],
  ])('%s of an ended epoch that a probe declares lost are missing when they were made', async (...row) => {
    const [, from, to, begin, end] = row;
    const one = agentIncarnation('node-a', 1);
    const next = agentIncarnation('node-a', 2, 30_000);
    const held = [
      { epoch: one.epoch, incarnation: 1, last: 900 },
      { epoch: next.epoch, incarnation: 2, last: 1 },
    ];
    const lost = [{ from, to, cause: 'spool_corrupt' as const }];
    const atStart = { mono0: 0, wall0: one.batch(1, []).startedMono };
    if (to - from < 899) await sendInTurn(one.batch(2, [event(2, { t: 20_000_000 })]));
    await sendInTurn(next.batch(1, events(1, 1), { held }), one.batch(901, [], { ...atStart, lost, held }));
    const gaps = await rows(
      `SELECT g.from_at = ${begin} AS begins, g.to_at = ${end} AS ends FROM plegwatch.gaps g, store.epoch one, store.epoch next
       WHERE g.cause = 'spool_corrupt' AND one.epoch = $1 AND next.epoch = $2`,
      [one.epoch, next.epoch],
    );
    expect(gaps).toEqual([{ begins: true, ends: true }]);
  });

  it('an incarnation of the future supersedes the agent of a node for three minutes after its last batch, not for ever', async () => {
    const real = agentIncarnation('node-a', 1_000);
    const forged = agentIncarnation('node-a', MAX_SEQ, 30_000);
    const state = () => rows('SELECT mode, runtime_version FROM plegwatch.nodes');
    const context = { ...forged.batch(1, []).context, runtime: { name: 'forged', version: '9' } };
    await sendInTurn(
      real.batch(1, [nodeState({ mode: 'Evented' })]),
      forged.batch(1, [nodeState({ mode: 'Fallback' })], { context }),
    );
    expect(await unbelieved('incarnation')).toBe(1);
    expect(await state()).toEqual([{ mode: 'Fallback', runtime_version: '9' }]);
    await sendInTurn(real.batch(2, events(2, 2)));
    expect(await state()).toEqual([{ mode: 'Fallback', runtime_version: '9' }]);
    await silentFor(forged, 4);
    await sendInTurn(real.batch(3, events(3, 3)));
    expect(await state()).toEqual([{ mode: 'Evented', runtime_version: '2.1.4' }]);
    expect(await rows('SELECT end_cause FROM plegwatch.epochs WHERE epoch = $1', [real.epoch])).toEqual([
      { end_cause: null },
    ]);
    expect(await unbelieved('successor')).toBe(1);
  });

  it('a backlog of an earlier epoch supersedes none that began after it was cut, however long that one is silent', async () => {
    const earlier = agentIncarnation('node-a', 1, 600_000);
    const later = agentIncarnation('node-a', 2, 300_000);
    const cutAfter = (minutes: number, batch: Batch): Batch => {
      const mono0 = minutes * 60_000_000;
      return { ...batch, mono0, wall0: batch.wall0 - batch.mono0 + mono0 };
    };
    await sendInTurn(later.batch(1, events(1, 1)), cutAfter(1, earlier.batch(1, events(1, 1))));
    await silentFor(later, 5);
    await sendInTurn(cutAfter(2, earlier.batch(2, events(2, 2))));
    expect(await ackedSeq(earlier)).toBe(2);
    expect(await rows('SELECT epoch FROM plegwatch.epochs ORDER BY incarnation DESC LIMIT 1')).toEqual([
      { epoch: later.epoch },
    ]);
    expect(await unbelieved('successor')).toBe(0);
  });

  it('an agent whose Node is registered again while it runs makes no claim that is not believed', async () => {
    const one = agentIncarnation('node-a', 1);
    const state = () => rows('SELECT mode FROM plegwatch.nodes');
    const register = async (uid: string) =>
      new ReportQueue(bed.store, await bed.store.ensureCluster(CLUSTER)).recordNodes([
        { name: 'node-a', uid, createdAt: new Date().toISOString() },
      ]);
    await sendInTurn(one.batch(1, [nodeState({ mode: 'Evented' })]));
    await register('first');
    await silentFor(one, 1);
    await register('second');
    expect(await state()).toEqual([{ mode: 'Unknown' }]);
    await sendInTurn(one.batch(2, events(2, 2)));
    expect(await state()).toEqual([{ mode: 'Evented' }]);
    expect(await unbelieved('successor')).toBe(0);
  });

  it('the next agent of a node supersedes an incarnation of the future at once', async () => {
    const started = Math.floor(Date.now() / 1000) - Date.UTC(2026, 0, 1) / 1000;
    const forged = agentIncarnation('node-a', MAX_SEQ, 30_000);
    await sendInTurn(forged.batch(1, [nodeState({ mode: 'Fallback' })]));
    const next = agentIncarnation('node-a', started + 120, 0);
    await sendInTurn(next.batch(1, [nodeState({ mode: 'Evented' })]));
    expect(await rows('SELECT mode FROM plegwatch.nodes')).toEqual([{ mode: 'Evented' }]);
  });

  it.each([
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ])(
    'epochs of a node whose clock is years ahead keep their order if they arrive as %i, %i, %i',
    async (...arrivals) => {
      const epochs = [0, 1, 2].map((no) =>
        agentIncarnation('node-a', 900_000_000 + no, 60_000 - no * 10_000),
      );
      for (const no of arrivals) {
        for (const one of epochs.slice(no, no + 1))
          await sendInTurn(one.batch(1, [nodeState({ mode: 'Evented' })]));
      }
      const order = await rows<{ epoch: string; incarnation: number }>(
        'SELECT epoch, incarnation FROM plegwatch.epochs ORDER BY incarnation, epoch',
      );
      expect(order.map(({ epoch }) => epoch)).toEqual(epochs.map(({ epoch }) => epoch));
      expect(new Set(order.map(({ incarnation }) => incarnation)).size).toBe(epochs.length);
    },
  );

  it('events are stored however many misses of their container another epoch has sent', async () => {
    const forged = agentIncarnation('node-a', 1);
    const one = agentIncarnation('node-a', 2, 30_000);
    await sendInTurn(forged.batch(1, [missedFinding({ containerId: hexId(7) })]));
    await rows(
      `INSERT INTO store.finding (finding_id, detected_at, day, node_id, context_id, seq, cluster_id, kind, event_type, cause, container_id,
                                  window_from, window_to, proof)
       SELECT gen_random_uuid(), f.detected_at, f.day, f.node_id, f.context_id, n, f.cluster_id, f.kind, f.event_type, f.cause,
              f.container_id, f.window_from, f.window_to, f.proof
       FROM store.finding f, generate_series(2, 10000) AS n`,
    );
    const same = { containerId: hexId(7), eventType: 2, t: 20_000_000 };
    await bed.sender.send(
      one.batch(
        1,
        Array.from({ length: 500 }, (_, n) => event(n, same)),
      ),
    );
    await passes(async () => expect(await ackedSeq(one)).toBe(500));
    expect(await gapsOfRecords()).toEqual([]);
  });

  it('misses are stored however many events of their container another epoch has sent', async () => {
    const forged = agentIncarnation('node-a', 1);
    const one = agentIncarnation('node-a', 2, 50_000);
    await sendInTurn(forged.batch(1, [event(1, { containerId: hexId(7), eventType: 2, t: 30_000_000 })]));
    await rows(
      `INSERT INTO store.container_event
       SELECT e.received_at, e.created_ns, e.container_key, e.day, e.node_id, e.context_id, n, e.cluster_id, e.flags
       FROM store.container_event e, generate_series(2, 10000) AS n`,
    );
    const misses = Array.from({ length: 500 }, () => missedFinding({ containerId: hexId(7) }));
    await bed.sender.send(one.batch(1, misses));
    await passes(async () => expect(await ackedSeq(one)).toBe(500));
    expect(await gapsOfRecords()).toEqual([]);
    const resolved = 'SELECT count(*)::int AS n FROM plegwatch.findings WHERE resolved_at IS NOT NULL';
    expect(await rows(resolved)).toEqual([{ n: 500 }]);
  });

  it('the records of a batch that times out twice while others are stored become gaps, and the batches of other nodes do not wait for it', async () => {
    const poisoned = agentIncarnation('node-a');
    const other = agentIncarnation('node-b');
    await rows('CREATE SEQUENCE store.timeouts');
    await rows(
      `CREATE FUNCTION store.slow() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM nextval('store.timeouts'), pg_cancel_backend(pg_backend_pid()); PERFORM pg_sleep(30); RETURN NEW; END $$`,
    );
    await rows(
      `CREATE TRIGGER slow BEFORE INSERT ON store.container_event FOR EACH ROW WHEN (NEW.created_ns = 666) EXECUTE FUNCTION store.slow()`,
    );
    await bed.sender.send(poisoned.batch(1, [event(1), event(2, { createdNs: '666' })]));
    await passes(async () =>
      expect(await rows('SELECT is_called FROM store.timeouts')).toEqual([{ is_called: true }]),
    );
    await bed.sender.send(poisoned.batch(3, events(3, 4)));
    await bed.sender.send(other.batch(1, events(1, 2)));
    await drained();
    expect(await ackedSeq(other)).toBe(2);
    expect(await ackedSeq(poisoned)).toBe(4);
    expect(await rows('SELECT node, seq FROM plegwatch.container_events ORDER BY node, seq')).toEqual([
      { node: 'node-a', seq: 3 },
      { node: 'node-a', seq: 4 },
      { node: 'node-b', seq: 1 },
      { node: 'node-b', seq: 2 },
    ]);
    const gaps = await rows(
      'SELECT cause, from_seq, records, record_bytes IS NOT NULL AS kept FROM plegwatch.gaps',
    );
    expect(gaps).toEqual(
      [1, 2].map((seq) => ({ cause: 'timed_out', from_seq: seq, records: 1, kept: true })),
    );
  });

  it('no record becomes a gap while no batch at all can be stored in time, however long that takes', async () => {
    const agents = [agentIncarnation('node-a'), agentIncarnation('node-b')];
    await rows('CREATE SEQUENCE store.timeouts');
    await rows(
      `CREATE FUNCTION store.stall() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM nextval('store.timeouts'), pg_cancel_backend(pg_backend_pid()); PERFORM pg_sleep(30); RETURN NEW; END $$`,
    );
    await rows(
      'CREATE TRIGGER stall BEFORE INSERT ON store.container_event FOR EACH ROW EXECUTE FUNCTION store.stall()',
    );
    for (const one of agents) await bed.sender.send(one.batch(1, events(1, 2)));
    await passes(async () => {
      expect(await rows('SELECT last_value >= 10 AS often FROM store.timeouts')).toEqual([{ often: true }]);
    });
    await rows('DROP TRIGGER stall ON store.container_event');
    for (const one of agents) await passes(async () => expect(await ackedSeq(one)).toBe(2));
    expect(await gapsOfRecords()).toEqual([]);
  });

  it('a cut of the far future is taken for now, and no period that it bounds outlives its retention', async () => {
    const one = agentIncarnation('node-a');
    const ahead = 300 * US_PER_DAY;
    await sendInTurn(
      one.batch(1, events(1, 2)),
      one.batch(9, events(9, 9), { oldestSeq: 9, mono0: ahead, wall0: Date.now() * 1000 + ahead }),
      one.batch(10, events(10, 10), { mono0: 2 ** 53 - 1 }),
    );
    expect(await ackedSeq(one)).toBe(9);
    const past = await rows(
      `SELECT complete_through <= now() AS complete, last_seen <= now() AS seen, to_at <= now() AS ended
       FROM plegwatch.epochs JOIN plegwatch.gaps USING (epoch)`,
    );
    expect(past).toEqual([{ complete: true, seen: true, ended: true }]);
    await sendInTurn(one.batch(10, events(10, 11)));
    const seen = await rows(`SELECT last_seen > now() - interval '1 min' AS lately FROM plegwatch.nodes`);
    expect(seen).toEqual([{ lately: true }]);
    expect(await unbelieved('time')).toBe(1);
  });

  it('a record with any time of the far future becomes a gap', async () => {
    const one = agentIncarnation('node-a');
    const t = 1_000;
    const far = 300 * US_PER_DAY;
    const absurd = [
      missedFinding({ t, window: { from: 0, to: far } }),
      streamSession({ t, closed: far }),
      relistMinute({ t, decided: far }),
      relistMinute({ t, span: far }),
      relistMinute({ t, statuses: slowStatusAt(far) }),
      nodeState({ t, modeSince: far }),
      { type: 'gap', t, gapId: randomUUID(), scope: 'list', cause: 'slow', from: 0, to: far } as const,
    ];
    await sendInTurn(one.batch(1, absurd));
    expect(await ackedSeq(one)).toBe(absurd.length);
    const gaps = await rows('SELECT DISTINCT cause, to_at <= now() AS past FROM plegwatch.gaps');
    expect(gaps).toEqual([{ cause: 'absurd_time', past: true }]);
  });

  it('slow statuses that no agent writes become gaps, and one without an identity is stored with its id', async () => {
    const one = agentIncarnation('node-a');
    const hostile = HOSTILE_STATUSES.map((statuses) => relistMinute({ t: 1_000, statuses }));
    const stranger = relistMinute({ t: 2_000, statuses: slowStatusAt(1_000) });
    await sendInTurn(one.batch(1, [...hostile, stranger]));
    expect(await ackedSeq(one)).toBe(hostile.length + 1);
    expect(
      await rows('SELECT cause, sum(records)::int4 AS records FROM plegwatch.gaps GROUP BY cause'),
    ).toEqual([{ cause: 'unreadable', records: hostile.length }]);
    expect(
      await rows(
        'SELECT container_id, pod_name, is_sandbox, status_ms, timed_out, asked, slow, longest_relist_ms FROM plegwatch.status_checks',
      ),
    ).toEqual([
      {
        ...{ container_id: hexId(7), pod_name: null, is_sandbox: true },
        ...{ status_ms: 5_000, timed_out: true, asked: 3, slow: 1 },
        // No relist was answered in this minute, which does not mean that they are quick.
        longest_relist_ms: null,
      },
    ]);
  });

  it('a number that no agent can count becomes a gap, and minutes can be read and added whatever is stored', async () => {
    const one = agentIncarnation('node-a');
    const minute = relistMinute({ t: 1_000, containerListBytes: 4_096, span: 60_000_000 });
    await sendInTurn(
      one.batch(1, [
        minute,
        relistMinute({ containerListBytes: 2 ** 53 - 1 }),
        relistMinute({ span: 2 ** 53 - 1 }),
      ]),
    );
    expect(await rows('SELECT cause, records FROM plegwatch.gaps')).toEqual([
      { cause: 'unreadable', records: 1 },
      { cause: 'unreadable', records: 1 },
    ]);
    await rows(
      `SELECT store.make_partition(t, current_date - 20) FROM unnest(ARRAY['relist_minute', 'relist_hour']) AS t`,
    );
    await rows(
      `WITH made AS MATERIALIZED (
         SELECT jsonb_populate_record(m, jsonb_build_object('seq', n, 'span_us', 9007199254740991, 'covered_us', 9007199254740991,
                'day', current_date - 20, 'minute', current_date - 20)) AS r
         FROM store.relist_minute m, generate_series(2, 1201) AS n)
       INSERT INTO store.relist_minute SELECT (r).* FROM made`,
    );
    const all = { span_ms: (1_200 * (2 ** 53 - 1)) / 1_000, container_list_bytes: 4_096 };
    expect(
      await rows('SELECT span_ms, container_list_bytes FROM plegwatch.relist_minutes ORDER BY minute'),
    ).toEqual([
      { ...all, span_ms: expect.closeTo(all.span_ms, -3) },
      { span_ms: 60_000, container_list_bytes: 4_096 },
    ]);
    expect((await maintain({ databaseUrl: bed.databaseUrl, log: silent })).kept).toEqual([]);
    expect(await rows('SELECT span_us, container_list_bytes FROM store.relist_hour ORDER BY hour')).toEqual([
      { span_us: '9223372036854775807', container_list_bytes: 4_096 },
      { span_us: '60000000', container_list_bytes: 4_096 },
    ]);
  });

  it('maintenance ends periods of the far future that are stored already', async () => {
    const one = agentIncarnation('node-a');
    await sendInTurn(one.batch(3, events(3, 4), { oldestSeq: 3 }));
    await rows(
      `UPDATE store.gap SET from_at = now() + interval '200 years', to_at = now() + interval '290 years'`,
    );
    await rows(`UPDATE store.epoch SET complete_through = now() + interval '290 years'`);
    await maintain({ databaseUrl: bed.databaseUrl, log: silent });
    const past = await rows(
      `SELECT complete_through <= now() AS complete, from_at <= now() AS began, to_at <= now() AS ended
       FROM plegwatch.epochs JOIN plegwatch.gaps USING (epoch)`,
    );
    expect(past).toEqual([{ complete: true, began: true, ended: true }]);
  });

  it('invented nodes are added only up to a number a day, and those that the cluster knows are always', async () => {
    await rows(
      `INSERT INTO store.node (cluster_id, name, claimed_at)
       SELECT cluster_id, 'invented-' || n, now() FROM store.cluster, generate_series(1, 5000) AS n`,
    );
    await rows(`INSERT INTO store.node (cluster_id, name) SELECT cluster_id, 'node-a' FROM store.cluster`);
    const known = agentIncarnation('node-a');
    const unknown = agentIncarnation('node-b');
    await sendInTurn(unknown.batch(1, events(1, 1)), known.batch(1, events(1, 1)));
    expect(await ackedSeq(known)).toBe(1);
    expect(await bed.sender.reply(unknown)).toBeNull();
    expect(await rows('SELECT reason, claimed_node FROM plegwatch.rejected')).toEqual([
      { reason: 'unknown_node', claimed_node: 'node-b' },
    ]);
    await rows(`UPDATE store.node SET claimed_at = now() - interval '25 hours' WHERE name = 'invented-1'`);
    await sendInTurn(unknown.batch(1, events(1, 1)));
    expect(await ackedSeq(unknown)).toBe(1);
  });

  it('maintenance deletes a node of which nothing was heard for the retention, and keeps every other one', async () => {
    const gone = agentIncarnation('node-a');
    const present = agentIncarnation('node-b');
    await sendInTurn(gone.batch(1, [nodeState({})]), present.batch(1, [nodeState({})]));
    const names = () => rows('SELECT node FROM plegwatch.nodes ORDER BY node');
    await maintain({ databaseUrl: bed.databaseUrl, log: silent });
    expect(await names()).toEqual([{ node: 'node-a' }, { node: 'node-b' }]);
    await rows(
      `WITH n AS (UPDATE store.node SET last_seen = now() - interval '500 days', claimed_at = now() - interval '500 days'
                  WHERE name = 'node-a' RETURNING node_id)
       UPDATE store.epoch e SET last_stored_at = now() - interval '500 days', closed_at = now() - interval '450 days', close_cause = 'abandoned'
       FROM n WHERE e.node_id = n.node_id`,
    );
    // No right beside the schema is needed for it.
    const name = new URL(bed.databaseUrl).username;
    await rows(`REVOKE TEMPORARY ON DATABASE ${name} FROM PUBLIC, ${name}`);
    await maintain({ databaseUrl: bed.databaseUrl, log: silent });
    expect(await names()).toEqual([{ node: 'node-b' }]);
  });
});
