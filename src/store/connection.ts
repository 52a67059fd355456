/*
 * Connections to Postgres, with their names and timeouts. Each one reads anew where Postgres is and how to log in, so that a rotated
 * Secret needs no restart; connections that are open stay open.
 */
import { Client, type ClientConfig, Pool } from 'pg';
import { PlegwatchError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { ThrottledLog } from '../platform/throttledLog.ts';
import {
  type DatabaseAccess,
  type DatabaseSettings,
  databaseSettingOf,
  readDatabaseAccess,
} from './databaseAccess.ts';
import { explainDatabaseError, isLoginRefused } from './databaseError.ts';
import { NegotiatedConnection } from './negotiatedConnection.ts';
import { DRIVER_TYPES, runnerOf, type SqlRunner } from './runner.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 30_000;
const TIMEOUTS = {
  statement_timeout: STATEMENT_TIMEOUT_MS,
  lock_timeout: 15_000,
  // Transactions are short; one that idles longer belongs to a process that hangs.
  idle_in_transaction_session_timeout: 30_000,
} as const;

/** What begins a transaction: with a pooler in between, timeouts cannot be set for the whole session. */
export const beginOf = ({ databasePoolMode }: DatabaseSettings): string =>
  databasePoolMode === 'transaction'
    ? ['BEGIN', ...Object.entries(TIMEOUTS).map(([name, ms]) => `SET LOCAL ${name} = ${ms}`)].join('; ')
    : 'BEGIN';

/** A pool whose statements end even if the network fails or a lock is held. */
export function openPool(settings: DatabaseSettings, name: string, max: number, log: Logger): Pool {
  const throttled = new ThrottledLog(log, { linesPerMinute: 1 });
  const cure = `${databaseSettingOf(settings)} is read again before the next try`;
  const onRefused = (error: string) => throttled.warn({ error, cure }, 'Postgres refuses the login');
  const pool = new Pool({
    Client: clientOf(settings, onRefused),
    application_name: name,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    max,
    idleTimeoutMillis: 30_000,
    ...(settings.databasePoolMode === 'transaction' ? {} : TIMEOUTS),
    // The server's timeout does not reach a client whose connection is dead.
    query_timeout: STATEMENT_TIMEOUT_MS + 5_000,
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
  settings: DatabaseSettings,
  name: string,
  work: (sql: SqlRunner, client: Client) => Promise<T>,
): Promise<T> {
  const FreshClient = clientOf(settings, () => undefined);
  const client = new FreshClient({
    application_name: name,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // A connection that breaks also fails the query in flight, which reports it.
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (error) {
    await client.end().catch(() => undefined);
    throw explainDatabaseError(settings, error);
  }
  try {
    return await work(
      runnerOf((query) => client.query(query)),
      client,
    );
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** A client of the driver that reads the access when it is made, which is right before it connects. */
function clientOf(settings: DatabaseSettings, onRefused: (error: string) => void) {
  return class extends Client {
    constructor(config?: ClientConfig) {
      const access = accessNow(settings);
      const connection = new NegotiatedConnection(settings, access);
      connection.on('errorMessage', (error: unknown) => {
        if (isLoginRefused(error)) onRefused(error.message);
      });
      const known = access instanceof PlegwatchError ? {} : loginOf(access);
      super(Object.assign({ types: DRIVER_TYPES }, config, known, { connection, ssl: false }));
    }
  };
}

function loginOf({ tls, password = '', ...place }: DatabaseAccess): ClientConfig {
  // Without a function the driver would take an empty password for none, and look for a file that has one.
  return { ...place, password: () => password };
}

/** The driver does not expect an error where it makes a client: the connection has it. */
function accessNow(settings: DatabaseSettings): DatabaseAccess | PlegwatchError {
  try {
    return readDatabaseAccess(settings);
  } catch (error) {
    if (error instanceof PlegwatchError) return error;
    throw error;
  }
}
