/*
 * Reads the database for one answer: in a transaction of its own that can write nothing, sees one moment, and is ended by Postgres after a time.
 *
 * As many read at once as there are connections: the others wait here, in order. A reader that has gone away gets no further statement.
 */
import { Permits } from '../../platform/permits.ts';
import { sleep } from '../../platform/sleep.ts';
import { databaseErrorKind } from '../../store/databaseError.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { command, type Statement } from '../../store/statement.ts';
import type { Store } from '../../store/store.ts';
import { RequestError } from '../requestError.ts';

export interface Reader {
  /** Null: every cluster that the role may read. */
  readonly clusters: readonly string[] | null;
  /** Throws RequestError BUSY. */
  readonly read: <T>(work: (sql: SqlRunner) => Promise<T>) => Promise<T>;
}

/** For a request whose client may go away: the signal is aborted then, and reading throws its reason. */
export type ReaderUntil = (signal: AbortSignal) => Reader;

const BEGIN = command(`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SET LOCAL statement_timeout = '15s'; SET LOCAL lock_timeout = 0; SET LOCAL TIME ZONE 'UTC'`);
/** How long a request waits for others to be answered. */
const MAX_WAIT_MS = 15_000;

export function createReader(
  store: Pick<Store, 'transaction'>,
  clusters: readonly string[] | undefined,
  maxConnections: number,
): ReaderUntil {
  const permits = new Permits(maxConnections);
  return (signal) => ({
    clusters: clusters ?? null,
    async read(work) {
      const release = await permitWithin(permits, MAX_WAIT_MS, signal);
      try {
        return await store.transaction(async (sql) => {
          await sql.run(BEGIN);
          return work(until(signal, sql));
        });
      } finally {
        release();
      }
    },
  });
}

const until = (signal: AbortSignal, sql: SqlRunner): SqlRunner => ({
  run<R>(statement: Statement<R>, values?: readonly unknown[]) {
    signal.throwIfAborted();
    return sql.run(statement, values);
  },
  query(build) {
    signal.throwIfAborted();
    return sql.query(build);
  },
});

async function permitWithin(permits: Permits, ms: number, signal: AbortSignal): Promise<() => void> {
  const taken = permits.take();
  const done = new AbortController();
  const release = await Promise.race([taken, sleep(ms, AbortSignal.any([signal, done.signal]))]);
  done.abort();
  if (release !== undefined && !signal.aborted) return release;
  taken.then((late) => late());
  signal.throwIfAborted();
  throw new RequestError(
    'BUSY',
    'Too much is being read from Postgres at once.',
    'Try again, ask for a shorter period, or raise --database-max-connections.',
  );
}

/** The meaning of an error of the database for the client; undefined if it is another one. */
export function databaseRefusal(error: unknown): RequestError | undefined {
  const kind = databaseErrorKind(error);
  if (kind === 'timeout') {
    const cure = 'Ask for a shorter period, or make the database faster.';
    return new RequestError('TOO_SLOW', 'Postgres did not answer within 15 s.', cure, { cause: error });
  }
  if (kind !== 'outage' && kind !== 'conflict') return undefined;
  const cure = 'Check that Postgres runs and that plegwatch ui reaches it. It connects again by itself.';
  return new RequestError('DATABASE_AWAY', 'Postgres does not answer.', cure, { cause: error });
}
