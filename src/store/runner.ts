/*
 * Runs statements: those in files, and typed queries. Both end in one function that sends text to Postgres, so that transactions, pools and errors
 * are the same for both.
 */
import { type CustomTypesConfig, types } from 'pg';
import type { Statement } from './statement.ts';
import { type Queries, typedQueries } from './typedQueries.ts';

export interface SqlRunner {
  /** `count`: of the rows that were read or written. */
  run<R>(statement: Statement<R>, values?: readonly unknown[]): Promise<{ rows: R[]; count: number }>;
  /** Runs the typed query that `build` makes. Throws what Postgres said, without the values. */
  query<T>(build: (db: Queries) => PromiseLike<T>): Promise<T>;
}

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
      queries ??= typedQueries(
        async (text, values) => (await execute({ text, values, rowMode: 'array' })).rows,
      );
      return build(queries);
    },
  };
}

const TIMES: readonly number[] = [types.builtins.DATE, types.builtins.TIMESTAMP, types.builtins.TIMESTAMPTZ];

/** How the driver parses values: times stay text, which has all their digits. */
export const DRIVER_TYPES: CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    TIMES.includes(oid) ? (value: unknown) => value : types.getTypeParser(oid, format),
};
