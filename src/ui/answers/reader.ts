/*
 * Reads the database for one answer: in a transaction of its own that can write nothing, sees one moment, and is ended by Postgres after a time.
 *
 * As many read at once as there are connections: the others wait here, in order. A reader that has gone away gets no further statement.
 */
import { PlegwatchError } from '../../platform/errors.ts';
import { Permits } from '../../platform/permits.ts';
import { sleep } from '../../platform/sleep.ts';
import { databaseErrorKind, GroupError, isRefused } from '../../store/databaseError.ts';
import { groupsHave, storesOf } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { command, type Statement } from '../../store/statement.ts';
import { eachIn, type ReadStore } from '../../store/store.ts';
import { RequestError } from '../requestError.ts';

export interface Reader {
  /** The name of the group of a fleet. */
  readonly name: string | undefined;
  /** Null: every cluster that the role may read. */
  readonly clusters: readonly string[] | null;
  /** Throws RequestError BUSY. */
  readonly read: <T>(work: (sql: SqlRunner) => Promise<T>) => Promise<T>;
  /** The readers of what has the rows: those of the groups of a fleet, otherwise this one. */
  readonly parts: () => Promise<readonly Reader[]>;
}

/** Reads in each part at once. */
export async function readEach<T>(reader: Reader, work: (sql: SqlRunner) => Promise<T>): Promise<T[]> {
  return Promise.all((await reader.parts()).map((part) => part.read(work)));
}

/** The part that has the rows of a cluster. Throws RequestError AMBIGUOUS. */
export async function partOf(reader: Reader, cluster: string): Promise<Reader> {
  const all = await reader.parts();
  if (all.length === 1) return all[0] ?? reader;
  const parts = async () => all.map((part) => ({ transaction: part.read, part }));
  const found = await storesOf({ parts }, [cluster]).catch((error: unknown) => {
    if (error instanceof PlegwatchError && error.code === 'NOT_FOUND') return [];
    throw error;
  });
  if (found.length > 1) {
    const message = groupsHave(
      found.map(({ part }) => part),
      `the cluster ${cluster}`,
    );
    throw new RequestError('AMBIGUOUS', message, 'Open the page of one of their databases.');
  }
  // Where none has it, any of them says that there is no such node.
  return found[0]?.part ?? all[0] ?? reader;
}

/** The store in which every statement is one of the reader's. */
export const readStoreOf = (reader: Reader): ReadStore => ({
  ...eachIn(reader.read),
  ...{ name: reader.name, transaction: reader.read },
  parts: async () => (await reader.parts()).map(readStoreOf),
});

/**
 * For a request whose client may go away: the signal is aborted then, and reading throws its reason. All who have `half` together use at most half of
 * the connections. Default: all.
 */
export type ReaderUntil = (signal: AbortSignal, share?: 'all' | 'half') => Reader;

const BEGIN = command(`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SET LOCAL statement_timeout = '15s'; SET LOCAL lock_timeout = 0; SET LOCAL TIME ZONE 'UTC'`);
/** How long a request waits for others to be answered. */
const MAX_WAIT_MS = 15_000;

export function createReader(
  store: Pick<ReadStore, 'name' | 'transaction' | 'parts'>,
  clusters: readonly string[] | undefined,
  maxConnections: number,
): ReaderUntil {
  const permits = new Permits(maxConnections);
  const halfPermits = new Permits(Math.ceil(maxConnections / 2));
  // Each group has its own connections.
  const others = new WeakMap<object, ReaderUntil>();
  function readerOf(part: ReadStore): ReaderUntil {
    const known = others.get(part) ?? createReader(part, clusters, maxConnections);
    others.set(part, known);
    return known;
  }
  return (signal, share = 'all') => {
    async function withPermit<T>(from: Permits, work: () => Promise<T>): Promise<T> {
      const release = await permitWithin(from, MAX_WAIT_MS, signal);
      try {
        return await work();
      } finally {
        release();
      }
    }
    const reader: Reader = {
      name: store.name,
      clusters: clusters ?? null,
      read(work) {
        const read = () =>
          withPermit(permits, () =>
            store.transaction(async (sql) => {
              await sql.run(BEGIN);
              return work(until(signal, sql));
            }),
          );
        return share === 'half' ? withPermit(halfPermits, read) : read();
      },
      async parts() {
        const parts = await store.parts();
        return parts.map((part) => (part === store ? reader : readerOf(part)(signal, share)));
      },
    };
    return reader;
  };
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
  const postgres = error instanceof GroupError ? `Postgres of group ${error.group}` : 'Postgres';
  if (kind === 'timeout') {
    const cure = 'Ask for a shorter period, or make the database faster.';
    return new RequestError('TOO_SLOW', `${postgres} did not answer within 15 s.`, cure, { cause: error });
  }
  const reason = error instanceof GroupError ? error.cause : error;
  const isAnswered = reason instanceof PlegwatchError && reason.code !== 'DATABASE_UNREACHABLE';
  if (kind !== 'outage' && kind !== 'conflict' && !isRefused(reason)) return undefined;
  if (isAnswered || isRefused(reason)) {
    const cure =
      'The log of plegwatch ui says why, and plegwatch doctor what to do. It is tried again by itself.';
    return new RequestError('DATABASE_AWAY', `${postgres} cannot be used.`, cure, { cause: error });
  }
  const cure = 'Check that Postgres runs and that plegwatch ui reaches it. It connects again by itself.';
  return new RequestError('DATABASE_AWAY', `${postgres} does not answer.`, cure, { cause: error });
}
