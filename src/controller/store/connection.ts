/*
 * Connections to Postgres, with their names and timeouts.
 */
import { Client, type ClientConfig, Pool } from 'pg';
import type { Logger } from '../../platform/log.ts';
import { explainDatabaseError } from './databaseError.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 30_000;
/** Transactions are short; one that idles longer belongs to a process that hangs. */
const IDLE_IN_TRANSACTION_MS = 30_000;
const LOCK_TIMEOUT_MS = 15_000;

/** A pool whose statements end even if the network fails or a lock is held. */
export function openPool(databaseUrl: string, name: string, max: number, log: Logger): Pool {
  const pool = new Pool({
    ...configOf(databaseUrl, name),
    max,
    idleTimeoutMillis: 30_000,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    // The server's timeout does not reach a client whose connection is dead.
    query_timeout: STATEMENT_TIMEOUT_MS + 5_000,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
  });
  // A connection that breaks between two statements of a transaction emits an error that would end the process if nobody
  // listened. The next statement fails and is handled there.
  pool.on('connect', (client) => {
    client.on('error', (error) => log.debug({ error: error.message }, 'database connection broke'));
  });
  pool.on('error', (error) => log.warn({ error: error.message }, 'idle database connection broke'));
  return pool;
}

/** Runs `work` on a connection without statement timeouts, for work that may take long, and closes it. */
export async function withClient<T>(
  databaseUrl: string,
  name: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(configOf(databaseUrl, name));
  // A connection that breaks also fails the query in flight, which reports it.
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (error) {
    await client.end().catch(() => undefined);
    throw explainDatabaseError(databaseUrl, error);
  }
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

function configOf(databaseUrl: string, name: string): ClientConfig {
  return {
    connectionString: databaseUrl,
    application_name: name,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  };
}
