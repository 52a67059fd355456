/*
 * Rows as the bytes of a Parquet file: times in microseconds of UTC, arrays as lists, JSON and UUIDs as text. Every column may have nulls.
 *
 * Rows are written in groups, so that the memory does not grow with their number.
 */
import { constants, zstdCompressSync } from 'node:zlib';
import { type SQL, sql } from 'drizzle-orm';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import {
  bool,
  bytea,
  type Field,
  float8,
  int4,
  int4Array,
  int8Text,
  text,
  textArray,
} from '../../store/schema/columns.ts';
import { nullable } from '../../store/statement.ts';

type Schema = ConstructorParameters<typeof ParquetWriter>[0]['schema'];
type Element = Schema[number];

/** A row by the names of its columns. */
export type LakeRow = Readonly<Record<string, unknown>>;

/** How the values of a type of Postgres are selected, read and written. */
interface Form {
  readonly select: (column: SQL) => SQL;
  readonly field: Field<unknown>;
  readonly element: Omit<Element, 'name'>;
  readonly isList?: true;
}

export interface LakeColumn extends Form {
  readonly name: string;
}

const asIs = (column: SQL) => column;
const BIGINT: Field<bigint> = { ...int8Text.field, read: (value) => BigInt(int8Text.field.read(value)) };
const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } } as const;
const TIME = {
  type: 'INT64',
  converted_type: 'TIMESTAMP_MICROS',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
} as const;

const AS_TEXT: Form = { select: (column) => sql`${column}::text`, field: text.field, element: TEXT };
const INTEGER: Form = { select: asIs, field: int4.field, element: { type: 'INT32' } };
const INTEGERS: Form = { ...INTEGER, field: int4Array.field, isList: true };
/** By the name of the type; others are written as text. */
const FORMS: Readonly<Record<string, Form>> = {
  'timestamp with time zone': {
    select: (column) => sql`(extract(epoch FROM ${column}) * 1000000)::int8`,
    field: BIGINT,
    element: TIME,
  },
  date: {
    select: (column) => sql`${column} - date '1970-01-01'`,
    field: int4.field,
    element: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
  },
  boolean: { select: asIs, field: bool.field, element: { type: 'BOOLEAN' } },
  smallint: INTEGER,
  integer: INTEGER,
  bigint: { select: asIs, field: BIGINT, element: { type: 'INT64' } },
  'double precision': { select: asIs, field: float8.field, element: { type: 'DOUBLE' } },
  bytea: { select: asIs, field: bytea.field, element: { type: 'BYTE_ARRAY' } },
  'smallint[]': INTEGERS,
  'integer[]': INTEGERS,
  'text[]': { select: asIs, field: textArray.field, element: TEXT, isList: true },
};

/** `type` is as format_type spells it. */
export function lakeColumn(name: string, type: string): LakeColumn {
  const form = FORMS[type] ?? AS_TEXT;
  return { ...form, name, field: nullable(form.field) };
}

const MAX_GROUP_ROWS = 20_000;
const MAX_GROUP_CHARACTERS = 8_000_000;
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 3 } };

export async function* parquetOf(
  columns: readonly LakeColumn[],
  rows: AsyncIterable<LakeRow>,
): AsyncGenerator<Uint8Array> {
  const writer = new ByteWriter();
  const file = new ParquetWriter({
    writer,
    schema: schemaOf(columns),
    codec: 'ZSTD',
    compressors: { ZSTD: (bytes) => zstdCompressSync(bytes, ZSTD) },
    createdBy: 'plegwatch',
  });
  /** The bytes since the last call, valid until the next one. */
  const written = () => {
    const bytes = writer.getBytes();
    writer.index = 0;
    return bytes;
  };
  let group: LakeRow[] = [];
  let characters = 0;
  for await (const row of rows) {
    group.push(row);
    characters += charactersIn(row);
    if (group.length < MAX_GROUP_ROWS && characters < MAX_GROUP_CHARACTERS) continue;
    await writeGroup(file, columns, group);
    yield written();
    group = [];
    characters = 0;
  }
  if (group.length > 0) await writeGroup(file, columns, group);
  await file.finish();
  yield written();
}

const charactersIn = (row: LakeRow): number =>
  Object.values(row).reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 8), 0);

async function writeGroup(
  file: ParquetWriter,
  columns: readonly LakeColumn[],
  rows: readonly LakeRow[],
): Promise<void> {
  const columnData = columns.map(({ name, element }) => ({
    name,
    data: rows.map((row) => row[name]),
    // Times and keys repeat seldom, and differ little from one row to the next.
    ...(element.type === 'INT64' ? { encoding: 'DELTA_BINARY_PACKED' as const } : {}),
  }));
  await file.write({ columnData, rowGroupSize: rows.length });
}

function schemaOf(columns: readonly LakeColumn[]): Schema {
  const elements = columns.flatMap(
    ({ name, element, isList }): Schema =>
      isList === true
        ? [
            {
              name,
              repetition_type: 'OPTIONAL',
              num_children: 1,
              converted_type: 'LIST',
              logical_type: { type: 'LIST' },
            },
            { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
            { ...element, name: 'element', repetition_type: 'OPTIONAL' },
          ]
        : [{ ...element, name, repetition_type: 'OPTIONAL' }],
  );
  return [{ name: 'root', num_children: columns.length }, ...elements];
}
