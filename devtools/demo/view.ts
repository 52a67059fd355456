/*
 * The demo's output: the reports as kubectl prints them, the missed events, and an example query with its result.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { BUILT_CLI } from '../checkout.ts';
import { CLUSTER, type DemoCluster } from './cluster.ts';
import { answers, commandsToCopy, plegwatch } from './questions.ts';

const MISSED_SQL = readFileSync(join(import.meta.dirname, 'missed.sql'), 'utf8');
const EXAMPLE_SQL = readFileSync(join(import.meta.dirname, 'example.sql'), 'utf8');

export interface DemoView {
  /** The table of the reports. */
  reports(): Promise<string>;
  /** The whole page, as text: at its end commands to copy, or for `once` what they print. */
  page(once: boolean): Promise<string>;
  close(): Promise<void>;
}

export async function openView(cluster: DemoCluster): Promise<DemoView> {
  const reader = new Client({ connectionString: cluster.databaseUrl });
  reader.on('error', () => {
    // The next query fails and reports it.
  });
  await reader.connect();
  return {
    reports: () => reports(cluster),
    page: (once) => page(cluster, reader, once),
    close: () => reader.end(),
  };
}

async function page(cluster: DemoCluster, reader: Client, once: boolean): Promise<string> {
  const command = cluster.kubectl === null ? 'plegwatch report' : 'kubectl get plegreports';
  return [
    ...(once ? [] : [`Open ${cluster.page} in a browser.`, '']),
    ...cluster.nodes.map(({ name, what }) => `  ${name.padEnd(18)}${what}`),
    '',
    `$ ${command}`,
    await reports(cluster),
    ...(cluster.break === null ? [] : ['$ plegwatch fallbacks', await plegwatch(cluster, 'fallbacks')]),
    'Events that the stream missed:',
    '',
    await tableOf(reader, MISSED_SQL),
    '$ plegwatch audit',
    await audit(cluster),
    'An example query:',
    '',
    EXAMPLE_SQL.trimEnd(),
    '',
    await tableOf(reader, EXAMPLE_SQL),
    once ? await answers(cluster, reader) : await commandsToCopy(cluster, reader),
  ].join('\n');
}

function reports(cluster: DemoCluster): Promise<string> {
  if (cluster.kubectl !== null) return cluster.kubectl('get', 'plegreports');
  return plegwatch(cluster, 'report');
}

/** Whether the findings follow from the other records. Differences are an exit code of their own, and printed too. */
function audit({ databaseUrl }: DemoCluster): Promise<string> {
  const args = [BUILT_CLI, 'audit', '--cluster', CLUSTER, '--database-url', databaseUrl];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (_, stdout, stderr) => {
      resolve(`${(stdout + stderr).trimEnd().split('\n').at(-1)}\n`);
    });
  });
}

/** The result of a query as a plain table. */
async function tableOf(reader: Client, sql: string): Promise<string> {
  const { fields, rows } = await reader.query<Record<string, unknown>>(sql);
  if (rows.length === 0) return '  (none yet)\n';
  const names = fields.map((field) => field.name);
  const cells = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? '')))];
  const widths = names.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)));
  const lines = cells.map((line) =>
    `  ${line.map((cell, i) => cell.padEnd((widths[i] ?? 0) + 2)).join('')}`.trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}
