/*
 * Shows a fleet on this machine: two groups, each with a database of its own, the fleet database over both, the page, and Spark's answer from a lake of
 * both. Run by `make fleet-database`. ONCE=1 ends it when everything was shown.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { startPlegwatch } from '../devtools/localServices/plegwatch.ts';
import { freePort } from '../devtools/localServices/process.ts';
import { type Stops, stopAll } from '../devtools/localServices/stopAll.ts';
import { aborted, stopSignal } from '../src/platform/stopSignal.ts';
import { plegwatch } from '../test/support/commandLine.ts';
import { query, startServer, type TestServer } from '../test/support/database.ts';
import { documentedSql } from '../test/support/documentedQuestions.ts';
import { emptyFleet, federateGroups } from '../test/support/fleetDatabase.ts';
import { askPostgres, askSpark, exportLake, lakeSql } from '../test/support/lake.ts';
import { writeHistory } from '../test/support/storedHistory.ts';
import { ROOT } from './system.ts';

const CLI = join(ROOT, 'dist', 'cli.js');
const SIZE = { nodes: 30, days: 7, lives: 60, step: 600 } as const;
const GROUPS = ['east', 'west'] as const;
const QUESTION = 'How late does the kubelet notice starts and stops, by mode and version?';

const began = performance.now();
const say = (line: string) =>
  process.stdout.write(`${((performance.now() - began) / 1000).toFixed(0).padStart(3)} s  ${line}\n`);

/** A database with a week of both clusters, and the URL of a role that reads one of them. */
async function startGroup(server: TestServer, cluster: string): Promise<string> {
  const databaseUrl = await server.database();
  await writeHistory(databaseUrl, SIZE);
  const reader = await server.role(databaseUrl, 'fleet');
  await query(databaseUrl, 'SELECT store.grant_reader($1, $2)', [new URL(reader).username, cluster]);
  return reader;
}

async function show(stops: Stops, signal: AbortSignal): Promise<void> {
  say('starting Postgres, and writing a week of 30 nodes into the database of each group (usually 20 s)');
  const server = await startServer();
  stops.push(() => server.stop());
  const groups: Record<string, string> = {};
  for (const group of GROUPS) groups[group] = await startGroup(server, group);
  const fleet = await emptyFleet(server);
  await federateGroups(fleet, groups);
  say(`plegwatch readiness --database-url ${fleet}`);
  process.stdout.write(`${await output('readiness', '--database-url', fleet)}\n`);

  const pageAddress = `127.0.0.1:${await freePort()}`;
  const page = await startPlegwatch({
    cli: CLI,
    command: 'ui',
    settings: { databaseUrl: fleet, pageAddress },
  });
  stops.push(() => page.stop());
  say(`the page of both groups: http://${pageAddress}/`);

  say('exporting both groups as Parquet, and asking Spark and the fleet database (usually two minutes)');
  const dir = mkdtempSync(join(tmpdir(), 'plegwatch-lake-'));
  stops.push(async () => rmSync(dir, { recursive: true }));
  await exportLake(dir, fleet);
  const asked = lakeSql('spark').questions.find(({ heading }) => heading === QUESTION);
  const [ofSpark] = askSpark(dir, [asked?.sql ?? '']);
  const ofPostgres = await askPostgres(fleet, documentedSql(QUESTION));
  say(QUESTION);
  for (const row of [ofSpark?.columns, ...(ofSpark?.rows ?? [])])
    process.stdout.write(`${row?.join('  ')}\n`);
  if (!isDeepStrictEqual(ofSpark, ofPostgres))
    throw new Error(`The fleet database answers otherwise: ${JSON.stringify(ofPostgres)}`);
  say('the fleet database gives the same answer');
  if (process.env['ONCE'] === '1') return;
  process.stdout.write('\nPress Ctrl-C to end.\n');
  await aborted(signal);
}

async function output(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await plegwatch(args);
  if (code !== 0) throw new Error(`plegwatch ${args[0]}: ${stderr}`);
  return stdout;
}

const stops: Stops = [];
try {
  await show(stops, stopSignal());
} finally {
  await stopAll(stops, 'Remove what is left in the temporary folder.');
}
