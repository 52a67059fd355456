/*
 * Reads the database for one answer: in a transaction of its own that can write nothing, sees one moment, and is ended by Postgres after a time.
 */
import { databaseErrorKind } from '../../controller/store/databaseError.ts';
import type { SqlRunner, Store } from '../../controller/store/store.ts';
import { RequestError } from '../requestError.ts';

export interface Reader {
  /** Null: every cluster that the role may read. */
  readonly clusters: readonly string[] | null;
  readonly read: <T>(work: (sql: SqlRunner) => Promise<T>) => Promise<T>;
}

const BEGIN = `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SET LOCAL statement_timeout = '15s'; SET LOCAL TIME ZONE 'UTC'`;

export function createReader(store: Store, clusters: readonly string[] | undefined): Reader {
  return {
    clusters: clusters ?? null,
    read: (work) =>
      store.transaction(async (sql) => {
        await sql.run({ text: BEGIN });
        return work(sql);
      }),
  };
}

/** What an error of the database means for who asked; undefined if it is another one. */
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
