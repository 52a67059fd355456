/*
 * Ingest from a real Redis to a real Postgres: every record is stored once in any order of arrival, and only committed records
 * are acknowledged.
 */
import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { Client } from 'pg';
import { beforeEach, expect, it, vi } from 'vitest';
import { MAX_REJECTED } from '../../src/controller/ingest/rejections.ts';
import type { Batch } from '../../src/protocol/batch.ts';
import { encodeBatch } from '../../src/protocol/batch.ts';
import { type EvidenceRecord, EXIT_REASONS } from '../../src/protocol/record.ts';
import {
  ackReplyKey,
  flowSettingsKey,
  parseFlowSettings,
  QUEUE_NAME,
  queueOf,
  queuePrefix,
} from '../../src/protocol/redisKeys.ts';
import { migrate } from '../../src/store/migrate.ts';
import { agentIncarnation, CLUSTER, objectOf } from '../support/batches.ts';
import { silent } from '../support/database.ts';
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

const QUEUES = 2;
const US_PER_DAY = 86_400_000_000;

needs('postgres', 'redis-server')('ingest', () => {
  const bed = new IngestBed(QUEUES);
  const { rows, drained, acked, storedSeqs } = bed;

  beforeEach(() => bed.start());

  const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

  it('stores an event with all known names of its container', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.send(
      one.batch(1, [
        event(5, { eventType: 2, exit: { code: 137, reason: 'OOMKilled' } }),
        event(6, { eventType: 9, containerId: 'cri-o://x', isSandbox: true }),
      ]),
    );
    await acked(one, 2);
    const [first, second] = await rows('SELECT * FROM plegwatch.container_events ORDER BY seq');
    expect(first).toMatchObject({
      ...{ cluster: CLUSTER, node: 'node-a', epoch: one.epoch, seq: 1, event_type: 'STOPPED' },
      ...{ container_id: hexId(5), sandbox_id: hexId(0xabc), is_sandbox: false, pod_uid: 'uid-1' },
      ...{ pod_namespace: 'shop', pod_name: 'cart-7', container_name: 'app', attempt: 2, replayed: false },
      ...{ has_sandbox_status: true, runtime_name: 'containerd', runtime_version: '2.1.4' },
      ...{ kubelet_version: 'v1.36.2', created_ns: '1790000000123456789' },
      ...{ exit_code: 137, exit_reason: 'OOMKilled' },
    });
    expect(second).toMatchObject({
      ...{ event_type: 'UNKNOWN(9)', container_id: 'cri-o://x', is_sandbox: true },
      ...{ exit_code: null, exit_reason: null },
    });
  });

  it('stores how containers ended: for each reason, with the largest code, and with one that is not known', async () => {
    const one = agentIncarnation('node-a');
    const exits = [
      ...EXIT_REASONS.map((reason, i) => ({ code: i, reason })),
      ...([127, 128, 255, null] as const).map((code) => ({ code, reason: 'Error' as const })),
    ];
    await bed.sender.send(
      one.batch(
        1,
        exits.map((exit, i) =>
          event(i + 1, {
            ...{ eventType: i % 2 === 0 ? 2 : 255, replayed: i % 3 === 0, isSandbox: i % 5 === 0 },
            exit,
          }),
        ),
      ),
    );
    await acked(one, exits.length);
    const stored = await rows(
      'SELECT event_type, replayed, is_sandbox, exit_code AS code, exit_reason AS reason FROM plegwatch.container_events ORDER BY seq',
    );
    expect(stored).toEqual(
      exits.map((exit, i) => ({
        event_type: i % 2 === 0 ? 'STOPPED' : 'UNKNOWN(255)',
        ...{ replayed: i % 3 === 0, is_sandbox: i % 5 === 0 },
        ...exit,
      })),
    );
  });

  it('shows an event whose identity and context are unknown', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.send(one.batch(1, [event(1)], { objects: [] }));
    await acked(one, 1);
    await rows('DELETE FROM store.container');
    await rows('DELETE FROM store.context');
    expect(await rows('SELECT seq, container_id, runtime_name FROM plegwatch.container_events')).toEqual([
      { seq: 1, container_id: null, runtime_name: null },
    ]);
  });

  it('stores every record once when batches are repeated, reordered and overlap', async () => {
    const one = agentIncarnation('node-a');
    const sent: Batch[] = [
      one.batch(21, events(21, 30)),
      one.batch(1, events(1, 10)),
      one.batch(5, events(5, 24)),
      one.batch(1, events(1, 10)),
      one.batch(11, events(11, 20)),
    ];
    for (const [at, batch] of [...sent, ...sent.toReversed()].entries())
      await bed.sender.send(batch, `b${at}`);
    await acked(one, 30);
    await drained();
    expect(await storedSeqs(one)).toEqual(upTo(30));
  });

  it('acknowledges contiguous records only, and again for a duplicate batch', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.send(one.batch(11, events(11, 20)));
    await acked(one, 0);
    await bed.sender.send(one.batch(1, events(1, 10)));
    await acked(one, 20);
    await bed.sender.redis.flushall();
    await bed.sender.send(one.batch(11, events(11, 20)), 'again');
    await acked(one, 20);
    const text = await bed.metrics.registry.metrics();
    expect(text).toContain('plegwatch_records_total{result="stored"} 20');
    expect(text).toContain('plegwatch_records_total{result="duplicate"} 10');
  });

  it('answers a probe in its ack generation', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.send(one.batch(1, events(1, 3)));
    await acked(one, 3);
    await bed.sender.send(one.batch(4, [], { ackGeneration: 7 }));
    await acked(one, 3, 7);
  });

  it('replaces a value of another type under the reply key', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.redis.set(ackReplyKey(CLUSTER, one.node), 'no hash');
    await bed.sender.send(one.batch(1, events(1, 3)));
    await acked(one, 3);
  });

  it('moves the acked seq over a declared lost range, and shrinks its gap when the records arrive after all', async () => {
    const one = agentIncarnation('node-a');
    const lost = [{ from: 3, to: 6, cause: 'spool_full' }];
    await bed.sender.send(one.batch(1, events(1, 2)));
    await acked(one, 2);
    await bed.sender.send(one.batch(7, events(7, 8), { lost, oldestSeq: 7 }));
    await acked(one, 8);
    await bed.sender.send(one.batch(9, events(9, 9), { lost, oldestSeq: 7 }));
    await acked(one, 9);
    const gap =
      'SELECT scope, cause, from_seq, to_seq, records, filled_at IS NOT NULL AS filled FROM plegwatch.gaps';
    const lostRange = { scope: 'seq', cause: 'spool_full', from_seq: 3, to_seq: 6 };
    expect(await rows(gap)).toEqual([{ ...lostRange, records: 4, filled: false }]);
    await bed.sender.send(one.batch(3, events(3, 4)));
    await drained();
    expect(await rows(gap)).toEqual([{ ...lostRange, records: 2, filled: false }]);
    await bed.sender.send(one.batch(5, events(5, 6)));
    await drained();
    expect(await rows(gap)).toEqual([{ ...lostRange, records: 0, filled: true }]);
    expect(await storedSeqs(one)).toEqual(upTo(9));
  });

  it('records below the oldest seq that are not stored are lost by the store, as after a restored backup', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.send(one.batch(101, events(101, 102), { oldestSeq: 101 }));
    await acked(one, 102);
    expect(await rows('SELECT cause, from_seq, to_seq, records FROM plegwatch.gaps')).toEqual([
      { cause: 'store_lost', from_seq: 1, to_seq: 100, records: 100 },
    ]);
  });

  it('closes an earlier incarnation once the spool no longer holds it', async () => {
    const first = agentIncarnation('node-a', 1);
    const second = agentIncarnation('node-a', 2, 30_000);
    const held = (last: number) => [
      { epoch: first.epoch, incarnation: 1, last: 5 },
      { epoch: second.epoch, incarnation: 2, last },
    ];
    await bed.sender.send(first.batch(1, events(1, 3)));
    await acked(first, 3);
    await bed.sender.send(second.batch(1, events(1, 1), { prev: first.epoch, held: held(1) }));
    await acked(second, 1);
    const epochs = 'SELECT end_cause, acked_seq FROM plegwatch.epochs ORDER BY incarnation';
    expect(await rows(epochs)).toEqual([
      { end_cause: 'superseded', acked_seq: 3 },
      { end_cause: null, acked_seq: 1 },
    ]);
    await bed.sender.send(second.batch(2, events(2, 2), { prev: first.epoch, held: held(2).slice(1) }));
    await acked(second, 2);
    expect(await rows(epochs)).toEqual([
      { end_cause: 'store_lost', acked_seq: 5 },
      { end_cause: null, acked_seq: 2 },
    ]);
    expect(await bed.sender.reply(first)).toBeNull();
  });

  it('closes an earlier incarnation that sent a probe and died before its first record', async () => {
    const first = agentIncarnation('node-a', 1);
    const second = agentIncarnation('node-a', 2, 30_000);
    await bed.sender.send(first.batch(1, []));
    await acked(first, 0);
    const held = [{ epoch: second.epoch, incarnation: 2, last: 1 }];
    await bed.sender.send(second.batch(1, events(1, 1), { prev: first.epoch, held }));
    await acked(second, 1);
    expect(
      await rows('SELECT end_cause, acked_seq, records_lost FROM plegwatch.epochs ORDER BY incarnation'),
    ).toEqual([
      { end_cause: 'released', acked_seq: 0, records_lost: 0 },
      { end_cause: null, acked_seq: 1, records_lost: 0 },
    ]);
  });

  it('rejects each kind of poisoned input and stores every good batch around it', async () => {
    const one = agentIncarnation('node-a');
    const queueNo = queueOf(one.node, QUEUES);
    await bed.stop();
    await bed.sender.send(one.batch(1, events(1, 2)));
    await bed.sender.sendText(queueNo, '{"broken', 'not-json');
    await bed.sender.sendData(queueNo, { z: 'bm90IHpzdGQ=' }, 'not-zstd');
    await bed.sender.sendData(queueNo, { z: 'bm90IHpzdGQ=' }, 'not-zstd-again');
    await bed.sender.send(
      { ...agentIncarnation('node-b').batch(1, events(1, 1)), cluster: 'other' },
      'other-cluster',
    );
    const newer: object = { ...one.batch(3, events(3, 4)), v: 2 };
    await bed.sender.sendData(queueNo, await encodeBatch(newer as Batch), 'newer');
    await bed.sender.send(one.batch(5, events(5, 6)));
    await bed.start();
    await drained();
    expect(await storedSeqs(one)).toEqual([1, 2, 5, 6]);
    expect(await bed.sender.reply(one)).toEqual({ ackGeneration: 1, ackedSeq: 2 });
    expect(
      await rows(
        'SELECT node, queue, reason, claimed_node, times FROM plegwatch.rejected ORDER BY reason, times',
      ),
    ).toEqual([
      { node: null, queue: queueNo, reason: 'not_a_batch', claimed_node: '', times: '2' },
      { node: null, queue: queueNo, reason: 'not_json', claimed_node: '', times: '1' },
      {
        node: null,
        queue: queueOf('node-b', QUEUES),
        reason: 'other_cluster',
        claimed_node: 'node-b',
        times: '1',
      },
    ]);
    expect(await rows('SELECT node FROM plegwatch.nodes')).toEqual([{ node: 'node-a' }]);
  });

  it('stores what a node sends although another node has named its epoch before', async () => {
    const own = agentIncarnation('node-a');
    const squatter = { ...agentIncarnation('node-b'), epoch: own.epoch };
    const lost = [{ from: 2, to: 900_000, cause: 'stolen' }];
    const more = { node: squatter.node, lost, first: 900_001, last: 900_001 };
    await bed.sender.send(own.batch(900_001, events(900_001, 900_001), more));
    await acked(squatter, 0);
    await bed.sender.send(own.batch(1, events(1, 3)));
    await acked(own, 3);
    expect(
      await rows(
        'SELECT node, acked_seq, records_stored::int AS records FROM plegwatch.epochs ORDER BY node',
      ),
    ).toEqual([
      { node: 'node-a', acked_seq: 3, records: 3 },
      { node: 'node-b', acked_seq: 0, records: 1 },
    ]);
    expect(await rows('SELECT DISTINCT node FROM plegwatch.gaps')).toEqual([{ node: 'node-b' }]);
  });

  it('keeps rejected inputs up to the cap, and counts those beyond it', async () => {
    await rows(
      `INSERT INTO store.rejected (cluster_id, hash, at, last_at, queue, reason, error, claimed_node, bytes, head)
       SELECT 1, sha256(n::text::bytea), now(), now(), 0, 'not_a_batch', '', '', 1, '' FROM generate_series(1, $1::int) AS n`,
      [MAX_REJECTED],
    );
    for (const n of [1, 2, 3]) await bed.sender.sendData(0, { z: `junk ${n}` }, `junk-${n}`);
    await drained();
    expect(await rows("SELECT reason, times FROM plegwatch.rejected WHERE reason = 'over_the_cap'")).toEqual([
      { reason: 'over_the_cap', times: '3' },
    ]);
    expect(await rows('SELECT count(*)::int AS n FROM store.rejected')).toEqual([{ n: MAX_REJECTED + 1 }]);
  });

  it('a record that cannot be stored becomes a gap with its bytes, and the others are stored', async () => {
    const one = agentIncarnation('node-a');
    // Valid JSON that Postgres cannot store as text: it passes every check and the database refuses it.
    const finding = missedFinding({ proof: { v: 1, text: '\ud800' } });
    const bad = [
      { ...event(2), id: 'a\0b' },
      { ...event(3), createdNs: '9999999999999999999' },
      { ...event(4), t: 30 * US_PER_DAY },
      { ...event(5), t: -20 * US_PER_DAY },
      finding,
    ];
    const records = [event(1), ...bad, event(7)];
    await bed.sender.send(one.batch(1, records, { objects: [objectOf(hexId(1))] }));
    await acked(one, 7);
    expect(await storedSeqs(one)).toEqual([1, 7]);
    const gaps = await rows<{ record_bytes: Buffer | null }>(
      'SELECT scope, cause, from_seq, records, record_bytes FROM plegwatch.gaps ORDER BY from_seq',
    );
    expect(gaps).toMatchObject([
      { scope: 'seq', cause: 'unreadable', from_seq: 2, records: 1 },
      { scope: 'seq', cause: 'unreadable', from_seq: 3, records: 1 },
      { scope: 'seq', cause: 'absurd_time', from_seq: 4, records: 1 },
      { scope: 'seq', cause: 'expired', from_seq: 5, records: 1, record_bytes: null },
      { scope: 'seq', cause: 'refused_by_database', from_seq: 6, records: 1 },
    ]);
    expect(gaps[0]?.record_bytes?.toString()).toContain('a\\u0000b');
    expect(gaps[4]?.record_bytes?.toString()).toContain('\\ud800');
    await bed.sender.send(one.batch(1, records, { objects: [] }), 'again');
    await drained();
    expect(await rows('SELECT count(*)::int AS n FROM store.gap')).toEqual([{ n: 5 }]);
  });

  it('creates the partitions for an old day that a returning agent sends', async () => {
    const one = agentIncarnation('node-a', 1, 10 * 86_400_000);
    await bed.sender.send(one.batch(1, events(1, 2)));
    await acked(one, 2);
    expect(await storedSeqs(one)).toEqual([1, 2]);
    // On another day, and with nothing else that names a container.
    const other = agentIncarnation('node-a', 2, 9 * 86_400_000);
    const slowest = { containerId: hexId(7), isSandbox: true, at: 0, took: 5_000_000, timedOut: true };
    await bed.sender.send(other.batch(1, [relistMinute({ statuses: { asked: 1, slow: 1, slowest } })]));
    await acked(other, 1);
    expect(await rows('SELECT container_id FROM plegwatch.status_checks')).toEqual([
      { container_id: hexId(7) },
    ]);
  });

  it("dates an epoch by the store's clock while the agent's is more than a day off", async () => {
    const one = agentIncarnation('node-a');
    const batch = one.batch(1, events(1, 1));
    const [sent] = await rows<{ at: Date }>('SELECT now() AS at');
    await bed.sender.send({ ...batch, wall0: batch.wall0 + 400 * US_PER_DAY });
    await acked(one, 1);
    // Its first batch says how long ago it started; that counts from some moment between sending and acknowledgement.
    const [row] = await rows<{ between: boolean }>(
      `SELECT started_at + $2 * interval '1 us' BETWEEN $1 AND now() AS between FROM plegwatch.epochs`,
      [sent?.at, batch.mono0],
    );
    expect(row).toEqual({ between: true });
  });

  it('keeps the state of the highest incarnation and seq, in any order of arrival', async () => {
    const older = agentIncarnation('node-a', 1);
    const newer = agentIncarnation('node-a', 2, 30_000);
    await bed.sender.send(newer.batch(1, [nodeState({ mode: 'Starting' }), nodeState({ mode: 'Fallback' })]));
    await acked(newer, 2);
    await bed.sender.send(older.batch(1, [nodeState({ mode: 'Evented' })]));
    await acked(older, 1);
    expect(await rows('SELECT mode, stream_state, runtime_version FROM plegwatch.nodes')).toEqual([
      { mode: 'Fallback', stream_state: 'Active', runtime_version: '2.1.4' },
    ]);
    expect(await rows('SELECT version::int, urgent FROM store.report_queue')).toEqual([
      { version: 2, urgent: true },
    ]);
  });

  it('ends sessions and gaps the same way in any order of arrival', async () => {
    const one = agentIncarnation('node-a');
    const gap = randomUUID();
    const records: EvidenceRecord[] = [
      { type: 'gap', t: 9, gapId: gap, scope: 'stream', cause: 'broken', from: 4, to: null },
      { type: 'gap', t: 9, gapId: gap, scope: 'stream', cause: 'broken', from: 4, to: 8 },
      streamSession(),
      streamSession({
        t: 9,
        armed: 2,
        closed: 8,
        code: 'UNAVAILABLE',
        message: 'gone',
        events: 5,
        replayed: 1,
      }),
    ];
    await bed.sender.send(one.batch(1, records));
    await acked(one, 4);
    const ended = async (node: string) => [
      await rows(
        'SELECT armed_at IS NOT NULL AS armed, code, message, events::int, replayed::int FROM plegwatch.stream_sessions WHERE node = $1',
        [node],
      ),
      await rows('SELECT scope, cause, to_at > from_at AS closed FROM plegwatch.gaps WHERE node = $1', [
        node,
      ]),
    ];
    expect(await ended('node-a')).toEqual([
      [{ armed: true, code: 'UNAVAILABLE', message: 'gone', events: 5, replayed: 1 }],
      [{ scope: 'stream', cause: 'broken', closed: true }],
    ]);
    const other = agentIncarnation('node-b');
    for (const [at, record] of records.entries()) await bed.sender.send(other.batch(4 - at, [record]));
    await acked(other, 4);
    expect(await ended('node-b')).toEqual(await ended('node-a'));
  });

  it('drains queues that agents no longer use', async () => {
    await bed.stop();
    await migrate({ databaseUrl: bed.databaseUrl, queues: 1, log: silent });
    const one = agentIncarnation('node-a');
    await bed.sender.sendData(1, await encodeBatch(one.batch(1, events(1, 2))), 'left-behind');
    await bed.start();
    await acked(one, 2);
    await passes(async () => {
      expect(parseFlowSettings((await bed.sender.redis.get(flowSettingsKey(CLUSTER))) ?? '')).toMatchObject({
        value: { queues: 1 },
      });
    });
  });

  it('handles an input whose job another controller has added and left', async () => {
    const one = agentIncarnation('node-a');
    const [queue, id] = [queueOf(one.node, QUEUES), 'test.left'];
    const jobs = new Queue(QUEUE_NAME, {
      connection: bed.sender.redis,
      prefix: queuePrefix(CLUSTER, queue),
      skipVersionCheck: true,
    });
    const input = await encodeBatch(one.batch(3, events(3, 4)));
    await bed.sender.send(one.batch(1, events(1, 2)));
    await acked(one, 2);
    await jobs.add('input', null, { jobId: id });
    await bed.sender.sendData(queue, input, id);
    await acked(one, 4);
    await jobs.close();
  });

  it('publishes the flow settings to the agents', async () => {
    await passes(async () => {
      const flow = parseFlowSettings((await bed.sender.redis.get(flowSettingsKey(CLUSTER))) ?? '');
      expect(flow).toMatchObject({ ok: true, value: { queues: QUEUES, window: 1024 * 1024, accepts: [1] } });
    });
    expect(await bed.sender.redis.ttl(flowSettingsKey(CLUSTER))).toBeGreaterThan(60);
  });

  it('stores a batch with the same statements, however many records it has', async () => {
    const one = agentIncarnation('node-a');
    await bed.sender.send(one.batch(1, events(1, 1)));
    await acked(one, 1);
    const query = vi.spyOn(Client.prototype, 'query');
    /** The statements that the connection which stored the batch ran meanwhile, from the beginning of the transaction to its end. */
    const statementsOf = async (first: number, last: number): Promise<string[]> => {
      query.mockClear();
      await bed.sender.send(one.batch(first, events(first, last)));
      await acked(one, last);
      const texts = query.mock.calls.map(([statement]) => String(Object(statement).text ?? statement));
      const insert = texts.findIndex((text) => text.includes('INSERT INTO store.container_event'));
      const isMine = (_: string, i: number) => query.mock.contexts[i] === query.mock.contexts[insert];
      const before = texts.slice(0, insert).filter(isMine);
      const after = texts.filter((text, i) => i >= insert && isMine(text, i));
      const begin = before.findLastIndex((text) => text.startsWith('BEGIN'));
      return [...before.slice(begin), ...after.slice(0, after.indexOf('COMMIT') + 1)];
    };
    try {
      const few = await statementsOf(2, 2);
      expect(few.length).toBeGreaterThan(3);
      expect(await statementsOf(3, 502)).toEqual(few);
    } finally {
      query.mockRestore();
    }
  });
});
