/*
 * The schema of src/store/schema and the rows of every statement, against the migrated database: what the program reads is what Postgres has.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { is } from 'drizzle-orm';
import { getTableConfig, getViewConfig, PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fallbackConsequence } from '../../src/protocol/fallback.ts';
import { MODES } from '../../src/protocol/record.ts';
import * as tables from '../../src/store/schema/tables.ts';
import * as views from '../../src/store/schema/views.ts';
import type { Statement } from '../../src/store/statement.ts';
import { startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';

const SOURCE = new URL('../../src/', import.meta.url);
const filesOf = (ending: string) =>
  readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending) && !file.endsWith(`.test${ending}`))
    .sort();
const textOf = (file: string) => readFileSync(new URL(file, SOURCE), 'utf8');

interface NamedStatement {
  readonly where: string;
  readonly statement: Statement<unknown>;
}

/** Every statement that a file of the product exports. */
async function statementsOf(file: string): Promise<NamedStatement[]> {
  const exported: Record<string, unknown> = await import(new URL(file, SOURCE).href);
  return Object.entries(exported).flatMap(([name, value]) =>
    isStatement(value) ? [{ where: `${file} ${name}`, statement: value }] : [],
  );
}

const isStatement = (value: unknown): value is Statement<unknown> =>
  typeof value === 'object' && value !== null && 'text' in value && 'row' in value;

needs('postgres')('the schema', () => {
  let server: TestServer;
  let client: Client;

  beforeAll(async () => {
    server = await startServer();
    client = new Client({ connectionString: await server.database() });
    await client.connect();
  });
  afterAll(async () => {
    await client?.end();
    await server?.stop();
  });

  it('says of every mode, reason and version of a kubelet what fallbackConsequence says', async () => {
    const versions = Array.from({ length: 20 }, (_, i) => `v1.${22 + i}.3`);
    const others = [
      '1.30.14',
      'v1.31.9-eks-1a2b3c',
      'v1.33.0+k3s1',
      'v1.310.1',
      'v1.3',
      'v2.0.0',
      'v0.30.1',
      'vendor',
      '',
      null,
    ];
    const reasons = [
      'StreamBroke',
      'NotSeen',
      'RuntimeUnsupported',
      'RuntimeDownAtStart',
      'NeverConnected',
      '',
      null,
    ];
    const cases = [...versions, ...others].flatMap((kubeletVersion) =>
      reasons.flatMap((reason) => [...MODES, 'Newer'].map((mode) => ({ mode, reason, kubeletVersion }))),
    );
    const { rows } = await client.query<{ consequence: string | null }>(
      `SELECT store.fallback_consequence(u.mode, u.reason, u.version) AS consequence
       FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u (mode, reason, version, place) ORDER BY place`,
      [
        cases.map(({ mode }) => mode),
        cases.map(({ reason }) => reason),
        cases.map(({ kubeletVersion }) => kubeletVersion),
      ],
    );
    expect(rows.map(({ consequence }, i) => ({ ...cases[i], consequence }))).toEqual(
      cases.map((each) => ({ ...each, consequence: fallbackConsequence(each) })),
    );
  });

  it('says nothing of the fallback of a node whose mode nobody observed', async () => {
    const { rows } = await client.query(
      `SELECT store.fallback_consequence(NULL, NULL, 'v1.30.14') AS old, store.fallback_consequence(NULL, NULL, NULL) AS unknown`,
    );
    expect(rows).toEqual([{ old: null, unknown: null }]);
  });

  it('has every table and every view of the database, with the columns, types and NOT NULL that they have there', async () => {
    const { rows } = await client.query(
      `SELECT format('%s.%s', n.nspname, c.relname) AS relation, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
              CASE WHEN c.relkind <> 'v' THEN a.attnotnull END AS not_null
       FROM pg_class c
       JOIN pg_namespace n ON n.oid = c.relnamespace
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
       WHERE n.nspname IN ('store', 'plegwatch') AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition`,
    );
    const inDatabase = rows.map(({ relation, name, type, not_null }) =>
      [relation, name, type, not_null === null ? 'of a view' : not_null].join(' '),
    );
    expect(described().sort()).toEqual(inDatabase.sort());
  });

  describe('each statement in a file is bound to the row that Postgres returns', () => {
    it('no file is left out', async () => {
      const bound = (await everyStatement()).map(({ statement }) => statement.text);
      expect(filesOf('.sql').filter((file) => !bound.includes(textOf(file)))).toEqual([]);
    });

    it('names, types and their order are those of the statement', async () => {
      const types = new Map(
        (await client.query('SELECT oid, format_type(oid, NULL) AS type FROM pg_type')).rows.map(
          ({ oid, type }) => [Number(oid), type],
        ),
      );
      for (const { where, statement } of await everyStatement()) {
        if (statement.row === undefined) continue;
        const fields = await describedFields(client, statement.text);
        const inDatabase = fields.map(({ name, dataTypeID }) => `${name} ${types.get(dataTypeID)}`);
        const inProgram = Object.entries(statement.row.fields).map(([name, { type }]) => `${name} ${type}`);
        expect({ where, fields: inProgram.sort() }).toEqual({ where, fields: inDatabase.sort() });
      }
    });

    it('every command runs, or is refused for its values alone', async () => {
      for (const { where, statement } of await everyStatement()) {
        const error = await errorWithNulls(client, statement.text);
        // Class 22 is data, 23 a constraint, 42501 row-level security; P0001 and PW001 are raised by functions of ours.
        expect({ where, error: error?.code ?? 'none' }).toEqual({
          where,
          error: expect.stringMatching(
            /^(none|22...|23...|42501 new row violates row-level security.*|P0001|PW001|25001|55000)$/,
          ),
        });
      }
    });
  });
});

let found: Promise<NamedStatement[]> | undefined;
function everyStatement(): Promise<NamedStatement[]> {
  const files = filesOf('.ts').filter((file) => /\b(statement|command)\(/.test(textOf(file)));
  found ??= Promise.all(files.map(statementsOf)).then((all) => all.flat());
  return found;
}

/** The schema in the words of the database. */
function described(): string[] {
  return [...Object.values(tables), ...Object.values(views)].flatMap((relation) => {
    if (is(relation, PgTable)) {
      const { schema, name, columns } = getTableConfig(relation);
      return columns.map((column) =>
        [`${schema}.${name}`, column.name, column.getSQLType(), column.notNull].join(' '),
      );
    }
    const { schema, name, selectedFields } = getViewConfig(relation);
    return Object.values(selectedFields).flatMap((column) =>
      is(column, PgColumn)
        ? [[`${schema}.${name}`, column.name, column.getSQLType(), 'of a view'].join(' ')]
        : [],
    );
  });
}

interface DescribedField {
  readonly name: string;
  readonly dataTypeID: number;
}

const nullsOf = (text: string): null[] => {
  const numbers = [...text.replaceAll(/--.*$/gm, '').matchAll(/\$(\d+)/g)].map(([, number]) =>
    Number(number),
  );
  return Array.from({ length: Math.max(0, ...numbers) }, () => null);
};

/** The columns of the statement by Postgres, even if it then refuses the nulls. */
async function describedFields(client: Client, text: string): Promise<readonly DescribedField[]> {
  let fields: readonly DescribedField[] = [];
  const connection: NodeJS.EventEmitter = Reflect.get(client, 'connection');
  const listen = (message: { readonly fields: readonly DescribedField[] }) => {
    fields = message.fields;
  };
  connection.on('rowDescription', listen);
  await errorWithNulls(client, text);
  connection.off('rowDescription', listen);
  return fields;
}

/** Runs a statement with nulls for its values, in a transaction that is rolled back. */
async function errorWithNulls(client: Client, text: string): Promise<{ readonly code: string } | undefined> {
  await client.query('BEGIN');
  try {
    await client.query({ text, values: nullsOf(text) });
    return undefined;
  } catch (error) {
    const code = String(Reflect.get(Object(error), 'code'));
    return { code: code === '42501' ? `${code} ${String(Reflect.get(Object(error), 'message'))}` : code };
  } finally {
    await client.query('ROLLBACK');
  }
}
