/*
 * `plegwatch maintain` of a day of 5,000 nodes, as it runs each day: with as many partitions as the default retention leaves, of which a day's
 * have expired, and after a day on which every agent restarted and a tenth of the nodes was replaced. Run again, it has nothing to do but to look.
 *
 * The days have fewer rows than real ones. How long dropping them takes grows with their bytes, so the time of a whole day is computed.
 */
import { join } from 'node:path';
import { Client } from 'pg';
import { startPostgres } from '../../devtools/localServices/postgres.ts';
import { run } from '../../devtools/localServices/process.ts';
import { writeHistory } from '../../test/support/storedHistory.ts';
import { ROOT } from '../system.ts';
import type { TableRow } from '../table.ts';
import { FSYNC } from './controllerSystem.ts';
import { type BenchPart, log, SHORT } from './part.ts';

const CLI = join(ROOT, 'dist', 'cli.js');
const NODES = SHORT ? 200 : 5_000;
/** One more than are kept. */
const DAYS = 15;
/** In two clusters; much fewer records than real nodes have. */
const HISTORY = { nodes: NODES / 2, days: DAYS, lives: 1, step: 14_400 };
/** Size of a day of a node that replaces a pod in three minutes, by docs/development/measurements.md: events, changes and minutes. */
const GB_A_NODE = (480 * (8 * 220 + 6 * 133) + 1_440 * 490) / 1e9;
const BUDGET_S = 20;

/** A quarter of a gigabyte. */
const BULK_GB = 0.26;
const BULK = `CREATE UNLOGGED TABLE bulk AS SELECT repeat(md5(n::text), 30) AS filler FROM generate_series(1, 252000) AS n`;

/** Other rows that expire: of each node an epoch without records, and a gap; a tenth as many nodes that were deleted long ago. */
const EXPIRED = `
  INSERT INTO store.epoch (node_id, cluster_id, epoch, incarnation, claimed_incarnation, node_uid, boot_id, started_mono, started_at,
                           ack_generation, last_seq, last_seen, last_stored_at, last_new_at, closed_at, close_cause)
  SELECT node_id, cluster_id, md5(name || 'expired')::uuid, 0, 0, '', '', 0, at, 1, 0, at, at, at, at, 'next'
  FROM store.node, (SELECT now() - interval '500 days' AS at) t WHERE first_seen IS NOT NULL;
  INSERT INTO store.context (node_id, cluster_id, epoch, context_no, runtime_name, runtime_version, kubelet_version, agent_version,
                             relist_period_us, overdue_after_us, missed_after_us, late_after_us)
  SELECT node_id, cluster_id, epoch, 1, 'containerd', '2.1.4', 'v1.35.4', '0.1.0', 5e6, 2e6, 30e6, 1e6
  FROM store.epoch WHERE incarnation = 0;
  INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at)
  SELECT md5(epoch || 'gap')::uuid, node_id, cluster_id, epoch, 'stream', 'broken', started_at, started_at + interval '1 minute'
  FROM store.epoch WHERE incarnation = 0;
  INSERT INTO store.node (cluster_id, name, first_seen, last_seen, incarnation, context_no)
  SELECT cluster_id, 'gone-' || name, at, at, 1, 1 FROM store.node, (SELECT now() - interval '500 days' AS at) t
  WHERE first_seen IS NOT NULL AND node_id % 10 = 0;
  INSERT INTO store.report (node_id, cluster_id, node_deleted_at) SELECT node_id, cluster_id, last_seen FROM store.node WHERE name LIKE 'gone-%';
  INSERT INTO store.epoch (node_id, cluster_id, epoch, incarnation, claimed_incarnation, node_uid, boot_id, started_mono, started_at,
                           ack_generation, last_seq, last_seen, last_stored_at, last_new_at, closed_at, close_cause)
  SELECT node_id, cluster_id, md5(name)::uuid, 1, 1, '', '', 0, last_seen, 1, 0, last_seen, last_seen, last_seen, last_seen, 'abandoned'
  FROM store.node WHERE name LIKE 'gone-%';
  SELECT store.make_partition(t.name, (current_date - n * interval '1 month')::date)
  FROM generate_series(1, 13) AS n,
       unnest(ARRAY['finding', 'finding_update', 'stream_session', 'mode_change', 'node_condition', 'relist_hour']) AS t (name);
  ANALYZE`;

const LEFT = `
  SELECT (SELECT count(*) FROM store.epoch WHERE last_seen < now() - interval '400 days')::int4 AS epochs,
         (SELECT count(*) FROM store.node WHERE name LIKE 'gone-%')::int4 AS nodes,
         (SELECT count(*) FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent
          WHERE p.relnamespace = 'store'::regnamespace AND p.relkind = 'p')::int4 AS partitions`;

interface Left {
  readonly epochs: number;
  readonly nodes: number;
  readonly partitions: number;
}

export const maintenance: BenchPart = {
  name: 'maintenance',
  title: 'A day’s maintenance',
  async run() {
    const postgres = await startPostgres({
      settings: { fsync: FSYNC, shared_buffers: '512MB', max_wal_size: '4GB' },
    });
    const client = new Client({ connectionString: postgres.url });
    client.on('error', () => undefined);
    try {
      await run(process.execPath, [CLI, 'migrate', '--database-url', postgres.url]);
      log(`maintenance: ${DAYS} days of ${NODES} nodes`);
      await writeHistory(postgres.url, HISTORY);
      await client.connect();
      await client.query(EXPIRED);
      const left = async () => (await client.query<Left>(LEFT)).rows[0];
      const before = await left();
      const first = await maintain(postgres.url);
      const after = await left();
      const second = await maintain(postgres.url);
      return { rows: rowsOf(before, after, { first, second, dropsGB: await timeDrop(client) }), plots: [] };
    } finally {
      await client.end();
      await postgres.stop();
    }
  },
};

/** In seconds, with the start of the program. */
async function maintain(databaseUrl: string): Promise<number> {
  const began = performance.now();
  await run(process.execPath, [CLI, 'maintain', '--database-url', databaseUrl]);
  return (performance.now() - began) / 1000;
}

/** How many seconds dropping a gigabyte takes. */
async function timeDrop(client: Client): Promise<number> {
  await client.query(BULK);
  const began = performance.now();
  await client.query('DROP TABLE bulk');
  return (performance.now() - began) / 1000 / BULK_GB;
}

interface Times {
  /** The run that has a day's work, and the one after it, in seconds. */
  readonly first: number;
  readonly second: number;
  /** For each gigabyte. */
  readonly dropsGB: number;
}

function rowsOf(
  before: Left | undefined,
  after: Left | undefined,
  { first, second, dropsGB }: Times,
): TableRow[] {
  if (before === undefined || after === undefined) throw new Error('nothing is known of what was done');
  const removed = (what: keyof Left) => before[what] - after[what];
  const dayGB = GB_A_NODE * NODES;
  const whole = first + dayGB * dropsGB;
  return [
    {
      what: `plegwatch maintain, a day of ${NODES} nodes`,
      figure: `${whole.toFixed(1)} s: ${first.toFixed(1)} s measured, and ${dayGB.toFixed(1)} GB that are dropped, at ${dropsGB.toFixed(2)} s each`,
      budget: `≤ ${BUDGET_S} s`,
      met: whole <= BUDGET_S,
    },
    {
      what: '  removed',
      figure: `${removed('partitions')} partitions, ${removed('epochs')} epochs, ${removed('nodes')} nodes; ${after.partitions} partitions stay`,
    },
    { what: '  once more, with nothing to remove', figure: `${second.toFixed(1)} s` },
  ];
}
