/*
 * What the demo shows: the reports as kubectl prints them, the missed events, and one question in SQL with its answer.
 */
import { Client } from 'pg';
import { runReport } from '../../src/controller/reports/command.ts';
import { openStore, type Store } from '../../src/controller/store/store.ts';
import type { Logger } from '../../src/platform/log.ts';
import { CLUSTER, type DemoCluster } from './cluster.ts';
import missedSql from './missed.sql';
import questionSql from './question.sql';

export interface View {
  /** Whether every node has its report, and the lossy one its missed events. */
  complete(): Promise<boolean>;
  /** The whole page, as text. */
  page(): Promise<string>;
  close(): Promise<void>;
}

export async function openView(cluster: DemoCluster, log: Logger): Promise<View> {
  const store = await openStore({ databaseUrl: cluster.databaseUrl, log });
  const reader = new Client({ connectionString: cluster.databaseUrl });
  reader.on('error', () => {
    // A connection that breaks fails the next query, which says so.
  });
  await reader.connect();
  return {
    complete: () => complete(cluster, store),
    page: () => page(cluster, store, reader),
    async close() {
      await reader.end();
      await store.close();
    },
  };
}

async function complete(cluster: DemoCluster, store: Store): Promise<boolean> {
  const table = await reports(cluster, store);
  const all = cluster.nodes.every(({ name }) => table.includes(`\n${name} `));
  // Numbers of missed events: none at all where nothing could be observed, 0 where nothing was missed.
  return (
    all && /^worker-lossy +\S+ +Active +[1-9]/m.test(table) && /^worker-healthy +\S+ +Active +\d/m.test(table)
  );
}

async function page(cluster: DemoCluster, store: Store, reader: Client): Promise<string> {
  const command = cluster.kubectl === null ? 'plegwatch report' : 'kubectl get plegreports';
  return [
    ...cluster.nodes.map(({ name, what }) => `  ${name.padEnd(16)} ${what}`),
    '',
    `$ ${command}`,
    await reports(cluster, store),
    'The events that the stream missed:',
    '',
    await answer(reader, missedSql),
    'A question in SQL:',
    '',
    questionSql.trimEnd(),
    '',
    await answer(reader, questionSql),
    `Ask your own: psql '${cluster.databaseUrl}'`,
  ].join('\n');
}

function reports(cluster: DemoCluster, store: Store): Promise<string> {
  if (cluster.kubectl !== null) return cluster.kubectl('get', 'plegreports');
  return runReport({ store, cluster: CLUSTER, output: 'table' });
}

/** Rows as a plain table, each column as wide as it needs. */
async function answer(reader: Client, sql: string): Promise<string> {
  const { fields, rows } = await reader.query<Record<string, unknown>>(sql);
  if (rows.length === 0) return '  (nothing yet)\n';
  const names = fields.map((field) => field.name);
  const cells = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? '')))];
  const widths = names.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)));
  const lines = cells.map((line) =>
    `  ${line.map((cell, i) => cell.padEnd((widths[i] ?? 0) + 2)).join('')}`.trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}
