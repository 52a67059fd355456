/*
 * The store: the controller's pool of connections to Postgres, and the queries that several parts of it share.
 */
import type { Pool, PoolClient, QueryResultRow } from 'pg';
import type { Logger } from '../../platform/log.ts';
import { openPool } from './connection.ts';
import { databaseErrorKind, explainDatabaseError, notMigratedError } from './databaseError.ts';
import { SCHEMA_VERSION } from './migrations.ts';
import ensureClusterSql from './sql/ensureCluster.sql';
import readSettingsSql from './sql/readSettings.sql';

/** A statement and, if it runs often, the name under which the server keeps its plan. */
export interface SqlStatement {
  readonly text: string;
  readonly name?: string;
}

/** Runs statements: the pool, or one connection inside a transaction. */
export interface SqlRunner {
  run<R extends QueryResultRow>(
    statement: SqlStatement,
    values?: readonly unknown[],
  ): Promise<{ rows: R[]; count: number }>;
}

/** Settings that belong to the database: the same for every controller that uses it. */
export interface StoreSettings {
  readonly queues: number;
  /** The most queues there ever were: workers drain them all. */
  readonly maxQueues: number;
  /** How long events, changes and minutes are kept. */
  readonly eventRetentionDays: number;
  /** How long everything else is kept. */
  readonly findingRetentionDays: number;
}

export interface Store extends SqlRunner {
  /** Runs `work` in one READ COMMITTED transaction; retries a few times after conflicts with other transactions. */
  transaction<T>(work: (runner: SqlRunner) => Promise<T>): Promise<T>;
  readSettings(): Promise<StoreSettings>;
  /** The id of a cluster, which is added when it is first seen. */
  ensureCluster(name: string): Promise<number>;
  ping(): Promise<void>;
  /** Waits for running statements and closes all connections. May be called twice. */
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly databaseUrl: string;
  readonly log: Logger;
  readonly maxConnections?: number;
}

const MAX_CONNECTIONS = 8;
const CONFLICT_ATTEMPTS = 5;

/**
 * Opens the store and checks that it can be used.
 * Throws DATABASE_UNREACHABLE, DATABASE_REFUSED or DATABASE_NOT_MIGRATED.
 */
export async function openStore({
  databaseUrl,
  log,
  maxConnections = MAX_CONNECTIONS,
}: StoreOptions): Promise<Store> {
  const pool = openPool(databaseUrl, 'plegwatch controller', maxConnections, log);
  try {
    await checkSchema(pool, databaseUrl);
  } catch (error) {
    await pool.end();
    throw explainDatabaseError(databaseUrl, error);
  }
  const runner = runnerOf(pool);
  let closing: Promise<void> | undefined;
  return {
    run: runner.run,
    transaction: (work) => transaction(pool, work),
    async readSettings() {
      const { rows } = await runner.run<StoreSettings & QueryResultRow>({ text: readSettingsSql });
      if (rows[0] === undefined) throw new Error('an aggregate query returned no row');
      return rows[0];
    },
    async ensureCluster(name) {
      for (;;) {
        const { rows } = await runner.run<{ cluster_id: number }>({ text: ensureClusterSql }, [name]);
        // No row: another controller added it after this statement began.
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
    'SELECT max(number) AS version FROM store.migration',
  );
  const version = rows[0]?.version ?? 0;
  if (version < SCHEMA_VERSION) {
    throw notMigratedError(databaseUrl, `it has migration ${version}, and ${SCHEMA_VERSION} is needed`);
  }
}

async function transaction<T>(pool: Pool, work: (runner: SqlRunner) => Promise<T>): Promise<T> {
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
      if (databaseErrorKind(error) !== 'conflict' || attempt === CONFLICT_ATTEMPTS) throw error;
    } finally {
      client.release(broken);
    }
  }
}

/** Returns the error of a connection that cannot even roll back and must not be used again. */
async function rollback(client: PoolClient): Promise<Error | undefined> {
  try {
    await client.query('ROLLBACK');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function runnerOf(client: Pick<Pool | PoolClient, 'query'>): SqlRunner {
  return {
    async run<R extends QueryResultRow>({ text, name }: SqlStatement, values: readonly unknown[] = []) {
      const config = { text, values: [...values], ...(name === undefined ? {} : { name }) };
      const result = await client.query<R>(config);
      return { rows: result.rows, count: result.rowCount ?? 0 };
    },
  };
}
