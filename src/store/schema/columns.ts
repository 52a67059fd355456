/*
 * The types of columns: their names in Postgres, and what their values are in the program. Every value is checked when it is read, so that
 * no row is believed. The driver hands times over as the text that Postgres sent, and parses everything else (src/store/runner.ts).
 */
import type { NotNull } from 'drizzle-orm';
import { customType, type PgColumnBuilderBase } from 'drizzle-orm/pg-core';
import { PlegwatchError } from '../../platform/errors.ts';
import { timeOf } from './time.ts';

/** How a value that Postgres sent is read: a column's, or that of an expression. */
export interface Field<T> {
  /** As format_type spells it. */
  readonly type: string;
  readonly isNullable: boolean;
  /** Not for null. Throws DATABASE_VALUE. */
  read(value: unknown): T;
}

/** A column type whose values `recognise` knows; it returns undefined for what cannot be one. As a field it is not null. */
function columnType<T>(type: string, recognise: (value: unknown) => T | undefined) {
  const read = (value: unknown): T => {
    const known = recognise(value);
    if (known === undefined) throw unexpected(`a ${typeof value} where the schema has ${type}`);
    return known;
  };
  const column = customType<{ data: T; driverData: unknown }>({ dataType: () => type, fromDriver: read });
  const field: Field<T> = { type, isNullable: false, read };
  return Object.assign(() => column(), { field });
}

/** `what` Postgres sent, without the value itself. */
export const unexpected = (what: string): PlegwatchError =>
  new PlegwatchError(
    'DATABASE_VALUE',
    `Postgres sent what this program does not expect: ${what}.`,
    'Set DateStyle to ISO for the role, and do not change views, tables or settings by hand: plegwatch migrate makes what this program reads.',
  );

const isText = (value: unknown) => (typeof value === 'string' ? value : undefined);
const isNumber = (value: unknown) => (typeof value === 'number' ? value : undefined);
const isList = <T>(value: unknown, item: (each: unknown) => T | undefined) =>
  Array.isArray(value) && value.every((each): each is T => item(each) !== undefined) ? value : undefined;

/** A bigint up to 2^53: counts and durations. A larger one is refused, not rounded. */
function safeInteger(value: unknown): number | undefined {
  const number = Number(value);
  return typeof value === 'string' && Number.isSafeInteger(number) ? number : undefined;
}

export const text = columnType('text', isText);
/** A name of Postgres's own, such as that of a role. */
export const name = columnType('name', isText);
export const uuid = columnType('uuid', isText);
/** YYYY-MM-DD */
export const date = columnType('date', isText);
/** RFC 3339 in UTC, to the microsecond; `infinity` and `-infinity` as Postgres writes them. */
export const timestamptz = columnType('timestamp with time zone', timeOf);
export const bool = columnType('boolean', (value) => (typeof value === 'boolean' ? value : undefined));
export const int2 = columnType('smallint', isNumber);
export const int4 = columnType('integer', isNumber);
export const int8 = columnType('bigint', safeInteger);
/** A bigint of all 64 bits, in decimal: keys, and nanoseconds. */
export const int8Text = columnType('bigint', isText);
export const float8 = columnType('double precision', isNumber);
export const bytea = columnType('bytea', (value) => (Buffer.isBuffer(value) ? value : undefined));
/** Any JSON: whoever uses it checks it (json in src/store/statement.ts). */
export const jsonb = columnType<unknown>('jsonb', (value) => value);
/** As Postgres writes it, such as `{[1,5),[8,9)}`. */
export const int4multirange = columnType('int4multirange', isText);
export const textArray = columnType('text[]', (value) => isList(value, isText));
export const int2Array = columnType('smallint[]', (value) => isList(value, isNumber));
export const int4Array = columnType('integer[]', (value) => isList(value, isNumber));

interface Nullable<B extends PgColumnBuilderBase> {
  notNull(): NotNull<B>;
}
/** The names in a list that is separated by spaces. */
type NamesIn<L extends string> = L extends `${infer First} ${infer Rest}` ? First | NamesIn<Rest> : L;
type Columns<L extends string, B> = { readonly [name in NamesIn<L>]: B };

/** Columns of one type that are never null, by a list of their names. */
export const all = <B extends PgColumnBuilderBase & Nullable<B>, L extends string>(
  type: () => B,
  names: L,
): Columns<L, NotNull<B>> => columns(names, () => type().notNull());

/** Columns of one type that may be null, by a list of their names. */
export const some = <B extends PgColumnBuilderBase, L extends string>(
  type: () => B,
  names: L,
): Columns<L, B> => columns(names, type);

const columns = <L extends string, B>(names: L, make: () => B): Columns<L, B> =>
  Object.fromEntries(names.split(' ').map((name) => [name, make()])) as Columns<L, B>;
