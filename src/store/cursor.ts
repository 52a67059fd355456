/*
 * Reads the rows of a long query through a cursor, a bounded number at a time. The caller has begun a transaction.
 */
import type { SqlRunner } from './runner.ts';
import { command, type RowReader, statement } from './statement.ts';

const ROWS_PER_FETCH = 500;
const CURSOR = 'long_query';

/** A query, such as a typed one's `toSQL()`. */
interface Query {
  readonly sql: string;
  readonly params: readonly unknown[];
}

/** One cursor of a transaction can be open at a time. */
export async function* rowsOf<R>(sql: SqlRunner, query: Query, row: RowReader<R>): AsyncGenerator<R> {
  await sql.run(command(`DECLARE ${CURSOR} NO SCROLL CURSOR FOR ${query.sql}`), query.params);
  const fetch = statement(`FETCH ${ROWS_PER_FETCH} FROM ${CURSOR}`, row);
  for (;;) {
    const { rows } = await sql.run(fetch);
    if (rows.length === 0) break;
    yield* rows;
  }
  await sql.run(command(`CLOSE ${CURSOR}`));
}
