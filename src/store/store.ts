/*
 * The store: the controller's pool of connections to Postgres, and the queries that several parts of it share.
 */
import type { Pool, PoolClient, QueryResultRow } from 'pg';
import type { Logger } from '../platform/log.ts';
import { beginOf, openPool } from './connection.ts';
import type { DatabaseSettings } from './databaseAccess.ts';
import {
  databaseErrorKind,
  explainDatabaseError,
  isDeposed,
  isRowRefused,
  notGrantedError,
  notMigratedError,
} from './databaseError.ts';
import { requireCompatible, SCHEMA_VERSION, type SchemaState } from './migrations.ts';
import ensureClusterSql from './sql/ensureCluster.sql';
import readSchema from './sql/readSchema.sql';
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
  /**
   * The same store, whose transactions are those of a leader in its term: once a later term has begun, each one fails and calls
   * `onDeposed`.
   */
  underTerm(clusterId: number, term: number, onDeposed: () => void): Store;
  readSettings(): Promise<StoreSettings>;
  /** Throws MIGRATION_MISMATCH if the database was migrated to a schema that this program cannot use. */
  checkSchema(): Promise<void>;
  /** The id of a cluster, which is added when it is first seen. Throws DATABASE_REFUSED if the role is for other clusters. */
  ensureCluster(name: string): Promise<number>;
  ping(): Promise<void>;
  /** Waits for running statements and closes all connections. May be called twice. */
  close(): Promise<void>;
}

export interface StoreOptions extends DatabaseSettings {
  readonly log: Logger;
  /** Default: {@link MAX_CONNECTIONS}. */
  readonly databaseMaxConnections?: number;
  /** What `pg_stat_activity` calls its connections. Default: `plegwatch controller`. */
  readonly applicationName?: string;
}

/** How many connections a store opens. */
export const MAX_CONNECTIONS = 4;
const CONFLICT_ATTEMPTS = 5;
/** A leader that hangs within a transaction keeps the next one waiting for this long. */
const LEADER_IDLE_MS = 5_000;

/**
 * Opens the store and checks that it can be used.
 * Throws DATABASE_UNREACHABLE, DATABASE_REFUSED, DATABASE_TLS, DATABASE_NOT_MIGRATED or SETTING_INVALID.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { log, databaseMaxConnections = MAX_CONNECTIONS, applicationName = 'plegwatch controller' } = options;
  const pool = openPool(options, applicationName, databaseMaxConnections, log);
  try {
    await checkSchema(pool, options);
  } catch (error) {
    await pool.end();
    throw explainDatabaseError(options, error);
  }
  const isPooled = options.databasePoolMode === 'transaction';
  const inTransaction = <T>(work: (runner: SqlRunner) => Promise<T>) =>
    transaction(pool, { begin: beginOf(options), isPooled }, work);
  // A single statement has its timeouts from a transaction too where the session has none.
  const runner: SqlRunner = isPooled
    ? { run: (statement, values) => inTransaction((each) => each.run(statement, values)) }
    : runnerOf(pool, isPooled);
  let closing: Promise<void> | undefined;
  const store: Store = {
    run: runner.run,
    transaction: inTransaction,
    underTerm(clusterId, term, onDeposed) {
      const idle = `SET LOCAL idle_in_transaction_session_timeout = ${LEADER_IDLE_MS}`;
      const begin = `${beginOf(options)}; ${idle}; SELECT store.check_term(${clusterId}, ${term})`;
      const inTerm = <T>(work: (runner: SqlRunner) => Promise<T>) =>
        transaction(pool, { begin, isPooled }, work).catch((error: unknown) => {
          if (isDeposed(error)) onDeposed();
          throw error;
        });
      return {
        ...store,
        transaction: inTerm,
        run: (statement, values) => inTerm((each) => each.run(statement, values)),
      };
    },
    async readSettings() {
      const { rows } = await runner.run<StoreSettings & QueryResultRow>({ text: readSettingsSql });
      if (rows[0] === undefined) throw new Error('an aggregate query returned no row');
      return rows[0];
    },
    checkSchema: () => checkSchema(pool, options),
    async ensureCluster(name) {
      for (;;) {
        const { rows } = await runner
          .run<{ cluster_id: number }>({ text: ensureClusterSql }, [name])
          .catch((error: unknown) => {
            throw isRowRefused(error) ? notGrantedError(options, name, error) : error;
          });
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
  return store;
}

async function checkSchema(pool: Pool, settings: DatabaseSettings): Promise<void> {
  const { rows } = await pool.query<SchemaState>(readSchema);
  const { version, compatibleSince } = rows[0] ?? { version: 0, compatibleSince: 0 };
  if (version < SCHEMA_VERSION) {
    throw notMigratedError(settings, `it has migration ${version}, and ${SCHEMA_VERSION} is needed`);
  }
  requireCompatible(SCHEMA_VERSION, { version, compatibleSince });
}

async function transaction<T>(
  pool: Pool,
  { begin, isPooled }: { readonly begin: string; readonly isPooled: boolean },
  work: (runner: SqlRunner) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await client.query(begin);
      const result = await work(runnerOf(client, isPooled));
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

/** `isPooled`: a plan that is kept under a name belongs to a session, which another transaction may have. */
function runnerOf(client: Pick<Pool | PoolClient, 'query'>, isPooled: boolean): SqlRunner {
  return {
    async run<R extends QueryResultRow>({ text, name }: SqlStatement, values: readonly unknown[] = []) {
      const config = { text, values: [...values], ...(name === undefined || isPooled ? {} : { name }) };
      const result = await client.query<R>(config);
      return { rows: result.rows, count: result.rowCount ?? 0 };
    },
  };
}
