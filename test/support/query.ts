/*
 * Statements of tests, each by itself. A connection is used again for a moment: to open one costs Postgres more than most statements.
 */
import { Client, Pool } from 'pg';
import { databaseErrorKind, isLockTimeout } from '../../src/store/databaseError.ts';

const IDLE_MS = 1_000;
/** Statements that wait for a lock do not hold up others. */
const MAX_CONNECTIONS = 100;

const pools = new Map<string, Pool>();

/** Runs one statement on a connection that no other one uses meanwhile. It must leave the session as it was. */
export async function query<R extends Record<string, unknown>>(
  databaseUrl: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<R[]> {
  try {
    return (await poolOf(databaseUrl).query<R>(text, [...values])).rows;
  } catch (error) {
    // The pool may not have heard yet that a connection broke, as when a test stops its Postgres.
    if (isOutage(error)) return queryAnew(databaseUrl, text, values);
    throw error;
  }
}

const isOutage = (error: unknown): boolean => databaseErrorKind(error) === 'outage' && !isLockTimeout(error);

/** Runs one statement in a session of its own. One of a fleet database would keep its connections to the groups. */
export async function queryAnew<R extends Record<string, unknown>>(
  databaseUrl: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<R[]> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return (await client.query<R>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

function poolOf(databaseUrl: string): Pool {
  const there = pools.get(databaseUrl);
  if (there !== undefined) return there;
  const pool = new Pool({
    connectionString: databaseUrl,
    max: MAX_CONNECTIONS,
    idleTimeoutMillis: IDLE_MS,
    allowExitOnIdle: true,
  });
  // An idle connection broke: the next statement opens another one.
  pool.on('error', () => undefined);
  pools.set(databaseUrl, pool);
  return pool;
}
