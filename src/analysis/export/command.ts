/*
 * `plegwatch export VIEW`: the rows of a view as CSV, a gzipped file for each day of UTC.
 *
 * A file appears under its name when it is complete; until then it ends in `.part`. So a run that was interrupted is resumed by running it
 * again: files that are there are kept, except those that were written earlier than an hour after the end of their day. Rows come through a
 * cursor: the memory does not grow with their number.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { and, gte, lt, sql } from 'drizzle-orm';
import { QueryBuilder } from 'drizzle-orm/pg-core';
import { csvLine } from '../../platform/csv.ts';
import { isMissing, PlegwatchError } from '../../platform/errors.ts';
import { makeFolder, unwritable, writeOutput } from '../../platform/outputFile.ts';
import { rowsOf } from '../../store/cursor.ts';
import { oneOf } from '../../store/expressions.ts';
import { storesOf } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { text } from '../../store/schema/columns.ts';
import { nullable, rowOf } from '../../store/statement.ts';
import { readColumns } from '../../store/statements.ts';
import type { LongReadStore } from '../../store/store.ts';
import { checkPeriod } from '../period.ts';
import type { ExportCommand, ViewExport } from './request.ts';
import { BEGIN, COMMIT } from './statements.ts';
import { EXPORTED_VIEWS, type ExportedView } from './views.ts';

const DAY_MS = 86_400_000;
/** Agents deliver within minutes, unless there is an outage. */
const SETTLED_AFTER_MS = 3_600_000;

/** Throws SETTING_INVALID for times or views that cannot be used. */
export function checkExport(command: Asked): void {
  checkPeriod(command);
  if (command.format === 'csv') viewOfCsv(command);
}

type Asked = Pick<ExportCommand, 'format' | 'views' | 'from' | 'to'>;

/** What {@link checkExport} accepts. Throws NOT_FOUND or EXPORT_UNWRITABLE. */
export async function runExport(command: ExportCommand): Promise<void> {
  if (command.format === 'csv') return exportCsv({ ...command, view: viewOfCsv(command) });
  const { exportLake } = await import('./lake.ts');
  await exportLake(command);
}

function viewOfCsv({ views = [] }: Asked): ExportedView {
  const [view] = views;
  if (view !== undefined && views.length === 1) return view;
  throw new PlegwatchError(
    'SETTING_INVALID',
    `CSV is written of one view at a time, and ${views.length} are named.`,
    'Name one, or set --format parquet.',
  );
}

async function exportCsv(command: ViewExport): Promise<void> {
  const { store, cluster, dir, from, to } = command;
  const stores = await storesOf(store, cluster);
  await makeFolder('--dir', dir);
  for (let day = Math.floor(from.getTime() / DAY_MS) * DAY_MS; day < to.getTime(); day += DAY_MS) {
    await exportDay(command, stores, day);
  }
}

async function exportDay(command: ViewExport, stores: readonly LongReadStore[], day: number): Promise<void> {
  const { view, cluster, dir, print } = command;
  const date = new Date(day).toISOString().slice(0, 10);
  const name = [view, ...(cluster?.toSorted() ?? []), `${date}.csv.gz`].join('-');
  const file = join(dir, name);
  if (await isFinal(file, day)) return print(`${name}: kept`);
  const rows = await withClients(stores, async (clients) => {
    for (const sql of clients) await sql.run(BEGIN);
    const written = await writeDay(clients, command, day, file);
    for (const sql of clients) await sql.run(COMMIT);
    return written;
  });
  print(`${name}: ${rows} ${rows === 1 ? 'row' : 'rows'}`);
}

/** Runs `work` with a connection to each store. */
function withClients<T>(
  [store, ...others]: readonly LongReadStore[],
  work: (clients: readonly SqlRunner[]) => Promise<T>,
): Promise<T> {
  if (store === undefined) return work([]);
  return store.withClient((sql) => withClients(others, (clients) => work([sql, ...clients])));
}

async function isFinal(file: string, day: number): Promise<boolean> {
  try {
    return (await stat(file)).mtimeMs >= day + DAY_MS + SETTLED_AFTER_MS;
  } catch (error) {
    if (isMissing(error)) return false;
    throw unwritable('--dir', file, error);
  }
}

/** Returns how many rows the day has. */
async function writeDay(
  clients: readonly SqlRunner[],
  command: ViewExport,
  day: number,
  file: string,
): Promise<number> {
  const columns = await sharedColumns(clients, command.view);
  const row = rowOf(Object.fromEntries(columns.map((column) => [column, nullable(text)])));
  let chunk = csvLine(columns);
  let count = 0;
  async function* chunks() {
    for (const sql of clients) {
      for await (const read of rowsOf(sql, queryOf(command, columns, day), row)) {
        chunk += csvLine(columns.map((column) => read[column]));
        count += 1;
        if (chunk.length > 65_536) {
          yield chunk;
          chunk = '';
        }
      }
    }
    yield chunk;
  }
  await pipeline(Readable.from(chunks()), createGzip(), (zipped: AsyncIterable<Buffer>) =>
    writeOutput('--dir', file, zipped),
  );
  return count;
}

/** Groups of different versions may not have the same ones. */
async function sharedColumns(clients: readonly SqlRunner[], view: ExportedView): Promise<readonly string[]> {
  const [columns = [], ...others] = await Promise.all(
    clients.map(async (sql) => (await sql.run(readColumns, [view])).rows.map(({ name }) => name)),
  );
  return columns.filter((column) => others.every((each) => each.includes(column)));
}

/** Every value as Postgres writes it. The day of a partition may differ by one from that of the time. */
function queryOf({ view, cluster }: ViewExport, columns: readonly string[], day: number) {
  const { rows, time } = EXPORTED_VIEWS[view];
  const at = (days: number) => new Date(day + days * DAY_MS).toISOString();
  const texts = columns.map((column) => [column, sql`${sql.identifier(column)}::text`.as(column)] as const);
  const isNear = sql`day BETWEEN ${at(-1).slice(0, 10)} AND ${at(1).slice(0, 10)}`;
  const inPartition = columns.includes('day') ? isNear : undefined;
  return new QueryBuilder()
    .select(Object.fromEntries(texts))
    .from(rows)
    .where(and(gte(time, at(0)), lt(time, at(1)), inPartition, oneOf(rows.cluster, cluster ?? null)))
    .toSQL();
}
