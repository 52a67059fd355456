/*
 * The store: the controller's pool of connections to Postgres, and the queries that several parts of it share.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import * as v from 'valibot';
import { Backoff } from '../platform/backoff.ts';
import { invariant } from '../platform/invariant.ts';
import type { Logger } from '../platform/log.ts';
import { beginOf, type Connections, openPool, withClient } from './connection.ts';
import type { DatabaseSettings } from './databaseAccess.ts';
import {
  databaseErrorKind,
  explainDatabaseError,
  FleetError,
  isDeposed,
  isRowRefused,
  isUnanswered,
  notGrantedError,
  notMigratedError,
} from './databaseError.ts';
import { requireCompatible, SCHEMA_VERSION } from './migrations.ts';
import { type Execute, runnerOf, type SqlRunner } from './runner.ts';
import { migration, setting } from './schema/tables.ts';
import { checked } from './statement.ts';
import { ensureCluster, hasMigrations } from './statements.ts';

/** Settings that belong to the database: the same for every controller that uses it. */
export interface StoreSettings {
  readonly queues: number;
  /** The most queues there ever were: workers drain them all. */
  readonly maxQueues: number;
  /** How long events, changes, minutes, status lags and rejected input are kept. */
  readonly eventRetentionDays: number;
  /** How long everything else is kept. */
  readonly findingRetentionDays: number;
}

export interface Store extends OpenStore {
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
}

/** A store as a reading command needs it: that of a fleet is made of several. */
export interface ReadStore extends SqlRunner {
  /** The name of the group, where it is the store of one of a fleet. */
  readonly name?: string | undefined;
  /** Runs `work` in one READ COMMITTED transaction; retries a few times after conflicts with other transactions. */
  transaction<T>(work: (runner: SqlRunner) => Promise<T>): Promise<T>;
  /** The stores that have the rows: those of the groups of a fleet, otherwise this one. */
  parts(): Promise<readonly ReadStore[]>;
}

/** A store whose rows may take long to read. */
export interface LongReadStore extends ReadStore {
  parts(): Promise<readonly LongReadStore[]>;
  /** Runs `work` on a connection of its own, without statement timeouts. */
  withClient<T>(work: (runner: SqlRunner) => Promise<T>): Promise<T>;
}

export interface OpenStore extends LongReadStore {
  /** Throws unless Postgres answers. Waits for no transaction: it has a connection of its own. */
  ping(): Promise<void>;
  /** Waits for running statements and closes all connections. May be called twice. */
  close(): Promise<void>;
}

export interface StoreOptions extends DatabaseSettings {
  readonly log: Logger;
  /** Default: {@link MAX_CONNECTIONS}. */
  readonly databaseMaxConnections?: number;
  /** The name of its connections in `pg_stat_activity`. Default: `plegwatch controller`. */
  readonly applicationName?: string;
}

/** The rows of store.setting, all of which plegwatch migrate makes. */
const SETTINGS = v.object({
  queues: v.number(),
  max_queues: v.number(),
  event_retention_days: v.number(),
  finding_retention_days: v.number(),
});
/** How many connections a store opens, besides the one that {@link Store.ping} uses. */
export const MAX_CONNECTIONS = 4;
const CONFLICT_ATTEMPTS = 5;
/** Two transactions that met do not meet again. */
const CONFLICT_PAUSE = { firstMs: 10, maxMs: 200 };
/** How long another transaction may take to add the row that ours found missing. */
const ADDED_WITHIN_ATTEMPTS = 100;
const ADDED_PAUSE_MS = 50;
/** A leader that hangs within a transaction keeps the next one waiting for this long. */
const LEADER_IDLE_MS = 5_000;

/**
 * Opens the store and checks that it can be used.
 * Throws DATABASE_UNREACHABLE, DATABASE_REFUSED, DATABASE_TLS, DATABASE_NOT_MIGRATED or SETTING_INVALID.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const opened = connect(options);
  await checkSchema(opened, options).catch(async (error: unknown) => {
    await opened.close();
    throw explainDatabaseError(options, error);
  });
  return storeOf(opened, options);
}

type Opened = Omit<OpenStore, 'parts'> & { readonly pool: Connections; readonly isPooled: boolean };

/** Connects when the first statement runs, and checks nothing. */
export function connect(options: StoreOptions): Opened {
  const { log, databaseMaxConnections = MAX_CONNECTIONS, applicationName = 'plegwatch controller' } = options;
  const pool = openPool(options, applicationName, databaseMaxConnections, log);
  const pings = openPool(options, `${applicationName} (ping)`, 1, log);
  const isPooled = options.databasePoolMode === 'transaction';
  const inTransaction = <T>(work: (runner: SqlRunner) => Promise<T>) =>
    transaction(pool, { begin: beginOf(options), isPooled }, work);
  let closing: Promise<unknown> | undefined;
  return {
    // A single statement has its timeouts from a transaction too where the session has none.
    ...(isPooled ? eachIn(inTransaction) : runnerOf(executeOn(pool))),
    ...{ pool, isPooled, transaction: inTransaction },
    withClient: (work) => withClient(options, applicationName, work),
    async ping() {
      await executeOn(pings)({ text: 'SELECT 1', values: [] });
    },
    async close() {
      closing ??= Promise.all([pool.end(), pings.end()]);
      await closing;
    },
  };
}

function storeOf({ pool, isPooled, ...opened }: Opened, options: StoreOptions): Store {
  const store: Store = {
    ...opened,
    parts: async () => [store],
    underTerm(clusterId, term, onDeposed) {
      const idle = `SET LOCAL idle_in_transaction_session_timeout = ${LEADER_IDLE_MS}`;
      const begin = `${beginOf(options)}; ${idle}; SELECT store.check_term(${clusterId}, ${term})`;
      const inTerm = <T>(work: (runner: SqlRunner) => Promise<T>) =>
        transaction(pool, { begin, isPooled }, work).catch((error: unknown) => {
          if (isDeposed(error)) onDeposed();
          throw error;
        });
      return { ...store, ...eachIn(inTerm), transaction: inTerm };
    },
    readSettings: () => readSettings(opened),
    checkSchema: () => checkSchema(opened, options),
    async ensureCluster(name) {
      const cluster = await onceAdded(async () => (await opened.run(ensureCluster, [name])).rows[0]).catch(
        (error: unknown) => {
          throw isRowRefused(error) ? notGrantedError(options, name, error) : error;
        },
      );
      return cluster.cluster_id;
    },
  };
  return store;
}

export const readSettings = async (sql: SqlRunner): Promise<StoreSettings> =>
  settingsOf(await sql.query((db) => db.select().from(setting)));

function settingsOf(rows: readonly { key: string; value: unknown }[]): StoreSettings {
  const { queues, max_queues, event_retention_days, finding_retention_days } = checked(
    SETTINGS,
    Object.fromEntries(rows.map(({ key, value }) => [key, value])),
  );
  return {
    ...{ queues, maxQueues: Math.max(queues, max_queues) },
    ...{ eventRetentionDays: event_retention_days, findingRetentionDays: finding_retention_days },
  };
}

/** Runs each statement in a transaction of its own. */
export const eachIn = (inTransaction: Store['transaction']): SqlRunner => ({
  run: (statement, values) => inTransaction((each) => each.run(statement, values)),
  query: (build) => inTransaction((each) => each.query(build)),
});

/**
 * The row that `read` adds or finds. It returns nothing while another transaction adds the same row, which it cannot see before that is committed.
 * Throws if that takes longer than a transaction may.
 */
export async function onceAdded<T>(read: () => Promise<T | undefined>): Promise<T> {
  for (let attempt = 0; attempt < ADDED_WITHIN_ATTEMPTS; attempt++) {
    const row = await read();
    if (row !== undefined) return row;
    await delay(ADDED_PAUSE_MS);
  }
  invariant(false, 'a row that another transaction adds is added or given up within seconds');
}

async function checkSchema(runner: SqlRunner, settings: DatabaseSettings): Promise<void> {
  const applied = await runner
    .query((db) => db.select().from(migration))
    .catch(async (error: unknown) => {
      const explained = explainDatabaseError(settings, error);
      const isFleet =
        explained.code === 'DATABASE_NOT_MIGRATED' && (await runner.run(hasMigrations)).rows[0]?.is_fleet;
      throw isFleet === true ? new FleetError(settings) : explained;
    });
  const version = Math.max(0, ...applied.map(({ number }) => number));
  const compatibleSince = Math.max(0, ...applied.map(({ compatible_since }) => compatible_since));
  if (version < SCHEMA_VERSION) {
    throw notMigratedError(settings, `it has migration ${version}, and ${SCHEMA_VERSION} is needed`);
  }
  requireCompatible(SCHEMA_VERSION, { version, compatibleSince });
}

async function transaction<T>(
  pool: Connections,
  { begin, isPooled }: { readonly begin: string; readonly isPooled: boolean },
  work: (runner: SqlRunner) => Promise<T>,
): Promise<T> {
  const pause = new Backoff(CONFLICT_PAUSE);
  for (let attempt = 1; ; attempt++) {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await client.query(begin);
      const result = await work(runnerOf(executeWith(client, isPooled)));
      await client.query('COMMIT');
      return result;
    } catch (error) {
      broken = await rollback(client, error);
      if (databaseErrorKind(error) !== 'conflict' || attempt === CONFLICT_ATTEMPTS) throw error;
    } finally {
      client.release(broken);
    }
    await delay(pause.next());
  }
}

/** Returns the error of a connection that cannot even roll back and must not be used again; to close it rolls back as well. */
async function rollback(client: PoolClient, failed: unknown): Promise<Error | undefined> {
  if (failed instanceof Error && isUnanswered(failed)) return failed;
  try {
    await client.query('ROLLBACK');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** `isPooled`: a plan that is kept under a name belongs to a session, which another transaction may have. */
function executeWith(client: PoolClient, isPooled: boolean): Execute {
  return ({ name, ...query }) => client.query(name === undefined || isPooled ? query : { ...query, name });
}

/** Runs a statement on any connection. One that failed is not used again: only Postgres knows in what state it is. */
const executeOn =
  (pool: Connections): Execute =>
  async (query) => {
    const client = await pool.connect();
    let failed: Error | undefined;
    try {
      return await client.query(query);
    } catch (error) {
      failed = error instanceof Error ? error : new Error(String(error));
      throw error;
    } finally {
      client.release(failed);
    }
  };
