/*
 * Maintenance on a real Postgres: what is made, what is dropped, and what is given up.
 */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { MAINTENANCE_LOCK, maintain } from '../../src/controller/store/maintain.ts';
import { agentIncarnation } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';

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
    for (const daysAgo of [14, 15, 20]) {
      for (const table of ['container_event', 'relist_minute'])
        await partitionOf(databaseUrl, table, daysAgo);
    }
    await query(
      databaseUrl,
      `INSERT INTO store.relist_minute (minute, day, node_id, context_id, seq, cluster_id, relists, errors, max_us, hist, sandboxes,
                                 containers, bytes, expected, matched, unobservable, covered_us, span_us, ended_at, wall_at,
                                 lists)
       SELECT current_date - 20 + n * interval '1 minute', current_date - 20, 1, 1, n, 1, 12, 0, 5000, '{1,2}', 3, 4, 10, 2, 1, 0, 60000000,
              60000000, current_date - 20 + (n + 1) * interval '1 minute', current_date - 20 + (n + 1) * interval '1 minute', '{}'
       FROM generate_series(1, 70) AS n`,
    );
    const done = await maintain({ databaseUrl, log: silent });
    expect(done?.dropped).toEqual(
      (
        await Promise.all(
          ['container_event', 'relist_minute'].flatMap((table) => [
            nameOf(databaseUrl, table, 20),
            nameOf(databaseUrl, table, 15),
          ]),
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
    expect((await maintain({ databaseUrl, log: silent }))?.dropped).toEqual([]);
  });

  it('drops partitions by the retention settings of the database', async () => {
    const databaseUrl = await server.database();
    await partitionOf(databaseUrl, 'relist_change', 5);
    await query(databaseUrl, "UPDATE store.setting SET value = '3' WHERE key = 'event_retention_days'");
    const done = await maintain({ databaseUrl, log: silent });
    expect(done?.dropped).toEqual([await nameOf(databaseUrl, 'relist_change', 5)]);
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
    expect((await maintain({ databaseUrl, log: silent }))?.dropped).toEqual([name]);
  });

  it('only one maintenance runs at a time', async () => {
    const databaseUrl = await server.database();
    const other = new Client({ connectionString: databaseUrl });
    await other.connect();
    await other.query('SELECT pg_advisory_lock($1)', [MAINTENANCE_LOCK]);
    expect(await maintain({ databaseUrl, log: silent })).toBeNull();
    await other.end();
    await vi.waitFor(async () => expect(await maintain({ databaseUrl, log: silent })).not.toBeNull());
  });

  it('gives up an epoch after a week without batches, and reopens it on the next batch', async () => {
    const databaseUrl = await server.database();
    const one = agentIncarnation('node-a');
    await commitAll(databaseUrl, [one.batch(1, events(1, 2)), one.batch(6, events(6, 8))]);
    const epochs = 'SELECT end_cause, acked_seq, records_lost FROM plegwatch.epochs';
    expect(await query(databaseUrl, epochs)).toEqual([{ end_cause: null, acked_seq: 2, records_lost: 0 }]);
    await query(databaseUrl, "UPDATE store.epoch SET last_seen = now() - interval '8 days'");
    expect((await maintain({ databaseUrl, log: silent }))?.abandoned).toBe(1);
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

  it('gives up an epoch that sent only a probe', async () => {
    const databaseUrl = await server.database();
    await commitAll(databaseUrl, [agentIncarnation('node-a').batch(1, [])]);
    await query(databaseUrl, "UPDATE store.epoch SET last_seen = now() - interval '8 days'");
    expect((await maintain({ databaseUrl, log: silent }))?.abandoned).toBe(1);
  });
});
