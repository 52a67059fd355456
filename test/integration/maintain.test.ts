/*
 * Maintenance on a real Postgres: what is made, what is dropped, and what is given up.
 */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { maintain } from '../../src/store/maintain.ts';
import { migrate } from '../../src/store/migrate.ts';
import { agentIncarnation } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { events, missedFinding, streamSession } from '../support/records.ts';
import { waitFor } from '../support/waitFor.ts';

needs('postgres')('maintenance', () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.stop());

  const partitionOf = (databaseUrl: string, table: string, daysAgo: number) =>
    query(databaseUrl, 'SELECT store.make_partition($1, current_date - $2::int)', [table, daysAgo]);

  const nameOf = async (databaseUrl: string, table: string, daysAgo: number) => {
    const rows = await query<{ name: string }>(
      databaseUrl,
      'SELECT store.partition_name($1, current_date - $2::int) AS name',
      [table, daysAgo],
    );
    return rows[0]?.name ?? '';
  };

  it('drops only the days beyond the retention, and keeps their minutes as hours', async () => {
    const databaseUrl = await server.database();
    const tables = ['container_event', 'relist_minute'];
    for (const daysAgo of [14, 15, 20]) {
      for (const table of [...tables, 'relist_hour']) await partitionOf(databaseUrl, table, daysAgo);
    }
    await query(databaseUrl, "INSERT INTO store.node (cluster_id, name) VALUES (1, 'node-a')");
    await query(
      databaseUrl,
      `INSERT INTO store.relist_minute (minute, day, node_id, context_id, seq, cluster_id, relists, errors, max_us, hist, sandboxes,
                                 containers, exited_sandboxes, exited_containers, sandbox_list_bytes, container_list_bytes, expected, matched,
                                 unobservable, covered_us, span_us, ended_at, wall_at, lists)
       SELECT current_date - 20 + n * interval '1 minute', current_date - 20, 1, 1, n, 1, 12, 0, 5000, '{1,2}', 3, 4, 0, 0, 5, 5, 2, 1, 0, 60000000,
              60000000, current_date - 20 + (n + 1) * interval '1 minute', current_date - 20 + (n + 1) * interval '1 minute', ''
       FROM generate_series(1, 70) AS n`,
    );
    const done = await maintain({ databaseUrl, log: silent });
    expect(done.dropped).toEqual(
      (
        await Promise.all(
          tables.flatMap((table) => [nameOf(databaseUrl, table, 20), nameOf(databaseUrl, table, 15)]),
        )
      ).sort(),
    );
    expect(
      await query(
        databaseUrl,
        'SELECT minutes, relists::int, hist, expected::int FROM plegwatch.relist_hours ORDER BY hour',
      ),
    ).toEqual([
      { minutes: 59, relists: 59 * 12, hist: [59, 118], expected: 118 },
      { minutes: 11, relists: 11 * 12, hist: [11, 22], expected: 22 },
    ]);
    expect((await maintain({ databaseUrl, log: silent })).dropped).toEqual([]);
  });

  it('drops partitions by the retention settings of the database', async () => {
    const databaseUrl = await server.database();
    await partitionOf(databaseUrl, 'relist_change', 5);
    await query(databaseUrl, "UPDATE store.setting SET value = '3' WHERE key = 'event_retention_days'");
    const done = await maintain({ databaseUrl, log: silent });
    expect(done.dropped).toEqual([await nameOf(databaseUrl, 'relist_change', 5)]);
  });

  it('deletes what waits for OpenTelemetry and is no longer stored', async () => {
    const databaseUrl = await server.database();
    await query(databaseUrl, "INSERT INTO store.node (cluster_id, name) VALUES (1, 'node-a')");
    await query(
      databaseUrl,
      `INSERT INTO store.otlp_outbox (cluster_id, node_id, day, what, context_id, seq)
       SELECT 1, node_id, current_date - days, 'finding', 1, days FROM store.node, unnest('{0,1000}'::int4[]) AS days`,
    );
    await maintain({ databaseUrl, log: silent });
    expect(await query(databaseUrl, 'SELECT seq FROM store.otlp_outbox')).toEqual([{ seq: 0 }]);
  });

  it('finishes detaching a partition after an interrupted run', async () => {
    const databaseUrl = await server.database();
    await partitionOf(databaseUrl, 'container_event', 20);
    const name = await nameOf(databaseUrl, 'container_event', 20);
    const reader = new Client({ connectionString: databaseUrl });
    await reader.connect();
    await reader.query('BEGIN; SELECT count(*) FROM store.container_event');
    const detach = `SET lock_timeout = '200ms'`;
    const worker = new Client({ connectionString: databaseUrl });
    await worker.connect();
    await worker.query(detach);
    await expect(
      worker.query(`ALTER TABLE store.container_event DETACH PARTITION store.${name} CONCURRENTLY`),
    ).rejects.toThrow('lock timeout');
    await worker.end();
    await reader.end();
    expect((await maintain({ databaseUrl, log: silent })).dropped).toEqual([name]);
  });

  it('the figures of the kubelet for its minutes are in their hours, and nothing where it was not scraped', async () => {
    const databaseUrl = await server.database();
    for (const table of ['relist_minute', 'relist_hour']) await partitionOf(databaseUrl, table, 20);
    await query(databaseUrl, "INSERT INTO store.node (cluster_id, name) VALUES (1, 'node-a')");
    await query(
      databaseUrl,
      `INSERT INTO store.relist_minute (minute, day, node_id, context_id, seq, cluster_id, relists, errors, max_us, hist, sandboxes,
         containers, exited_sandboxes, exited_containers, sandbox_list_bytes, container_list_bytes, expected, matched, unobservable, covered_us,
         span_us, ended_at, kubelet_relists, kubelet_hist,
         kubelet_last_seen_age_ms, kubelet_discarded, kubelet_stream_errors, kubelet_list_p99_ms, kubelet_intervals, kubelet_interval_us,
         kubelet_counted_from, kubelet_counted_to, kubelet_relist_us, kubelet_sandbox_lists, kubelet_sandbox_list_errors, kubelet_sandbox_list_us,
         kubelet_longest_list_us, kubelet_container_status_us, kubelet_cpu_us, kubelet_resident_bytes, wall_at, lists)
       SELECT at, current_date - 20, 1, 1, n, 1, 12, 0, 5000, '{1,2}', 3, 4, 0, 2, n, 10 * n, 2, 1, 0, 60000000, 60000000, at, k.relists, k.hist::int2[],
              n, n, n, n, k.relists, k.relists * 1000000::int8, at, at + interval '30 seconds' * k.relists / 60, 100 * k.relists, k.relists, n, 50 * k.relists, 1000 * n,
              10 * k.relists, 5 * k.relists, 100 * n, at, ''
       FROM (VALUES (1, 60, '{50,10}'), (2, 60, '{60}'), (3, 0, '{}'), (61, NULL, NULL)) AS k (n, relists, hist),
            LATERAL (SELECT (current_date - 20)::timestamp AT TIME ZONE 'UTC' + n * interval '1 minute' AS at) AS m`,
    );
    await maintain({ databaseUrl, log: silent });
    const merged = await query(
      databaseUrl,
      `SELECT bit_count(minute_bits::bit(64))::int AS minutes, kubelet_relists::int AS relists, kubelet_hist AS hist, kubelet_last_seen_age_ms::int AS age, kubelet_discarded::int AS discarded,
              kubelet_stream_errors::int AS stream_errors, kubelet_list_p99_ms AS p99, kubelet_intervals::int AS intervals,
              kubelet_interval_us::int AS interval_us, kubelet_counted_us::int AS counted_us, kubelet_relist_us::int AS relist_us,
              kubelet_sandbox_lists::int AS calls, kubelet_sandbox_list_errors::int AS errors, kubelet_sandbox_list_us::int AS list_us,
              kubelet_longest_list_us::int AS longest_us, kubelet_container_status_us::int AS status_us,
              exited_containers, sandbox_list_bytes, container_list_bytes,
              kubelet_cpu_us::int AS cpu_us, kubelet_resident_bytes::int AS resident
       FROM store.relist_hour ORDER BY hour`,
    );
    expect(merged).toMatchObject([
      {
        ...{ minutes: 3, relists: 120, hist: [110, 10], age: 3, discarded: 6, stream_errors: 3, p99: 3 },
        ...{ intervals: 120, interval_us: 120_000_000, counted_us: 60_000_000, relist_us: 12_000 },
        ...{ calls: 120, errors: 6, list_us: 6_000, longest_us: 3_000, status_us: 1_200 },
        ...{
          cpu_us: 600,
          resident: 300,
          exited_containers: 2,
          sandbox_list_bytes: 3,
          container_list_bytes: 30,
        },
      },
      {
        minutes: 1,
        relists: null,
        hist: null,
        intervals: null,
        counted_us: null,
        calls: null,
        list_us: null,
      },
    ]);
  });

  it('an hour with more relists than a bucket can count is kept all the same', async () => {
    const databaseUrl = await server.database();
    for (const table of ['relist_minute', 'relist_hour']) await partitionOf(databaseUrl, table, 20);
    await query(databaseUrl, "INSERT INTO store.node (cluster_id, name) VALUES (1, 'node-a')");
    await query(
      databaseUrl,
      `INSERT INTO store.relist_minute (minute, day, node_id, context_id, seq, cluster_id, relists, errors, max_us, hist, sandboxes,
         containers, exited_sandboxes, exited_containers, sandbox_list_bytes, container_list_bytes, expected, matched, unobservable, covered_us,
         span_us, ended_at, wall_at, lists)
       SELECT at, current_date - 20, 1, 1, n, 1, 12, 0, 5000, '{1,32767}', 3, 4, 0, 0, 5, 5, 2, 1, 0, 0, 0, at, at, ''
       FROM generate_series(1, 65550) AS n, LATERAL (SELECT (current_date - 20)::timestamp AT TIME ZONE 'UTC' AS at) AS m`,
    );
    await maintain({ databaseUrl, log: silent });
    expect(await query(databaseUrl, 'SELECT minutes, hist FROM plegwatch.relist_hours')).toEqual([
      { minutes: 1, hist: [65_550, 2_147_483_647] },
    ]);
  });

  it('drops expired partitions while others read, and they wait for nothing', async () => {
    const databaseUrl = await server.database();
    for (let daysAgo = 15; daysAgo < 19; daysAgo++)
      await partitionOf(databaseUrl, 'container_event', daysAgo);
    const stop = new AbortController();
    const read = async () => {
      const reader = new Client({ connectionString: databaseUrl });
      await reader.connect();
      while (!stop.signal.aborted)
        await reader.query('BEGIN; SELECT count(*) FROM store.container_event; COMMIT');
      await reader.end();
    };
    const readers = [read(), read(), read()];
    const done = await maintain({ databaseUrl, log: silent });
    stop.abort();
    await Promise.all(readers);
    expect(done.dropped).toHaveLength(4);
    expect(done.kept).toEqual([]);
  });

  it('a reader that does not end keeps expired days of its table, and others are dropped; that run is no success, the next one is', async () => {
    const databaseUrl = await server.database();
    const succeeded = () => query(databaseUrl, 'SELECT succeeded_at::text FROM store.maintenance');
    for (const table of ['container_event', 'relist_change', 'relist_minute'])
      await partitionOf(databaseUrl, table, 15);
    const [expired, change, minute] = await Promise.all(
      ['container_event', 'relist_change', 'relist_minute'].map((table) => nameOf(databaseUrl, table, 15)),
    );
    const reader = new Client({ connectionString: databaseUrl, application_name: 'a reader' });
    await reader.connect();
    await reader.query('BEGIN; SELECT count(*) FROM store.container_event');
    const before = await succeeded();
    await expect(maintain({ databaseUrl, log: silent, lockWaitMs: 100 })).rejects.toMatchObject({
      code: 'DATABASE_TIMEOUT',
      message: expect.stringMatching(
        `these partitions could not be dropped, as the log says: ${expired}\\. Sessions that hold locks: pid \\d+ \\(role t\\d+, a reader\\) on container_event`,
      ),
    });
    expect(await succeeded()).toEqual(before);
    const left = await query(databaseUrl, 'SELECT relname FROM pg_class WHERE relname = ANY ($1)', [
      [expired, change, minute],
    ]);
    expect(left).toEqual([{ relname: expired }]);
    await reader.end();
    const second = await maintain({ databaseUrl, log: silent });
    expect(second).toMatchObject({ dropped: [expired], kept: [] });
    expect(await succeeded()).not.toEqual(before);
  });

  it('a maintenance waits for another one, and says who does not end', async () => {
    const databaseUrl = await server.database();
    const other = new Client({
      connectionString: databaseUrl,
      application_name: 'plegwatch maintain (lock)',
    });
    await other.connect();
    await other.query('BEGIN; LOCK TABLE store.maintenance IN SHARE ROW EXCLUSIVE MODE');
    await expect(maintain({ databaseUrl, log: silent, lockWaitMs: 100 })).rejects.toMatchObject({
      code: 'DATABASE_TIMEOUT',
      message: expect.stringMatching(/pid \d+ \(role t\d+, plegwatch maintain \(lock\)\) on maintenance\./),
    });
    const waiting = maintain({ databaseUrl, log: silent });
    await waitFor('it waits', async () => {
      const rows = await query(
        databaseUrl,
        "SELECT FROM pg_locks WHERE NOT granted AND relation = 'store.maintenance'::regclass",
      );
      return rows.length > 0;
    });
    await other.end();
    expect(await waiting).toMatchObject({ kept: [] });
  });

  it('a migration says who holds the lock that it waits for', async () => {
    const databaseUrl = await server.database();
    const other = new Client({ connectionString: databaseUrl, application_name: 'plegwatch migrate' });
    await other.connect();
    await other.query('BEGIN; LOCK TABLE store.migration IN SHARE ROW EXCLUSIVE MODE');
    await expect(migrate({ databaseUrl, log: silent, lockWaitMs: 100 })).rejects.toMatchObject({
      code: 'DATABASE_TIMEOUT',
      message: expect.stringMatching(/pid \d+ \(role t\d+, plegwatch migrate\) on migration\./),
    });
    await other.end();
  });

  it('no lock that a reader can take holds up a migration, a maintenance or a new partition', async () => {
    const databaseUrl = await server.database();
    const reader = new Client({ connectionString: await server.reader(databaseUrl) });
    await reader.connect();
    // Anybody may take an advisory lock, so nothing may wait for one.
    await reader.query(
      "SELECT pg_advisory_lock(key) FROM unnest(ARRAY[5143873211, 5143873212, hashtext('plegwatch.partitions')]) AS key",
    );
    await reader.query('BEGIN');
    const tables = await query<{ name: string }>(
      databaseUrl,
      "SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace = 'store'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition",
    );
    for (const { name } of tables) {
      await reader.query(`SAVEPOINT strong; LOCK TABLE ${name} IN ACCESS SHARE MODE`);
      await expect(reader.query(`LOCK TABLE ${name} IN ROW SHARE MODE NOWAIT`), name).rejects.toThrow(
        'permission denied',
      );
      await reader.query(`ROLLBACK TO strong; LOCK TABLE ${name} IN ACCESS SHARE MODE`);
    }
    expect(await migrate({ databaseUrl, log: silent, lockWaitMs: 100 })).toEqual({ applied: [] });
    await partitionOf(databaseUrl, 'container_event', -10);
    expect(await maintain({ databaseUrl, log: silent, lockWaitMs: 100 })).toMatchObject({ kept: [] });
    await reader.end();
  });

  it('gives up an epoch after a week without batches, and reopens it on the next batch', async () => {
    const databaseUrl = await server.database();
    const one = agentIncarnation('node-a');
    await commitAll(databaseUrl, [one.batch(1, events(1, 2)), one.batch(6, events(6, 8))]);
    const epochs = 'SELECT end_cause, acked_seq, records_lost FROM plegwatch.epochs';
    expect(await query(databaseUrl, epochs)).toEqual([{ end_cause: null, acked_seq: 2, records_lost: 0 }]);
    await query(databaseUrl, "UPDATE store.epoch SET last_stored_at = now() - interval '8 days'");
    expect((await maintain({ databaseUrl, log: silent })).abandoned).toBe(1);
    expect(await query(databaseUrl, epochs)).toEqual([
      { end_cause: 'abandoned', acked_seq: 8, records_lost: 3 },
    ]);
    await commitAll(databaseUrl, [one.batch(3, events(3, 5))]);
    expect(await query(databaseUrl, epochs)).toEqual([{ end_cause: null, acked_seq: 8, records_lost: 0 }]);
    expect(
      await query(databaseUrl, 'SELECT cause, records, filled_at IS NOT NULL AS filled FROM plegwatch.gaps'),
    ).toEqual([{ cause: 'abandoned', records: 0, filled: true }]);
  });

  it('keeps a gap for the retention, and a gap left open for as long as its epoch', async () => {
    const databaseUrl = await server.database();
    const one = agentIncarnation('node-a');
    const gap = (cause: string, to: number | null) => {
      return { type: 'gap', t: 9, gapId: randomUUID(), scope: 'stream', cause, from: 4, to } as const;
    };
    await commitAll(databaseUrl, [one.batch(1, [gap('ended', 8), gap('left open', null)])]);
    const later = async (days: number) => {
      const by = `interval '${days} days'`;
      await query(databaseUrl, `UPDATE store.gap SET from_at = from_at - ${by}, to_at = to_at - ${by}`);
      await query(databaseUrl, `UPDATE store.epoch SET closed_at = closed_at - ${by}`);
      await maintain({ databaseUrl, log: silent });
      return query(databaseUrl, 'SELECT cause FROM store.gap ORDER BY cause');
    };
    expect(await later(399)).toEqual([{ cause: 'ended' }, { cause: 'left open' }]);
    expect(await later(2)).toEqual([{ cause: 'left open' }]);
    await query(databaseUrl, 'UPDATE store.epoch SET closed_at = now()');
    expect(await later(399)).toEqual([{ cause: 'left open' }]);
    expect(await later(2)).toEqual([]);
  });

  it('keeps what a Node was, and when it was not Ready, for the retention, with the latest row from before that', async () => {
    const databaseUrl = await server.database();
    await query(
      databaseUrl,
      `WITH cluster AS (INSERT INTO store.cluster (name) VALUES ('pools') RETURNING cluster_id)
       INSERT INTO store.node (cluster_id, name) SELECT cluster_id, 'node-a' FROM cluster`,
    );
    await query(
      databaseUrl,
      `INSERT INTO store.node_info (node_id, cluster_id, at, labels, os_image, kernel_version)
       SELECT node_id, cluster_id, now() - days * interval '1 day', '{}', '', days
       FROM store.node, unnest(ARRAY[600, 500, 401, 399]) AS days`,
    );
    await query(
      databaseUrl,
      `INSERT INTO store.ready_change (node_id, cluster_id, at, status, reason, causes)
       SELECT node_id, cluster_id, at, 'False', kernel_version, '{other}' FROM store.node_info`,
    );
    await maintain({ databaseUrl, log: silent });
    expect(
      await query(databaseUrl, 'SELECT kernel_version FROM plegwatch.node_info ORDER BY from_at'),
    ).toEqual([{ kernel_version: '401' }, { kernel_version: '399' }]);
    const reasons = await query(
      databaseUrl,
      'SELECT reason FROM plegwatch.not_ready_intervals ORDER BY from_at',
    );
    expect(reasons).toEqual([{ reason: '401' }, { reason: '399' }]);
  });

  it('deletes epochs and contexts to which nothing refers, but never the latest of a node, nor one that a spool may remember', async () => {
    const databaseUrl = await server.database();
    const [first, second, present] = [1, 2, 3].map((no) => agentIncarnation('node-a', no));
    if (first === undefined || second === undefined || present === undefined) throw new Error('three epochs');
    await commitAll(databaseUrl, [
      first.batch(1, [streamSession()]),
      second.batch(1, [missedFinding()]),
      present.batch(1, []),
    ]);
    const kept = async () => {
      await maintain({ databaseUrl, log: silent });
      const [row] = await query(
        databaseUrl,
        `SELECT (SELECT array_agg(incarnation ORDER BY incarnation) FROM store.epoch) AS epochs,
                (SELECT count(*)::int FROM store.context) AS contexts, (SELECT incarnation FROM store.node) AS node`,
      );
      return row;
    };
    const ended = (days: number) =>
      query(
        databaseUrl,
        `UPDATE store.epoch SET closed_at = now() - interval '${days} days', last_stored_at = now() - interval '${days} days'`,
      );
    const all = { epochs: [1, 2, 3], contexts: 3, node: 3 };
    await ended(500);
    expect(await kept()).toEqual(all);
    await query(databaseUrl, 'DELETE FROM store.stream_session');
    await query(databaseUrl, "UPDATE store.setting SET value = '7' WHERE key = 'finding_retention_days'");
    await ended(59);
    expect(await kept()).toEqual(all);
    await ended(61);
    expect(await kept()).toEqual({ epochs: [2, 3], contexts: 2, node: 3 });
    await query(databaseUrl, 'DELETE FROM store.finding');
    expect(await kept()).toEqual({ epochs: [3], contexts: 1, node: 3 });
  });

  it('gives up an epoch that sent only a probe', async () => {
    const databaseUrl = await server.database();
    await commitAll(databaseUrl, [agentIncarnation('node-a').batch(1, [])]);
    await query(databaseUrl, "UPDATE store.epoch SET last_stored_at = now() - interval '8 days'");
    expect((await maintain({ databaseUrl, log: silent })).abandoned).toBe(1);
  });
});
