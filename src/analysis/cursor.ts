/*
 * Reads the rows of a cursor, a bounded number at a time.
 */
import type { QueryResultRow } from 'pg';
import type { SqlRunner } from '../store/runner.ts';

const ROWS_PER_FETCH = 2_000;

/** `name` is that of a cursor which the transaction of `sql` has declared. */
export async function* fetchRows<R extends QueryResultRow>(sql: SqlRunner, name: string): AsyncGenerator<R> {
  for (;;) {
    const { rows } = await sql.run<R>({ text: `FETCH ${ROWS_PER_FETCH} FROM ${name}` });
    if (rows.length === 0) return;
    yield* rows;
  }
}
