/*
 * Typed queries: drizzle builds the text, and the rows are read here. Its drivers look up again for each value of each row where that belongs and how it
 * is read; here this is decided once for all rows of a query.
 */
import type { SQL, Subquery } from 'drizzle-orm';
import {
  PgColumn,
  PgDatabase,
  PgDialect,
  PgPreparedQuery,
  type PgQueryResultHKT,
  PgSession,
  type PreparedQueryConfig,
} from 'drizzle-orm/pg-core';
import { invariant } from '../platform/invariant.ts';
import { Typed } from './expressions.ts';
import { type Field, unexpected } from './schema/columns.ts';
import { fieldOf } from './statement.ts';

/** The beginnings of typed queries. Transactions are those of the store; a statement without a type is one in a file. */
export type Queries = Pick<
  PgDatabase<PgQueryResultHKT, Record<string, never>>,
  'select' | 'insert' | 'update' | 'delete'
>;

/** Sends a query. A row is an array of the values in the order of the fields. */
export type ReadValues = (text: string, parameters: unknown[]) => Promise<readonly unknown[]>;
type Values = readonly unknown[];

export const typedQueries = (readValues: ReadValues): Queries =>
  new PgDatabase(DIALECT, new Session(readValues), undefined);

const DIALECT = new PgDialect();

/** A field of a selection, and where a row has it: `['container', 'id']`. */
interface Selected {
  readonly path: readonly string[];
  readonly field: PgColumn | SQL | SQL.Aliased | Subquery;
}

interface QueryText {
  readonly sql: string;
  readonly params: unknown[];
}

class Session extends PgSession {
  readonly #readValues: ReadValues;

  constructor(readValues: ReadValues) {
    super(DIALECT);
    this.#readValues = readValues;
  }

  prepareQuery<T extends PreparedQueryConfig>(query: QueryText, fields: readonly Selected[] | undefined) {
    return new Query<T>(query, fields ?? [], this.#readValues);
  }

  transaction(): never {
    invariant(false, 'transactions are those of the store');
  }
}

class Query<T extends PreparedQueryConfig> extends PgPreparedQuery<T> {
  readonly #fields: readonly Selected[];
  readonly #readValues: ReadValues;

  constructor(query: QueryText, fields: readonly Selected[], readValues: ReadValues) {
    super(query, undefined, undefined);
    this.#fields = fields;
    this.#readValues = readValues;
  }

  async execute(): Promise<T['execute']> {
    const { sql, params } = this.getQuery();
    const rows = await this.#readValues(sql, params);
    return rows.map(rowReader(this.#fields));
  }
}

/**
 * Makes an object of the values of a row. Any column may be null because of an outer join, as the type of the row says. Only for a nested object the type says that
 * it would then be null as a whole; it stays an object here, and refuses null where its columns are never null.
 */
function rowReader(fields: readonly Selected[]): (row: unknown) => unknown {
  const located = fields.map(({ path, field }, at) => ({ path, read: valueReader(at, path, field) }));
  const read = objectReader(located, 0);
  return (row) => {
    invariant(isValues(row), 'the driver hands over each row as an array');
    return read(row);
  };
}

const isValues = (row: unknown): row is Values => Array.isArray(row);

interface Located {
  readonly path: readonly string[];
  readonly read: (values: Values) => unknown;
}

function objectReader(
  fields: readonly Located[],
  depth: number,
): (values: Values) => Record<string, unknown> {
  const parts = [...Map.groupBy(fields, ({ path }) => path[depth] ?? '')].map(([name, within]) => {
    const [first] = within;
    const isNested = first === undefined || first.path.length > depth + 1;
    return { name, read: isNested ? objectReader(within, depth + 1) : first.read };
  });
  return (values) => {
    const made: Record<string, unknown> = {};
    for (const { name, read } of parts) made[name] = read(values);
    return made;
  };
}

function valueReader(at: number, path: readonly string[], selected: Selected['field']): Located['read'] {
  const field = fieldOfSelected(selected);
  const isNullable = field.isNullable || path.length === 1;
  return (values) => {
    const value = values[at];
    if (value !== null) return field.read(value);
    if (!isNullable) throw unexpected(`null for ${path.join('.')}`);
    return null;
  };
}

function fieldOfSelected(selected: Selected['field']): Field<unknown> {
  if (selected instanceof PgColumn || selected instanceof Typed) return fieldOf(selected);
  invariant(false, 'a typed query selects columns, and expressions that are typed');
}
