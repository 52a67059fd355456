/*
 * Expressions that typed queries repeat, for which the query builder has no word.
 */
import { SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import type { Field } from './schema/columns.ts';
import { fieldOf, type Source, type ValueOf } from './statement.ts';

/** An expression, and how its values are read. */
export class Typed<T> extends SQL<T> {
  readonly field: Field<T>;

  constructor(field: Field<T>, { queryChunks }: SQL) {
    super(queryChunks);
    this.field = field;
  }
}

/** An expression whose values are read as those of `source` are. */
export const typed = <S extends Source>(source: S, expression: SQL): SQL<ValueOf<S>> =>
  new Typed(fieldOf(source), expression);

/** The clock of the database. */
export const databaseNow: SQL = sql`now()`;

/** Whether the column is one of these; undefined, which is no condition, for null. One parameter, however many there are. */
export function oneOf(column: AnyPgColumn, values: readonly unknown[] | null): SQL | undefined {
  return values === null ? undefined : sql`${column} = ANY (${sql.param(values)})`;
}

/** Sorted by the bytes, as every program sorts names: the collation of a database is its own. */
export const bytewise = (column: AnyPgColumn): SQL => sql`${column} COLLATE "C"`;
