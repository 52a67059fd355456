/*
 * `plegwatch export --format parquet`: each day of a view and a cluster as `VIEW/cluster=NAME/day=2026-11-20/part.parquet`, where engines that
 * know such folders find the columns `cluster` and `day`. A view that fails does not keep others from being exported.
 *
 *   complete   every record of the day is stored or declared lost. A day that is not over is not exported
 *   state      what the day was written from. While it is the same, nothing was added
 *   records    how many records of its epochs were stored then. Where there are fewer, Postgres lost some
 *
 * A day is written from one snapshot, which also says what is known of the day. If its rows can change later, each run writes it as long as Postgres
 * has all of them. A file appears under its name with all its bytes. The manifest lists it just before: a run that is killed in between leaves
 * the complete file beside it, to which the next run gives its name. Two runs write one view of a cluster one after the other, or one of them gives up.
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { and, eq, gte, lt, sql } from 'drizzle-orm';
import { QueryBuilder } from 'drizzle-orm/pg-core';
import * as v from 'valibot';
import { isMissing, PlegwatchError } from '../../platform/errors.ts';
import { makeFolder, nameOutput, unwritable, writeSynced } from '../../platform/outputFile.ts';
import { ClusterName } from '../../protocol/batch.ts';
import { rowsOf } from '../../store/cursor.ts';
import { groupsHave, storesOf } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { unexpected } from '../../store/schema/columns.ts';
import { rowOf } from '../../store/statement.ts';
import { listClusters, readColumns } from '../../store/statements.ts';
import { readSettings } from '../../store/store.ts';
import { Digest, type Files, isListed, type ListedFile, readManifest, writeManifest } from './manifest.ts';
import { type LakeColumn, type LakeRow, lakeColumn, parquetOf } from './parquetFile.ts';
import type { ExportCommand, ViewExport } from './request.ts';
import { BEGIN, COMMIT, findLockHolder, readDayState, readToday, tryLock } from './statements.ts';
import { EXPORTED_VIEWS, LAKE_VIEWS } from './views.ts';

const DAY_MS = 86_400_000;
const LOCK_PAUSE_MS = 500;
/** How long a run waits for others, altogether: only one that writes many days for the first time takes longer. */
const LOCK_WAIT_MS = 15 * 60_000;
/** How much of it is left. */
interface Patience {
  leftMs: number;
}

/** The files of a view and a cluster. */
interface Place {
  readonly command: ViewExport;
  readonly cluster: string;
  /** In the folder of the lake. */
  readonly name: string;
  readonly folder: string;
}

/** Throws NOT_FOUND or SETTING_INVALID. */
export async function exportLake(options: ExportCommand): Promise<void> {
  const { views = LAKE_VIEWS, fail, lockWaitMs = LOCK_WAIT_MS, ...command } = options;
  const patience: Patience = { leftMs: lockWaitMs };
  const parts = await clustersByStore(command);
  if (parts.every(({ clusters }) => clusters.length === 0))
    command.print('nothing exported: no cluster has nodes, or none that this role may read');
  for (const view of views)
    await exportView({ ...command, view }, parts, patience).catch((error: unknown) => fail(view, error));
}

/** Throws EXPORT_UNWRITABLE, DATABASE_TIMEOUT, and EXPORT_DAMAGED for a manifest or, when everything else is exported, for files. */
async function exportView(
  command: ViewExport,
  parts: Awaited<ReturnType<typeof clustersByStore>>,
  patience: Patience,
): Promise<void> {
  const { view, dir, from, to } = command;
  const { kept } = EXPORTED_VIEWS[view];
  const damaged: string[] = [];
  for (const { store, clusters } of parts) {
    const settings = await readSettings(store);
    const days = { events: settings.eventRetentionDays, findings: settings.findingRetentionDays, short: 2 }[
      kept
    ];
    for (const cluster of clusters) {
      const name = join(view, `cluster=${folderNameOf(cluster)}`);
      const place = { command, cluster, name, folder: join(dir, name) };
      await store.withClient(async (runner) => {
        const [now] = (await runner.run(readToday)).rows;
        const today = now?.today ?? 0;
        const last = Math.min(today, Math.ceil(to.getTime() / DAY_MS));
        for (let day = Math.floor(from.getTime() / DAY_MS); day < last; day++) {
          const isHeld = day > today - days;
          await exclusively(runner, patience, `plegwatch export ${view} of ${cluster}`, async () => {
            const file = isHeld ? await exportDay(runner, place, day) : await checkDay(place, day);
            if (file !== undefined) damaged.push(file);
          });
        }
      });
    }
  }
  const exported = parts.flatMap(({ clusters }) => clusters.map((each) => `cluster=${folderNameOf(each)}`));
  const why = 'kept, because Postgres has no nodes of it that this role may read';
  for (const folder of command.cluster === undefined ? await foldersIn(join(dir, view)) : [])
    if (!exported.includes(folder)) command.print(`${join(view, folder)}: ${why}`);
  const [first] = damaged;
  if (first === undefined) return;
  throw new PlegwatchError(
    'EXPORT_DAMAGED',
    `${first}${damaged.length > 1 ? ` and ${damaged.length - 1} more` : ''}: not the bytes that ${view} had when it was exported.`,
    'Restore the files from a backup: Postgres no longer has all rows of these days.',
  );
}

/** The folders of clusters, also of those that a role can no longer read. Throws EXPORT_UNWRITABLE. */
async function foldersIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw unwritable('--dir', folder, error);
  });
  return names.filter((name) => name.startsWith('cluster=')).sort();
}

/** The stores of the command, each with its clusters. A day is written from one snapshot: no cluster may have rows in two groups of a fleet. */
async function clustersByStore({ store, cluster: asked }: Pick<ExportCommand, 'store' | 'cluster'>) {
  const found = await Promise.all(
    (await storesOf(store, asked)).map(async (part) => ({
      store: part,
      rows: (await part.run(listClusters)).rows,
    })),
  );
  const withNodes = new Set(
    found.flatMap(({ rows }) => rows.filter(({ hasNodes }) => hasNodes).map(({ name }) => name)),
  );
  const parts = found.map(({ store: part, rows }) => {
    // A cluster whose readers are named has a row where nothing else is of it.
    const isHere = rows.filter(({ name, hasNodes }) => hasNodes || !withNodes.has(name));
    const names = isHere.filter(({ name, hasNodes }) => asked?.includes(name) ?? hasNodes);
    return { store: part, clusters: names.map(({ name }) => checkedName(name)).toSorted() };
  });
  const all = parts.flatMap(({ clusters }) => clusters);
  const twice = all.find((name, at) => all.indexOf(name) !== at);
  if (twice === undefined) return parts;
  const having = parts.filter(({ clusters }) => clusters.includes(twice)).map(({ store: part }) => part);
  throw new PlegwatchError(
    'SETTING_INVALID',
    groupsHave(having, `the cluster ${twice}`),
    'Set --database-url (PLEGWATCH_DATABASE_URL) to the database of each group, and --dir to a folder of its own.',
  );
}

/** The name of a cluster is a part of paths, and whoever writes to a database could have added any. Throws DATABASE_VALUE. */
function checkedName(cluster: string): string {
  if (v.is(ClusterName, cluster)) return cluster;
  throw unexpected('a cluster with a name that agents cannot have');
}

/** Engines read `%6e` as the letter, and DuckDB the plain word as no value. */
const folderNameOf = (cluster: string): string => (cluster === 'null' ? '%6eull' : cluster);

/**
 * Runs `work` in a transaction while no other run of this name does; its snapshot is newer than what that one wrote.
 *
 * Any role can take this lock, and one that only reads has no other in Postgres. One in the folder would outlive a run that is killed, and not
 * every file system has any that ends with it. So the wait has a bound, after which the holder is named: DATABASE_TIMEOUT.
 */
async function exclusively(
  runner: SqlRunner,
  patience: Patience,
  name: string,
  work: () => Promise<void>,
): Promise<void> {
  for (;;) {
    await runner.run(BEGIN);
    const isFree = (await runner.run(tryLock, [name])).rows[0]?.locked === true;
    if (isFree) await work();
    const [holder] = isFree ? [] : (await runner.run(findLockHolder, [name])).rows;
    await runner.run(COMMIT);
    if (isFree) return;
    if (patience.leftMs <= 0 && holder !== undefined)
      throw new PlegwatchError(
        'DATABASE_TIMEOUT',
        `Another session keeps the lock of ${name}: pid ${holder.pid} (role ${holder.role}${holder.application && `, ${holder.application}`}).`,
        'If it is another export to this folder, wait for it. Otherwise end it (SELECT pg_terminate_backend(pid)), and run this one again.',
      );
    await wait(LOCK_PAUSE_MS);
    patience.leftMs -= LOCK_PAUSE_MS;
  }
}

/** Returns the file if it is damaged, and Postgres has not all rows that it had. */
async function exportDay(runner: SqlRunner, place: Place, day: number): Promise<string | undefined> {
  const { command, cluster, folder } = place;
  const { print, view } = command;
  const { changes } = EXPORTED_VIEWS[view];
  const at = placeOf(place, day);
  const [known] = (await runner.run(readDayState, [cluster, at.date])).rows;
  if (known === undefined) return undefined;
  const files = await readManifest(folder);
  const listed = files[at.date];
  const isIntact = listed !== undefined && (await isThere(at, listed));
  const says = (what: string, { complete }: { readonly complete: boolean }) =>
    print(`${at.name}: ${what}${complete ? '' : ', not complete'}`);
  if (isIntact && listed.state === known.state && changes === 'never') {
    if (listed.complete !== known.complete)
      await list(folder, files, at.date, { ...listed, complete: known.complete });
    says('kept', known);
    return undefined;
  }
  const written = { ...(await writeDay(runner, place, day)), ...known };
  // A gap or an unknown mode that silence seemed to be is taken back when the agent delivers. A database without the epochs of the day misses nothing.
  const becameComplete = known.complete && listed?.complete === false;
  const mayHaveFewer = changes === 'moved' || (changes === 'taken back' && becameComplete);
  if (
    listed !== undefined &&
    written.rows < listed.rows &&
    !(mayHaveFewer && known.records >= listed.records)
  ) {
    await rm(at.part);
    says(`kept, because Postgres has only ${written.rows} of its ${listed.rows} rows`, listed);
    return isIntact ? undefined : at.file;
  }
  await list(folder, files, at.date, written);
  await nameOutput('--dir', at.part, at.file);
  says(`${written.rows} ${written.rows === 1 ? 'row' : 'rows'}`, written);
  return undefined;
}

/** Returns the file of a day that Postgres no longer has if it is damaged. */
async function checkDay(place: Place, day: number): Promise<string | undefined> {
  const at = placeOf(place, day);
  const listed = (await readManifest(place.folder))[at.date];
  if (listed === undefined) return undefined;
  const isIntact = await isThere(at, listed);
  if (isIntact) place.command.print(`${at.name}: kept${listed.complete ? '' : ', not complete'}`);
  return isIntact ? undefined : at.file;
}

function placeOf({ folder, name }: Place, day: number) {
  const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
  const ofDay = join(folder, `day=${date}`);
  const file = join(ofDay, 'part.parquet');
  return {
    date,
    file,
    folder: ofDay,
    part: join(ofDay, '_part.parquet'),
    name: `${name}/day=${date}`,
  };
}

async function isThere(at: ReturnType<typeof placeOf>, listed: ListedFile): Promise<boolean> {
  if (await isListed(at.file, listed)) return true;
  if (!(await isListed(at.part, listed))) return false;
  await nameOutput('--dir', at.part, at.file);
  return true;
}

const list = (folder: string, files: Files, date: string, file: ListedFile): Promise<void> =>
  writeManifest(folder, { ...files, [date]: file });

async function writeDay(
  runner: SqlRunner,
  place: Place,
  day: number,
): Promise<Pick<ListedFile, 'rows' | 'bytes' | 'sha256'>> {
  const { view } = place.command;
  const { folder, part } = placeOf(place, day);
  await makeFolder('--dir', folder);
  const all = (await runner.run(readColumns, [view])).rows;
  const hasDay = all.some(({ name }) => name === 'day');
  // These are in the names of the folders.
  const columns = all
    .filter(({ name }) => name !== 'cluster' && name !== 'day')
    .map(({ name, type }) => lakeColumn(name, type));
  const digest = new Digest();
  let count = 0;
  async function* counted(): AsyncGenerator<LakeRow> {
    const row = rowOf(Object.fromEntries(columns.map(({ name, field }) => [name, field])));
    for await (const read of rowsOf(runner, queryOf(place, columns, day, hasDay), row)) {
      count += 1;
      yield read;
    }
  }
  async function* digested(): AsyncGenerator<Uint8Array> {
    for await (const chunk of parquetOf(columns, counted())) {
      digest.add(chunk);
      yield chunk;
    }
  }
  await writeSynced('--dir', part, digested());
  return { rows: count, ...digest.end() };
}

function queryOf(
  { command: { view }, cluster }: Place,
  columns: readonly LakeColumn[],
  day: number,
  hasDay: boolean,
) {
  const { rows, time } = EXPORTED_VIEWS[view];
  const at = (days: number) => new Date((day + days) * DAY_MS).toISOString();
  const selected = columns.map(
    ({ name, select }) => [name, select(sql`${sql.identifier(name)}`).as(name)] as const,
  );
  const isOfDay = hasDay ? sql`day = ${at(0).slice(0, 10)}` : and(gte(time, at(0)), lt(time, at(1)));
  return new QueryBuilder()
    .select(Object.fromEntries(selected))
    .from(rows)
    .where(and(isOfDay, eq(rows.cluster, cluster)))
    .toSQL();
}
