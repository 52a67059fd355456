/*
 * `plegwatch export VIEW`: the rows of a view as CSV, a gzipped file for each day of UTC.
 *
 * A file appears under its name when it is complete; until then it ends in `.part`. So a run that was interrupted is resumed by running it
 * again: files that are there are kept, except those that were written earlier than an hour after the end of their day. Rows come through a
 * cursor: the memory does not grow with their number.
 */
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { csvLine } from '../../platform/csv.ts';
import { PlegwatchError } from '../../platform/errors.ts';
import { unwritable, writeOutput } from '../../platform/outputFile.ts';
import { withClient } from '../../store/connection.ts';
import type { DatabaseSettings } from '../../store/databaseAccess.ts';
import { notFound } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import listClusters from '../../store/sql/listClusters.sql';
import type { Store } from '../../store/store.ts';
import { fetchRows } from '../cursor.ts';
import { EXPORTED_VIEWS, type ExportedView } from './views.ts';

export interface ExportCommand extends DatabaseSettings {
  readonly store: Store;
  readonly view: ExportedView;
  readonly dir: string;
  readonly cluster: readonly string[] | undefined;
  readonly from: Date;
  readonly to: Date;
  /** Called after each file. */
  readonly print: (line: string) => void;
}

const DAY_MS = 86_400_000;
/** Agents deliver within minutes, unless there is an outage. */
const SETTLED_AFTER_MS = 3_600_000;

/** Throws NOT_FOUND, SETTING_INVALID for times that cannot be used, or EXPORT_UNWRITABLE. */
export async function runExport(command: ExportCommand): Promise<void> {
  const { store, cluster, dir, from, to } = command;
  if (from >= to)
    throw new PlegwatchError(
      'SETTING_INVALID',
      '--from must be before --to.',
      'See plegwatch export --help.',
    );
  const { rows } = await store.run<{ name: string }>({ text: listClusters });
  const names = rows.map(({ name }) => name);
  const missing = cluster?.find((name) => !names.includes(name));
  if (missing !== undefined) throw notFound('cluster', missing, names);
  await mkdir(dir, { recursive: true }).catch((error: unknown) => {
    throw unwritable('--dir', dir, error);
  });
  for (let day = Math.floor(from.getTime() / DAY_MS) * DAY_MS; day < to.getTime(); day += DAY_MS) {
    await exportDay(command, day);
  }
}

async function exportDay(command: ExportCommand, day: number): Promise<void> {
  const { view, cluster, dir, print } = command;
  const date = new Date(day).toISOString().slice(0, 10);
  const name = [view, ...(cluster?.toSorted() ?? []), `${date}.csv.gz`].join('-');
  const file = join(dir, name);
  if (await isFinal(file, day)) return print(`${name}: kept`);
  const rows = await withClient(command, 'plegwatch export', async (client) => {
    const sql: SqlRunner = {
      async run({ text }, values = []) {
        const result = await client.query(text, [...values]);
        return { rows: result.rows, count: result.rowCount ?? 0 };
      },
    };
    await sql.run({ text: 'BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY' });
    // The whole day is read: a plan for its first rows would take longer.
    await sql.run({ text: "SET LOCAL TIME ZONE 'UTC'; SET LOCAL cursor_tuple_fraction = 1" });
    const lines = new Lines(sql, command, date);
    await pipeline(Readable.from(lines.chunks()), createGzip(), (chunks: AsyncIterable<Buffer>) =>
      writeOutput('--dir', file, chunks),
    );
    await sql.run({ text: 'COMMIT' });
    return lines.rows;
  });
  print(`${name}: ${rows} ${rows === 1 ? 'row' : 'rows'}`);
}

async function isFinal(file: string, day: number): Promise<boolean> {
  try {
    return (await stat(file)).mtimeMs >= day + DAY_MS + SETTLED_AFTER_MS;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
    throw unwritable('--dir', file, error);
  }
}

/** The lines of one day, several in a chunk. */
class Lines {
  readonly #sql: SqlRunner;
  readonly #command: ExportCommand;
  readonly #date: string;
  rows = 0;

  constructor(sql: SqlRunner, command: ExportCommand, date: string) {
    this.#sql = sql;
    this.#command = command;
    this.#date = date;
  }

  async *chunks(): AsyncGenerator<string> {
    const { view, cluster } = this.#command;
    const columns = await this.#columns();
    await this.#sql.run({ text: cursorOf(view, columns) }, [this.#date, cluster ?? null]);
    let chunk = csvLine(columns);
    for await (const row of fetchRows<Record<string, string | null>>(this.#sql, 'rows')) {
      chunk += csvLine(columns.map((column) => row[column]));
      this.rows += 1;
      if (chunk.length > 65_536) {
        yield chunk;
        chunk = '';
      }
    }
    yield chunk;
  }

  async #columns(): Promise<string[]> {
    const { rows } = await this.#sql.run<{ name: string }>(
      {
        text: `SELECT attname AS name FROM pg_attribute
               WHERE attrelid = format('plegwatch.%I', $1::text)::regclass AND attnum > 0 ORDER BY attnum`,
      },
      [this.#command.view],
    );
    return rows.map(({ name }) => name);
  }
}

/** Every value as Postgres writes it. View and columns are names of ours; the day of a partition may differ by one from that of the time. */
function cursorOf(view: ExportedView, columns: readonly string[]): string {
  const time = `v.${EXPORTED_VIEWS[view]}`;
  const partitions = columns.includes('day') ? 'AND v.day BETWEEN $1::date - 1 AND $1::date + 1' : '';
  return `DECLARE rows NO SCROLL CURSOR FOR
    SELECT ${columns.map((column) => `v.${column}::text`).join(', ')} FROM plegwatch.${view} v
    WHERE ${time} >= $1::date::timestamp AT TIME ZONE 'UTC' AND ${time} < ($1::date + 1)::timestamp AT TIME ZONE 'UTC' ${partitions}
      AND ($2::text[] IS NULL OR v.cluster = ANY ($2))`;
}
