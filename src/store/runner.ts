/*
 * Runs statements: those in files, and typed queries. Both end in one function that sends text to Postgres, so that transactions, pools and errors
 * are the same for both.
 */
import { DrizzleQueryError } from 'drizzle-orm';
import { drizzle, type PgRemoteDatabase } from 'drizzle-orm/pg-proxy';
import { type CustomTypesConfig, types } from 'pg';
import type { Statement } from './statement.ts';

export interface SqlRunner {
  /** `count`: of the rows that were read or written. */
  run<R>(statement: Statement<R>, values?: readonly unknown[]): Promise<{ rows: R[]; count: number }>;
  /** Runs the typed query that `build` makes. Throws what Postgres said, without the values. */
  query<T>(build: (db: Queries) => PromiseLike<T>): Promise<T>;
}

/** What begins a typed query. Transactions are those of the store; a statement without a type is one in a file. */
export type Queries = Pick<
  PgRemoteDatabase<Record<string, never>>,
  'select' | 'insert' | 'update' | 'delete'
>;

/** Sends one statement. */
export type Execute = (query: {
  readonly text: string;
  readonly values: unknown[];
  readonly name?: string;
  readonly rowMode?: 'array';
}) => Promise<{ rows: unknown[]; rowCount: number | null }>;

export function runnerOf(execute: Execute): SqlRunner {
  let queries: Queries | undefined;
  return {
    async run({ text, name, row }, values = []) {
      const { rows, rowCount } = await execute({
        ...{ text, values: [...values] },
        ...(name === undefined ? {} : { name }),
      });
      const read = row === undefined ? [] : rows.map((each) => row.read(each as Record<string, unknown>));
      return { rows: read, count: rowCount ?? 0 };
    },
    async query(build) {
      queries ??= drizzle(async (text, values) => ({
        rows: (await execute({ text, values, rowMode: 'array' })).rows,
      }));
      try {
        return await build(queries);
      } catch (error) {
        // Its message has every value, and hides the code.
        throw error instanceof DrizzleQueryError && error.cause !== undefined ? error.cause : error;
      }
    },
  };
}

const TIMES: readonly number[] = [types.builtins.DATE, types.builtins.TIMESTAMP, types.builtins.TIMESTAMPTZ];

/** How the driver parses values: times stay text, which has all their digits. */
export const DRIVER_TYPES: CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    TIMES.includes(oid) ? (value: unknown) => value : types.getTypeParser(oid, format),
};
