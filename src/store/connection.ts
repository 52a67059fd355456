/*
 * Connections to Postgres, with their names and timeouts. Each one reads anew where Postgres is and how to log in, so that a rotated
 * Secret needs no restart; connections that are open stay open.
 *
 * The driver knows TLS or no TLS. With `sslmode=prefer`, as with libpq, a connection is tried with TLS first, and without it if the server has none or
 * the handshake fails. For a minute the next ones are then tried without it first: no longer, since a server that restarts breaks handshakes too.
 */
import type { ConnectionOptions } from 'node:tls';
import { getCACertificates, TLSSocket } from 'node:tls';
import { Client, type ClientConfig, Pool, type PoolClient } from 'pg';
import { monoNow } from '../platform/clock.ts';
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { ThrottledLog } from '../platform/throttledLog.ts';
import { explainTls } from '../platform/tls.ts';
import { type Mono, millis, mono, shift } from '../protocol/units.ts';
import {
  type DatabaseAccess,
  type DatabaseSettings,
  databaseAt,
  databaseSettingOf,
  databaseTlsNames,
  readDatabaseAccess,
} from './databaseAccess.ts';
import { explainDatabaseError, isLoginRefused } from './databaseError.ts';
import { DRIVER_TYPES, runnerOf, type SqlRunner } from './runner.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 30_000;
const WITHOUT_TLS_FOR = millis(60_000);
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 30_000 } as const;
const TIMEOUTS = {
  statement_timeout: STATEMENT_TIMEOUT_MS,
  lock_timeout: 15_000,
  // Transactions are short; one that idles longer belongs to a process that hangs.
  idle_in_transaction_session_timeout: 30_000,
} as const;

/**
 * The beginning of a transaction. With a pooler in between, timeouts cannot be set for the whole session. Statements of transactions take arrays of
 * any length: Postgres would plan the costly ones anew each time, which takes a third as long as to run them.
 */
export const beginOf = ({ databasePoolMode }: DatabaseSettings): string =>
  [
    'BEGIN',
    'SET LOCAL plan_cache_mode = force_generic_plan',
    ...(databasePoolMode === 'transaction'
      ? Object.entries(TIMEOUTS).map(([name, ms]) => `SET LOCAL ${name} = ${ms}`)
      : []),
  ].join('; ');

/** Connections that are used again. */
export interface Connections {
  connect(): Promise<PoolClient>;
  end(): Promise<void>;
}

/** A pool whose statements end even if the network fails or a lock is held. */
export function openPool(
  settings: DatabaseSettings,
  name: string,
  max: number,
  log: Logger,
  now = monoNow,
): Connections {
  const throttled = new ThrottledLog(log, { linesPerMinute: 1 });
  const cure = `${databaseSettingOf(settings)} is read again before the next try`;
  const onRefused = (error: string) => throttled.warn({ error, cure }, 'Postgres refuses the login');
  const preferred = new PreferredTls(now);
  const pool = new Pool({
    Client: clientOf(settings, preferred, onRefused),
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
  return { connect: () => preferred.connect(() => pool.connect()), end: () => pool.end() };
}

/** Runs `work` on a connection without statement timeouts, for work that may take long, and closes it. */
export async function withClient<T>(
  settings: DatabaseSettings,
  name: string,
  work: (sql: SqlRunner) => Promise<T>,
): Promise<T> {
  const preferred = new PreferredTls();
  const FreshClient = clientOf(settings, preferred, () => undefined);
  const connect = async () => {
    const client = new FreshClient({
      application_name: name,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    });
    await client.connect();
    return client;
  };
  const client = await preferred.connect(connect).catch((error: unknown) => {
    throw explainDatabaseError(settings, error);
  });
  try {
    return await work(runnerOf((query) => client.query(query)));
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** With `sslmode=prefer`: whether a connection is tried with TLS. */
class PreferredTls {
  readonly #now: typeof monoNow;
  #withoutUntil: Mono = mono(0);

  constructor(now = monoNow) {
    this.#now = now;
  }

  get isTried(): boolean {
    return this.#now() >= this.#withoutUntil;
  }

  tryFirst(isTls: boolean): void {
    this.#withoutUntil = isTls ? mono(0) : shift(this.#now(), WITHOUT_TLS_FOR);
  }

  /** Connects, and once more where that failed because of TLS, or of the want of it, and the server may be had the other way. */
  async connect<T>(attempt: () => Promise<T>): Promise<T> {
    const before = this.#withoutUntil;
    try {
      return await attempt();
    } catch (error) {
      // Another connection may have found out meanwhile.
      if (this.#withoutUntil === before) throw error;
      return attempt();
    }
  }
}

type Connected = (error?: Error | null) => void;

/** A client of the driver that reads the access when it is made, which is right before it connects. */
function clientOf(settings: DatabaseSettings, preferred: PreferredTls, onRefused: (error: string) => void) {
  return class extends Client {
    readonly #access: DatabaseAccess | PlegwatchError;
    readonly #usesTls: boolean;
    #isShakingHands = false;
    /** Whether TLS is on and the server has not sent anything since. */
    #isUnanswered = false;

    constructor(config?: ClientConfig) {
      const access = accessNow(settings);
      const usesTls = !(access instanceof PlegwatchError) && isTried(access, preferred);
      const known = access instanceof PlegwatchError ? {} : loginOf(access);
      const ssl = usesTls ? tlsOf(access) : false;
      super({ types: DRIVER_TYPES, ...KEEP_ALIVE, ...config, ...known, ssl });
      this.#access = access;
      this.#usesTls = usesTls;
      this.connection.on('errorMessage', (error: unknown) => {
        if (isLoginRefused(error)) onRefused(error.message);
      });
      // A connection that breaks also fails its query, which reports it. The pool listens only once it knows that the connection is there.
      this.on('error', () => undefined);
      this.connection.once('sslconnect', () => {
        const { stream } = this.connection;
        if (!(stream instanceof TLSSocket)) return;
        this.#isShakingHands = true;
        stream.once('secureConnect', () => {
          this.#isShakingHands = false;
          this.#isUnanswered = true;
        });
        stream.once('data', () => {
          this.#isUnanswered = false;
        });
      });
    }

    override connect(): Promise<this>;
    override connect(connected: Connected): void;
    override connect(connected?: Connected): Promise<this> | undefined {
      const done = this.#connect();
      if (connected === undefined) return done;
      done.then(() => connected(), connected);
      return undefined;
    }

    async #connect(): Promise<this> {
      // The driver does not expect an error where it makes a client.
      if (this.#access instanceof PlegwatchError) throw this.#access;
      try {
        await super.connect();
        return this;
      } catch (error) {
        // The driver leaves the socket open if the failure is on our side.
        this.connection.stream.destroy();
        const explained = this.#usesTls ? tlsError(settings, error, this.#isUnanswered) : error;
        if (this.#access.tls.mode === 'prefer') this.#reconsider(error, explained);
        throw explained;
      }
    }

    /** Sees from the error of a connection whether the next one should be tried the other way. */
    #reconsider(error: unknown, explained: unknown): void {
      if (this.#usesTls) {
        // An error by which the driver ends a slow connection has no code.
        const isBroken = this.#isShakingHands && Reflect.get(Object(error), 'code') !== undefined;
        const isOfTls = explained instanceof PlegwatchError && explained.code === 'DATABASE_TLS';
        if (isBroken || (isOfTls && !this.#isUnanswered)) preferred.tryFirst(false);
      } else if (isLoginRefused(error) && /no encryption/.test(error.message)) preferred.tryFirst(true);
    }
  };
}

const isTried = ({ host, tls }: DatabaseAccess, preferred: PreferredTls): boolean =>
  !host.startsWith('/') && tls.mode !== 'disable' && (tls.mode !== 'prefer' || preferred.isTried);

function loginOf({ tls, password = '', ...place }: DatabaseAccess): ClientConfig {
  // Without a function the driver would take an empty password for none, and look for a file that has one.
  return { ...place, password: () => password };
}

function tlsOf({ tls: { mode, verifies, ca, cert, key } }: DatabaseAccess): ConnectionOptions {
  return {
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    rejectUnauthorized: verifies,
    ...(verifies ? { ca: ca ?? getCACertificates('system') } : {}),
    ...(mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  };
}

/** The meaning of an error of a connection with TLS. `isUnanswered`: the handshake succeeded on our side, and the server has sent nothing since. */
function tlsError(settings: DatabaseSettings, error: unknown, isUnanswered: boolean): unknown {
  const failure = (message: string, cure: string) =>
    new PlegwatchError(
      'DATABASE_TLS',
      `The TLS connection to Postgres at ${databaseAt(settings)} fails: ${messageOf(message)}.`,
      cure,
      { cause: error },
    );
  const text = messageOf(error);
  if (/does not support SSL/.test(text)) {
    return failure(
      'the server has no TLS',
      'Turn TLS on in Postgres (ssl = on), or set the sslmode to prefer or disable.',
    );
  }
  if (/error establishing an SSL connection/.test(text)) {
    return new PlegwatchError(
      'DATABASE_UNREACHABLE',
      `The server at ${databaseAt(settings)} is not Postgres: it does not know the request for TLS.`,
      `Correct host and port in ${databaseSettingOf(settings)}.`,
    );
  }
  const explained = explainTls(error, databaseTlsNames(settings), isUnanswered);
  return explained === null ? error : failure(explained.message, explained.cure);
}

function accessNow(settings: DatabaseSettings): DatabaseAccess | PlegwatchError {
  try {
    return readDatabaseAccess(settings);
  } catch (error) {
    if (error instanceof PlegwatchError) return error;
    throw error;
  }
}
