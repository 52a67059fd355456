/*
 * The time from a moment on a node to the commit of the row that tells of it. Postgres keeps when each transaction was committed; all clocks are
 * those of this machine.
 */
import { Client } from 'pg';

/** Postgres must run with it. */
export const COMMIT_TIMES = { track_commit_timestamp: 'on' };

export interface CommitLag {
  readonly rows: number;
  /** In milliseconds; NaN without rows. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

interface LagRow {
  readonly rows: number;
  readonly quantiles: readonly number[] | null;
}

/** Lag of events, from when the runtime made them; `from` and `to` in milliseconds since 1970. */
export const eventLag = (databaseUrl: string, from: number, to: number): Promise<CommitLag> =>
  lagOf(databaseUrl, EVENTS, [from, to]);

/** Lag of minutes, from when the agent wrote the record. */
export const minuteLag = (databaseUrl: string, from: number, to: number): Promise<CommitLag> =>
  lagOf(databaseUrl, MINUTES, [from, to]);

const SUMMARY =
  'SELECT count(*)::int4 AS rows, percentile_disc(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY ms)::float8[] AS quantiles FROM lag';
const EVENTS = `
  WITH lag AS (
    SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1e3 - created_ns / 1e6 AS ms
      FROM store.container_event WHERE created_ns BETWEEN $1 * 1000000::int8 AND $2 * 1000000::int8
  ) ${SUMMARY}`;
const MINUTES = `
  WITH lag AS (
    SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin) - wall_at) * 1e3 AS ms
      FROM store.relist_minute WHERE wall_at BETWEEN to_timestamp($1 / 1e3) AND to_timestamp($2 / 1e3)
  ) ${SUMMARY}`;

async function lagOf(databaseUrl: string, text: string, period: readonly number[]): Promise<CommitLag> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<LagRow>(text, period.map(Math.round));
    const [p50 = Number.NaN, p99 = Number.NaN, max = Number.NaN] = rows[0]?.quantiles ?? [];
    return { rows: rows[0]?.rows ?? 0, p50, p99, max };
  } finally {
    await client.end();
  }
}
