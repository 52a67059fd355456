/*
 * Hours hold what their minutes add up to, and answers that are read from hours are those of the minutes.
 */
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readEvidence } from '../../src/controller/reports/evidence.ts';
import type { Batch } from '../../src/protocol/batch.ts';
import type { EvidenceRecord, KubeletMinute } from '../../src/protocol/record.ts';
import { repair } from '../../src/store/repair.ts';
import { openStore } from '../../src/store/store.ts';
import { agentIncarnation, agentStartedAt, CLUSTER } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { missedFinding, relistMinute, streamSession } from '../support/records.ts';
import { writeHistory } from '../support/storedHistory.ts';

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
/** Once, because midnight may come between two tests. */
const TODAY_MS = new Date().setUTCHours(0, 0, 0, 0);

const ADDED = [
  ...['span_us', 'covered_us', 'relists', 'errors', 'expected', 'matched', 'unobservable'],
  ...[
    'relists',
    'discarded',
    'intervals',
    'interval_us',
    'relist_us',
    'cpu_us',
    ...['sandbox_lists', 'sandbox_list_errors', 'sandbox_list_us'],
    ...['container_lists', 'container_list_errors', 'container_list_us'],
    ...['sandbox_statuses', 'sandbox_status_errors', 'sandbox_status_us'],
    ...['container_statuses', 'container_status_errors', 'container_status_us'],
  ].map((column) => `kubelet_${column}`),
  ...['pressure_us', 'cpu_some_us', 'io_some_us', 'io_full_us', 'memory_some_us', 'memory_full_us'],
];
const GREATEST = [
  ...[
    'max_us',
    'sandboxes',
    'containers',
    ...['exited_sandboxes', 'exited_containers', 'sandbox_list_bytes', 'container_list_bytes'],
    'kubelet_last_seen_age_ms',
    'kubelet_stream_errors',
    'kubelet_list_p99_ms',
  ],
  ...['kubelet_longest_list_us', 'kubelet_resident_bytes'],
];
const COUNTED_US = 'extract(epoch FROM kubelet_counted_to - kubelet_counted_from) * 1e6';

/** The sums of a histogram's buckets, of the minutes `m` of the hour. */
const histOf = (column: string) => `(SELECT array_agg(n ORDER BY i) FROM (
    SELECT b.i, sum(b.n) AS n FROM store.relist_minute o, unnest(o.${column}) WITH ORDINALITY AS b (n, i)
    WHERE o.node_id = m.node_id AND o.context_id = m.context_id AND o.day = m.day
      AND date_trunc('hour', o.minute, 'UTC') = m.hour
    GROUP BY b.i) bucket)`;

/** How many minutes of the hour rows begin in, or begin before and end after. */
const MINUTES = `(SELECT count(*) FROM generate_series(m.hour, m.hour + interval '59 minutes', interval '1 minute') AS e (minute)
    WHERE EXISTS (SELECT FROM store.relist_minute o
      WHERE o.node_id = m.node_id AND o.context_id = m.context_id AND o.day = m.day AND date_trunc('hour', o.minute, 'UTC') = m.hour
        AND (e.minute = o.minute OR e.minute > o.minute AND e.minute + interval '1 minute' <= o.ended_at)))`;

/** The hours that all minutes add up to. */
const HOURS = `SELECT to_jsonb(added) AS hour FROM (
  SELECT hour, day, node_id, context_id, cluster_id,
         ${MINUTES} AS minutes, sum(CASE WHEN relists > 0 THEN span_us ELSE 0 END) AS listed_us,
         ${ADDED.map((column) => `sum(${column}) AS ${column}`).join()}, ${GREATEST.map((column) => `max(${column}) AS ${column}`).join()},
         trunc(sum(${COUNTED_US})) AS kubelet_counted_us,
         trunc(sum(CASE WHEN kubelet_cpu_us IS NOT NULL THEN ${COUNTED_US} END)) AS kubelet_cpu_counted_us,
         coalesce(${histOf('hist')}, '{}') AS hist,
         CASE WHEN sum(kubelet_relists) IS NOT NULL THEN coalesce(${histOf('kubelet_hist')}, '{}') END AS kubelet_hist,
         ${['kubelet_start_hist', 'kubelet_stop_hist'].map((each) => `CASE WHEN count(${each}) > 0 THEN coalesce(${histOf(each)}, '{}') END AS ${each}`).join()}
  FROM (SELECT *, date_trunc('hour', minute, 'UTC') AS hour FROM store.relist_minute) m
  GROUP BY hour, day, node_id, context_id, cluster_id
) added`;
const STORED = `SELECT to_jsonb(h) - 'minute_bits' || jsonb_build_object('minutes', bit_count(minute_bits::bit(64))) AS hour FROM store.relist_hour h`;
const DIFFERENT = `(${STORED} EXCEPT ALL ${HOURS}) UNION ALL (${HOURS} EXCEPT ALL ${STORED})`;

/** By context, from $1 to $2. */
const MATCHED = `SELECT x.cluster_id, x.runtime_name, x.runtime_version, x.kubelet_version, sum(m.matched) AS matched
  FROM store.relist_minute m JOIN store.context x USING (context_id)
  WHERE m.minute >= $1 AND m.minute < $2
  GROUP BY 1, 2, 3, 4 HAVING sum(m.matched) > 0`;
const ANSWERED = `SELECT c.cluster_id, r.runtime_name, r.runtime_version, r.kubelet_version, r.decided - r.missed AS matched
  FROM plegwatch.miss_rate($1, $2) r JOIN store.cluster c ON c.name = r.cluster WHERE r.decided > r.missed`;

const bucketsOf = (n: number, length: number) =>
  Array.from({ length }, (_, i) => (i <= n % length ? (n + i) % 7 : 0));

/** Some of a minute are too short to be kept. */
const waits = (n: number) => ({
  ...{
    cpuSome: 50 * (n % 17),
    ioSome: 20 * (n % 23),
    ioFull: 10 * (n % 23),
    memorySome: 30 * (n % 3),
    memoryFull: 0,
  },
});

/** In some the calls were not counted, and in others the processor time was not reported. */
const kubeletMinute = (n: number): KubeletMinute => ({
  scraped: { from: n * MINUTE, to: n * MINUTE + 45_000_000 },
  ...{ relists: n, hist: bucketsOf(n, 12), intervals: n, intervalSum: 1000 * n },
  lastSeenAge: n % 4 === 0 ? null : ((n * 31) % 97) * 1000,
  ...{
    discarded: n % 3,
    streamErrors: n % 6,
    listP99: n * 10,
    resident: n % 7 === 0 ? null : (n * 101) % 1009,
  },
  ...(n % 3 === 0
    ? {}
    : {
        calls: {
          ...{ from: n * MINUTE, to: n * MINUTE + 45_000_000 + n, relistSum: n },
          sandboxLists: { calls: 2 * n, errors: n % 2, sum: 3 * n },
          containerLists: { calls: 2 * n + 1, errors: n % 3, sum: 5 * n },
          sandboxStatuses: { calls: n % 5, errors: 0, sum: 7 * n },
          containerStatuses: { calls: n % 7, errors: n % 4, sum: 11 * n },
          ...{ longestList: (n * 17) % 101, cpu: n % 4 === 0 ? null : 7 * n },
        },
      }),
});

needs('postgres')('hours', () => {
  let server: TestServer;
  let history: string;
  let client: Client;

  beforeAll(async () => {
    server = await startServer();
    history = await server.database();
    // Something happens on each node in each minute record.
    await writeHistory(history, { nodes: 3, days: 8, lives: 145, step: 600 });
    client = new Client({ connectionString: history });
    await client.connect();
  });
  afterAll(async () => {
    await client?.end();
    await server?.stop();
  });

  it.each([
    ['whole hours', 36 * 60, 2 * 60],
    ['from within an hour until within another one', 36 * 60 - 17, 2 * 60 - 43.5],
    ['a part of one hour', 29 * 60 - 15, 29 * 60 - 55],
    ['the parts of two hours', 29 * 60 - 40, 29 * 60 - 80],
    ['one hour', 29 * 60, 28 * 60],
    ['no time', 29 * 60, 29 * 60],
    ['all days', 100 * 1440, -1440],
  ])('the miss rate of %s is that of its minutes', async (_what, from, to) => {
    // Where clocks differ by half an hour from UTC, hours begin at another time.
    for (const zone of ['UTC', 'Asia/Kolkata']) {
      await client.query(`SET TIME ZONE '${zone}'`);
      const { rows } = await client.query(
        `SELECT date_trunc('hour', now()) - $1 * interval '1 minute' AS since, date_trunc('hour', now()) - $2 * interval '1 minute' AS until`,
        [from, to],
      );
      const period = [rows[0].since, rows[0].until];
      const expected = await client.query(`${MATCHED} ORDER BY 1, 2, 3, 4`, period);
      const answered = await client.query(`${ANSWERED} ORDER BY 1, 2, 3, 4`, period);
      expect(answered.rows).toEqual(expected.rows);
      expect(expected.rows.length > 0).toBe(from !== to);
    }
  });

  it('the miss rate of all time is that of all minutes', async () => {
    const expected = await client.query('SELECT sum(matched)::text AS matched FROM store.relist_minute');
    const answered = await client.query(
      `SELECT sum(decided - missed)::text AS matched FROM plegwatch.miss_rate('-infinity', 'infinity')`,
    );
    expect(answered.rows).toEqual(expected.rows);
  });

  it.each([
    ['whole days', 4 * 1440, 0],
    ['from within an hour in which labels changed', 3 * 1440 - 10 * 60 - 30, 1440],
    ['of that hour', 3 * 1440 - 10 * 60, 3 * 1440 - 11 * 60],
    ['until within that hour', 6 * 1440, 3 * 1440 - 10 * 60 - 33.5],
  ])('the miss rate by label of %s is that of its minutes', async (_what, from, to) => {
    const nodes = await query(
      history,
      "SELECT node_id FROM store.node_info WHERE kernel_version = 'changed'",
    );
    if (nodes.length === 0)
      // Twice within one hour, three days ago.
      await query(
        history,
        `INSERT INTO store.node_info (node_id, cluster_id, at, labels, os_image, kernel_version)
         SELECT n.node_id, n.cluster_id, $1::timestamptz - interval '3 days' + c.after, jsonb_build_object('pool', c.pool), '', 'changed'
         FROM store.node n, (VALUES (interval '10 hours 23 minutes', 'first'), ('10 hours 41 minutes', 'second')) AS c (after, pool)
         WHERE n.first_seen IS NOT NULL`,
        [new Date(TODAY_MS)],
      );
    const period = [from, to].map((minutes) => new Date(TODAY_MS - minutes * 60_000));
    const expected = await client.query(
      `SELECT x.cluster_id, i.labels ->> 'pool' AS label, x.kubelet_version, x.runtime_version, sum(m.matched) AS matched
       FROM store.relist_minute m JOIN store.context x USING (context_id)
       JOIN store.node_info_period i ON i.node_id = m.node_id AND m.minute >= i.from_at AND m.minute < i.to_at
       WHERE m.minute >= $1 AND m.minute < $2 GROUP BY 1, 2, 3, 4 HAVING sum(m.matched) > 0 ORDER BY 1, 2, 3, 4`,
      period,
    );
    const answered = await client.query(
      `SELECT c.cluster_id, r.label, r.kubelet_version, r.runtime_version, r.decided - r.missed AS matched
       FROM plegwatch.miss_rate($1, $2, 'pool') r JOIN store.cluster c ON c.name = r.cluster WHERE r.decided > r.missed ORDER BY 1, 2, 3, 4`,
      period,
    );
    expect(expected.rows.map(({ label }) => label)).toContain('first');
    expect(answered.rows.map((row) => ({ ...row, matched: Number(row.matched) }))).toEqual(
      expected.rows.map((row) => ({ ...row, matched: Number(row.matched) })),
    );
  });

  it('a node is ready by the minutes of seven days', async () => {
    const { rows } = await client.query(
      `SELECT count(*)::int4 AS nodes, count(m.node_id)::int4 AS observed,
              count(*) FILTER (WHERE abs(coalesce(r.observed_hours, -1) - coalesce(m.span_us / 3.6e9, -1)) > 1e-6
                OR abs(coalesce(r.coverage, -1) - coalesce(m.covered_us / m.span_us, -1)) > 1e-6
                OR r.decided - r.missed IS DISTINCT FROM coalesce(m.matched, 0))::int4 AS different
       FROM plegwatch.readiness r
       JOIN store.cluster c ON c.name = r.cluster
       JOIN store.node n ON n.cluster_id = c.cluster_id AND n.name = r.node
       LEFT JOIN (
         SELECT node_id, sum(matched) FILTER (WHERE minute >= since)::float8 AS matched, sum(covered_us * part)::float8 AS covered_us,
                sum(span_us * part)::float8 AS span_us
         FROM store.relist_minute, LATERAL (SELECT now() - interval '7 days' AS since) p,
              LATERAL (SELECT least(1, extract(epoch FROM ended_at - since) * 1e6 / span_us) AS part) q
         WHERE ended_at > since GROUP BY node_id
       ) m USING (node_id)`,
    );
    expect(rows).toEqual([{ nodes: 7, observed: 6, different: 0 }]);
  });

  it('evidence is as complete as its minutes', async () => {
    const { rows } = await client.query(
      `SELECT count(*)::int4 AS days, count(*) FILTER (WHERE abs(e.decided_share - m.decided_share) > 1e-12)::int4 AS different
       FROM plegwatch.evidence_completeness((SELECT min(day) FROM store.relist_minute), (SELECT max(day) FROM store.relist_minute)) e
       JOIN (
         SELECT c.name AS cluster, m.day, 1 - sum(m.unobservable)::float8 / sum(m.expected) AS decided_share
         FROM store.relist_minute m JOIN store.cluster c USING (cluster_id) GROUP BY 1, 2
       ) m USING (cluster, day)`,
    );
    expect(rows).toEqual([{ days: 16, different: 0 }]);
  });

  it('hold what the minutes of a history add up to', async () => {
    expect(await query(history, DIFFERENT)).toEqual([]);
  });

  it('without a relist that succeeded, no minute and no hour has a duration', async () => {
    const databaseUrl = await server.database();
    const failed = relistMinute({ t: 0, span: MINUTE, relists: 0, errors: 3, max: 0, hist: [], lists: [] });
    await commitAll(databaseUrl, [agentIncarnation('node-a').batch(1, [failed])]);
    for (const view of ['relist_minutes', 'relist_hours']) {
      const durations = `SELECT errors::int4, p50_ms, p90_ms, p99_ms, max_ms FROM plegwatch.${view}`;
      expect(await query(databaseUrl, durations)).toEqual([
        { errors: 3, p50_ms: null, p90_ms: null, p99_ms: null, max_ms: null },
      ]);
    }
  });

  it.each([60, 61, 75, 89, 90, 91, 100, 119, 600])(
    'rows of up to %i s that follow one another leave no minute of an hour out',
    async (seconds) => {
      const databaseUrl = await server.database();
      const HOUR = 3_600_000;
      const started = Math.floor(Date.now() / HOUR - 4) * HOUR;
      const node = agentStartedAt('node-a', 1, started);
      const rows: EvidenceRecord[] = [];
      for (let from = 7.5; from < 3 * 3_600; ) {
        // As the agent: after a minute, a row ends when the hour has passed.
        const hour = (Math.floor(from / 3_600) + 1) * 3_600 + 0.5;
        const to = Math.min(from + seconds, Math.max(hour, from + 60));
        rows.push(relistMinute({ t: from * 1e6, span: (to - from) * 1e6, lists: [] }));
        from = to;
      }
      await commitAll(databaseUrl, [node.batch(1, rows)]);
      expect(await query(databaseUrl, DIFFERENT)).toEqual([]);
      const hours = 'SELECT minutes FROM plegwatch.relist_hours ORDER BY hour LIMIT 3';
      expect(await query(databaseUrl, hours)).toEqual([{ minutes: 60 }, { minutes: 60 }, { minutes: 60 }]);
    },
  );

  it('a minute is added to its hour once, however late and however often it arrives', async () => {
    const databaseUrl = await server.database();
    const node = agentIncarnation('node-a', 1, 4 * 3_600_000);
    const minutes = Array.from({ length: 150 }, (_, n) =>
      relistMinute({
        ...{ t: n * MINUTE, span: MINUTE - n, relists: n % 3, covered: n, lists: [] },
        ...{
          expected: 3 * n,
          matched: 2 * n,
          unobservable: n,
          errors: n % 2,
          max: (n * 7919) % 5000,
          ...{ exitedContainers: n % 17, sandboxListBytes: (n * 31) % 97, containerListBytes: (n * 37) % 89 },
        },
        ...{ sandboxes: n % 11, containers: n % 13, hist: bucketsOf(n, 24) },
        ...(n % 5 === 0 ? {} : { kubelet: kubeletMinute(n) }),
        ...(n % 4 === 0 ? {} : { pressure: { span: 1_000 * n, ...waits(n) } }),
        ...(n % 3 === 0 ? {} : { kubeletLag: { starts: bucketsOf(n, 18), stops: bucketsOf(n + 1, 18) } }),
      }),
    );
    const batch = (from: number, to: number) => node.batch(from + 1, minutes.slice(from, to));
    const upgraded = (from: number, to: number) => {
      const before = batch(from, to);
      return { ...before, context: { ...before.context, no: 2, kubelet: 'v1.37.0' } };
    };
    await commitAll(databaseUrl, [batch(0, 7), upgraded(90, 150), batch(40, 90), batch(40, 90)]);
    await commitAll(databaseUrl, [batch(7, 40), batch(0, 90)]);
    const other = agentIncarnation('node-b', 1, 4 * 3_600_000);
    // It passes every check and Postgres refuses it, so that its batch is rolled back and stored record by record.
    const refused = missedFinding({ proof: { v: 1, text: '\ud800' } });
    await commitAll(databaseUrl, [other.batch(1, [...minutes, refused])]);
    const counted = 'SELECT count(*)::int4 AS minutes FROM store.relist_minute';
    expect(await query(databaseUrl, counted)).toEqual([{ minutes: 300 }]);
    expect(await query(databaseUrl, DIFFERENT)).toEqual([]);
    await repair({ databaseUrl, cluster: CLUSTER, log: silent, node: 'node-b', forgetEpoch: other.epoch });
    expect(await query(databaseUrl, counted)).toEqual([{ minutes: 150 }]);
    expect(await query(databaseUrl, DIFFERENT)).toEqual([]);
  });

  it('a period has what is within it of rows that go on beyond an hour, and of hours that follow one another each what its rows say', async () => {
    const databaseUrl = await server.database();
    const hour = 3_600_000;
    const start = Math.floor(Date.now() / hour) * hour - 6 * hour;
    const one = agentStartedAt('node-a', 1, start);
    // Ten minutes each, but for those that end in the first minute after an hour.
    const ends = [10, 20, 30, 40, 50, 60.5, 70, 80, 90, 100, 110, 120.75, 130].map((m) => m * MINUTE);
    const rows = ends.map((end, i) => {
      const t = ends[i - 1] ?? 0;
      const span = end - t;
      return relistMinute({ t, span, covered: span, wall: start * 1000 + end });
    });
    await commitAll(databaseUrl, [one.batch(1, rows)]);
    const covered = async (from: number, to: number) => {
      const [sum] = await query<{ minutes: number }>(
        databaseUrl,
        'SELECT (sum(covered_us) / 6e7)::float8 AS minutes FROM store.coverage($1, $2)',
        [from, to].map((minutes) => new Date(start + minutes * 60_000)),
      );
      return sum?.minutes;
    };
    expect(await Promise.all([covered(60, 90), covered(60.25, 60.75), covered(30, 90)])).toEqual([
      30, 0.5, 60,
    ]);
    expect(await Promise.all([covered(0, 60), covered(60, 120), covered(0, 120)])).toEqual([
      60.5, 60.25, 120.75,
    ]);
  });

  it('the time that a killed agent watched after its last row, while nothing happened, counts as covered', async () => {
    const databaseUrl = await server.database();
    const [written, killed, down, since] = [3_600, 500, 15, 600];
    const dead = agentIncarnation('node-a', 1, (written + killed + down + since) * 1000);
    const next = agentIncarnation('node-a', 2, since * 1000);
    const row = (from: number, to: number) => {
      const span = (to - from) * SECOND;
      return relistMinute({ t: from * SECOND, span, covered: span, decided: to * SECOND });
    };
    const sealedAt = (seconds: number, batch: Batch): Batch => ({
      ...batch,
      ...{ mono0: seconds * SECOND, wall0: batch.wall0 - batch.mono0 + seconds * SECOND },
    });
    const session = streamSession({ t: 1, opened: 1, armed: 1 });
    const rows = [0, 600, 1_200, 1_800, 2_400, 3_000].map((from) => row(from, from + 600));
    const known = { decided: (written + killed - 10) * SECOND, scraped: null };
    await commitAll(databaseUrl, [
      sealedAt(written + 1, dead.batch(1, [session, ...rows])),
      sealedAt(written + killed, dead.batch(8, [], { known })),
      next.batch(1, [row(0, since - 5)]),
    ]);
    const store = await openStore({ databaseUrl, log: silent });
    try {
      const [node] = await query<{ node_id: number }>(databaseUrl, 'SELECT node_id FROM store.node');
      const { rows: evidence } = await store.run(readEvidence, [[node?.node_id]]);
      // The end of an epoch of which no agent says how it ended is three seconds before its last sign.
      expect(evidence[0]?.covered_us).toBe((written + killed - 3 + since - 5) * SECOND);
    } finally {
      await store.close();
    }
  });
});
