/*
 * Lakes of `plegwatch export --format parquet`, and questions to them. Answers of all engines have one form, in which they can be compared: times and
 * dates as ISO texts in UTC, times to the microsecond; integers of 64 bits and decimals as texts.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBListValue,
  DuckDBTimestampTZValue,
} from '@duckdb/node-api';
import { Client } from 'pg';
import { where } from '../../devtools/localServices/where.ts';
import { DRIVER_TYPES } from '../../src/store/runner.ts';
import { timeOf } from '../../src/store/schema/time.ts';
import { plegwatch } from './commandLine.ts';
import { query, startServer } from './database.ts';
import { writeHistory } from './storedHistory.ts';

export interface Answer {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

const HISTORY = readFileSync(new URL('lakeHistory.sql', import.meta.url), 'utf8');
const SIZE = { nodes: 30, days: 7, lives: 120, busy: 10, step: 600 } as const;

/** A lake with the history of storedHistory.sql and lakeHistory.sql. */
export interface StoredLake {
  readonly dir: string;
  /** The URL of a reader of the database that it was exported from. */
  readonly reader: string;
  /** A query as of 00:20 UTC, when the last day of the history has just been exported, for Postgres and DuckDB, or for Spark. */
  asExported(sql: string, engine?: 'spark'): string;
  stop(): Promise<void>;
}

export async function storeLake(): Promise<StoredLake> {
  const server = await startServer();
  const dir = mkdtempSync(join(tmpdir(), 'lake-'));
  const today = new Date().toISOString().slice(0, 10);
  const databaseUrl = await server.database();
  const reader = await server.reader(databaseUrl);
  await writeHistory(databaseUrl, SIZE);
  // A Node that is created again: the lake keeps what was exported of the earlier one.
  await query(
    databaseUrl,
    "UPDATE store.node SET first_seen = first_seen - interval '20 days' WHERE name = 'west-014'",
  );
  await exportLake(dir, reader, ['nodes', '--from', '-30d']);
  await query(databaseUrl, HISTORY);
  await exportLake(dir, reader);
  return {
    ...{ dir, reader },
    asExported(sql, engine) {
      const type = engine === 'spark' ? 'TIMESTAMP' : 'TIMESTAMPTZ';
      const dated = sql.replaceAll('current_date()', `(DATE '${today}')`);
      return dated.replaceAll('now()', `(${type} '${today} 00:20:00Z')`);
    },
    async stop() {
      await server.stop();
      rmSync(dir, { recursive: true });
    },
  };
}

/** Exports the days of the history. */
export async function exportLake(
  dir: string,
  databaseUrl: string,
  which: readonly string[] = ['--from', '-8d'],
): Promise<void> {
  const args = ['export', '--format', 'parquet', '--dir', dir, '--database-url', databaseUrl];
  const { code, stderr } = await plegwatch([...args, ...which]);
  if (code !== 0) throw new Error(`plegwatch export: ${stderr}`);
}

/** The files of an engine in lake/. */
export function lakeSql(engine: string) {
  const read = (name: string) =>
    readFileSync(new URL(`../../lake/${engine}-${name}.sql`, import.meta.url), 'utf8');
  const setUp = statementsOf(read('views'));
  return {
    setUp,
    views: setUp.flatMap((sql) => /^CREATE (?:TEMPORARY )?VIEW (\w+)/m.exec(sql)?.[1] ?? []),
    questions: statementsOf(read('questions')).map((sql) => ({
      heading: [...sql.matchAll(/^-- (.*)/gm)].at(-1)?.[1] ?? '',
      sql,
    })),
  };
}

const statementsOf = (text: string): readonly string[] =>
  text.split(/;\n/).filter((sql) => sql.trim() !== '');

/** The last of these statements is the question. */
export async function askDuckDb(statements: readonly string[]): Promise<Answer> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '2' });
  const connection = await instance.connect();
  try {
    for (const statement of statements.slice(0, -1)) await connection.run(statement);
    const reader = await connection.runAndReadAll(statements.at(-1) ?? '');
    return { columns: reader.columnNames(), rows: reader.getRows().map((row) => row.map(ofDuckDb)) };
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

function ofDuckDb(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof DuckDBTimestampTZValue) return isoOf(value.micros);
  if (value instanceof DuckDBDateValue) return String(value);
  if (value instanceof DuckDBDecimalValue) return String(value);
  if (value instanceof DuckDBListValue) return value.items.map(ofDuckDb);
  return value;
}

function isoOf(micros: bigint): string {
  const second = micros >= 0n || micros % 1_000_000n === 0n ? micros / 1_000_000n : micros / 1_000_000n - 1n;
  const date = new Date(Number(second) * 1000).toISOString().slice(0, 19);
  return `${date}.${String(micros - second * 1_000_000n).padStart(6, '0')}Z`;
}

const ASK_SPARK = join(import.meta.dirname, 'askSpark.py');
const MAX_ANSWERS_BYTES = 64 * 1024 * 1024;

/** The answers to statements about the lake in `dir`. Spark takes longer to start than to answer: so all are asked at once. */
export function askSpark(dir: string, questions: readonly string[]): Answer[] {
  const input = JSON.stringify({ setUp: lakeSql('spark').setUp, questions });
  const env = { ...process.env, SPARK_LOCAL_IP: '127.0.0.1', SPARK_LOCAL_DIRS: dir };
  const options = { cwd: dir, input, env, stdio: 'pipe', encoding: 'utf8' } as const;
  return JSON.parse(execFileSync(where('spark'), [ASK_SPARK], { ...options, maxBuffer: MAX_ANSWERS_BYTES }));
}

export async function askPostgres(
  databaseUrl: string,
  text: string,
  values: unknown[] = [],
): Promise<Answer> {
  const client = new Client({ connectionString: databaseUrl, types: DRIVER_TYPES });
  await client.connect();
  try {
    await client.query("SET TimeZone = 'UTC'");
    const { fields, rows } = await client.query<unknown[]>({ text, values, rowMode: 'array' });
    return { columns: fields.map(({ name }) => name), rows: rows.map((row) => row.map(ofPostgres)) };
  } finally {
    await client.end();
  }
}

const ofPostgres = (value: unknown): unknown => timeOf(value) ?? value;
