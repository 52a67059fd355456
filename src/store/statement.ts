/*
 * A statement in a file, and the row that it returns: fields made of columns of the schema and their types. The values of each row are checked as it
 * is read; test/integration/schema.test.ts compares the fields with what Postgres says of the statement.
 */
import type { GetColumnData } from 'drizzle-orm';
import { type AnyPgColumn, PgColumn } from 'drizzle-orm/pg-core';
import * as v from 'valibot';
import { type Field, unexpected } from './schema/columns.ts';

/** Reads one row in place. */
export interface RowReader<R> {
  readonly fields: Readonly<Record<string, Field<unknown>>>;
  read(row: Record<string, unknown>): R;
}

export interface Statement<R> {
  readonly text: string;
  /** The name of a statement that runs often: the server keeps its plan under this name. */
  readonly name: string | undefined;
  /** Undefined where nobody reads the rows. */
  readonly row: RowReader<R> | undefined;
}

/** The type of the rows of a statement. */
export type RowOf<S> = S extends Statement<infer R> ? R : never;

/** A column has its own type and nullability. A type alone is that of an expression which is never null. */
export type Source = AnyPgColumn | Field<unknown> | { readonly field: Field<unknown> };
export type ValueOf<S> = S extends { readonly field: Field<infer T> }
  ? T
  : S extends Field<infer T>
    ? T
    : S extends AnyPgColumn
      ? GetColumnData<S>
      : never;

/** A statement that returns rows. */
export const statement = <R>(text: string, row: RowReader<R>, name?: string): Statement<R> => ({
  text,
  name,
  row,
});

/** A statement that returns no rows, or whose rows nobody reads. */
export const command = (text: string, name?: string): Statement<never> => ({ text, name, row: undefined });

/** A row with these fields and no others. */
export function rowOf<S extends Readonly<Record<string, Source>>>(
  sources: S,
): RowReader<{ readonly [name in keyof S]: ValueOf<S[name]> }> {
  const named = Object.entries(sources).map(([name, source]) => [name, fieldOf(source)] as const);
  return {
    fields: Object.fromEntries(named),
    read(row) {
      for (const [name, field] of named) {
        const value = row[name];
        if (value !== null && value !== undefined) row[name] = field.read(value);
        else if (value === undefined || !field.isNullable)
          throw unexpected(`${value === null ? 'null for' : 'no'} ${name}`);
      }
      return row as { [name in keyof S]: ValueOf<S[name]> };
    },
  };
}

/** How values of `source` are read. */
export function fieldOf<S extends Source>(source: S): Field<ValueOf<S>>;
export function fieldOf(source: Source): Field<unknown> {
  if ('field' in source) return source.field;
  if (!(source instanceof PgColumn)) return source;
  return {
    type: source.getSQLType(),
    isNullable: !source.notNull,
    read: (value) => source.mapFromDriverValue(value),
  };
}

/** The same, where an outer join or an expression may leave it null. */
export const nullable = <S extends Source>(source: S): Field<ValueOf<S> | null> => ({
  ...fieldOf(source),
  isNullable: true,
});

/** The same, where the statement leaves out the rows that have null there. */
export const present = <S extends Source>(source: S): Field<NonNullable<ValueOf<S>>> => ({
  ...(fieldOf(source) as Field<NonNullable<ValueOf<S>>>),
  isNullable: false,
});

/** JSON that the database built or an agent sent, and what it must be. */
export const json = <S extends v.GenericSchema>(schema: S): Field<v.InferOutput<S>> => ({
  type: 'jsonb',
  isNullable: false,
  read: (value) => checked(schema, value),
});

/** A text that is one of these. */
export const word = <W extends string>(...words: readonly W[]): Field<W> => ({
  ...{ ...json(v.picklist(words)), type: 'text' },
});

/** A value of the schema. Throws DATABASE_VALUE, which says where it differs. */
export function checked<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const { issues, output } = v.safeParse(schema, value);
  const [issue] = issues ?? [];
  if (issue !== undefined) throw unexpected(`${v.getDotPath(issue) ?? 'JSON'}: ${issue.message}`);
  return output;
}
