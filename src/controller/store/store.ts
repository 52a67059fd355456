/*
 * The store: the controller's pool of connections to Postgres and the few things every part of it asks.
 */
import type { Pool, PoolClient, QueryResultRow } from 'pg';
import type { Logger } from '../../platform/log.ts';
import { openPool } from './connection.ts';
import { explainDatabase, notMigrated, troubleOf } from './databaseError.ts';
import { SCHEMA_VERSION } from './migrations.ts';
import ensureCluster from './sql/ensureCluster.sql';
import readSettings from './sql/readSettings.sql';

/** A statement and, for one that runs often, the name under which the server keeps its plan. */
export interface Statement {
  readonly text: string;
  readonly name?: string;
}

/** Whoever runs statements: the pool, or one connection inside a transaction. */
export interface Runner {
  run<R extends QueryResultRow>(
    statement: Statement,
    values?: readonly unknown[],
  ): Promise<{ rows: R[]; count: number }>;
}

/** Settings that belong to the database, the same for every controller that uses it. */
export interface StoreSettings {
  readonly lanes: number;
  /** The most lanes there ever were: workers drain them all. */
  readonly lanesEver: number;
  /** How long events, changes and minutes are kept. */
  readonly retentionDays: number;
  /** How long findings, gaps, modes and hours are kept. */
  readonly keepDays: number;
}

export interface Store extends Runner {
  /** Runs `work` in one READ COMMITTED transaction; done again, a few times, where transactions met. */
  transaction<T>(work: (runner: Runner) => Promise<T>): Promise<T>;
  settings(): Promise<StoreSettings>;
  /** The id of a cluster, made at first sight. */
  clusterId(name: string): Promise<number>;
  /** Resolves when Postgres answers; throws what it says otherwise. */
  ping(): Promise<void>;
  /** Waits for statements under way and closes all connections. May be called twice. */
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly databaseUrl: string;
  readonly log: Logger;
  /** The most connections it opens. */
  readonly connections?: number;
}

type SettingsRow = {
  queues: number;
  max_queues: number;
  event_retention_days: number;
  finding_retention_days: number;
};

const CONNECTIONS = 8;
const CONFLICT_ATTEMPTS = 5;

/**
 * Opens the store and checks that it can be used.
 * Throws DATABASE_UNREACHABLE, DATABASE_REFUSED or DATABASE_NOT_MIGRATED.
 */
export async function openStore({
  databaseUrl,
  log,
  connections = CONNECTIONS,
}: StoreOptions): Promise<Store> {
  const pool = openPool(databaseUrl, 'plegwatch controller', connections, log);
  try {
    await checkSchema(pool, databaseUrl);
  } catch (error) {
    await pool.end();
    throw explainDatabase(databaseUrl, error);
  }
  const runner = runnerOf(pool);
  let closing: Promise<void> | undefined;
  return {
    run: runner.run,
    transaction: (work) => transaction(pool, work),
    async settings() {
      const { rows } = await runner.run<SettingsRow>({ text: readSettings });
      const row = rows[0] ?? {
        queues: 16,
        max_queues: 16,
        event_retention_days: 14,
        finding_retention_days: 400,
      };
      return {
        lanes: row.queues,
        lanesEver: row.max_queues,
        retentionDays: row.event_retention_days,
        keepDays: row.finding_retention_days,
      };
    },
    async clusterId(name) {
      for (;;) {
        const { rows } = await runner.run<{ cluster_id: number }>({ text: ensureCluster }, [name]);
        // No row: another controller has just made it, after this statement began.
        if (rows[0] !== undefined) return rows[0].cluster_id;
      }
    },
    async ping() {
      await pool.query('SELECT 1');
    },
    close() {
      closing ??= pool.end();
      return closing;
    },
  };
}

async function checkSchema(pool: Pool, databaseUrl: string): Promise<void> {
  const { rows } = await pool.query<{ version: number | null }>(
    'SELECT max(created_at)::int4 AS version FROM store.migration',
  );
  const version = rows[0]?.version ?? 0;
  if (version < SCHEMA_VERSION) {
    throw notMigrated(databaseUrl, `it has migration ${version}, and ${SCHEMA_VERSION} is needed`);
  }
}

async function transaction<T>(pool: Pool, work: (runner: Runner) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await client.query('BEGIN');
      const result = await work(runnerOf(client));
      await client.query('COMMIT');
      return result;
    } catch (error) {
      broken = await rollback(client);
      if (troubleOf(error) !== 'conflict' || attempt === CONFLICT_ATTEMPTS) throw error;
    } finally {
      client.release(broken);
    }
  }
}

/** The error of a connection that could not even roll back, and must not be used again. */
async function rollback(client: PoolClient): Promise<Error | undefined> {
  try {
    await client.query('ROLLBACK');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function runnerOf(client: Pick<Pool | PoolClient, 'query'>): Runner {
  return {
    async run<R extends QueryResultRow>({ text, name }: Statement, values: readonly unknown[] = []) {
      const config = { text, values: [...values], ...(name === undefined ? {} : { name }) };
      const result = await client.query<R>(config);
      return { rows: result.rows, count: result.rowCount ?? 0 };
    },
  };
}
