/*
 * How long each question of docs/how-to/questions.md about many nodes takes on a week of 200 nodes: ten million events. Asked by a reader of all
 * clusters, under row-level security. Run by `make bench-questions`; PLEGWATCH_BENCH_NODES (of each of two clusters) makes it smaller.
 */
import { cpus } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { startPostgres } from '../devtools/localServices/postgres.ts';
import { run } from '../devtools/localServices/process.ts';
import { QUESTIONS } from '../test/support/documentedQuestions.ts';
import { type HistorySize, writeHistory } from '../test/support/storedHistory.ts';
import { loadAverage } from './processes.ts';
import { ROOT } from './system.ts';
import { printed, type TableRow } from './table.ts';

/** The first answer is not counted: it reads what no other question has read. */
const ROUNDS = 4;
const BUDGET_MS = 3_000;
const CLI = join(ROOT, 'dist', 'cli.js');

/** A pod with one container every 96 seconds, which has eight events. */
const WEEK: HistorySize = {
  nodes: Number(process.env['PLEGWATCH_BENCH_NODES'] ?? 100),
  days: 7,
  lives: 900,
  step: 60,
};

async function main(): Promise<void> {
  const postgres = await startPostgres({ settings: { fsync: 'off', shared_buffers: '1GB' } });
  try {
    await run(process.execPath, [CLI, 'migrate', '--database-url', postgres.url]);
    process.stdout.write(`writing a week of ${2 * WEEK.nodes} nodes …\n`);
    await writeHistory(postgres.url, WEEK);
    await inspect(postgres.url);
  } finally {
    await postgres.stop();
  }
}

async function inspect(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query("CREATE ROLE reader; SELECT store.grant_reader('reader'); SET ROLE reader");
    const rows: TableRow[] = [];
    for (const { heading, sql } of QUESTIONS) rows.push(await measure(client, heading, sql));
    const { rows: counts } = await client.query<{ events: string; changes: string; minutes: string }>(
      `SELECT (SELECT count(*) FROM plegwatch.container_events) AS events, (SELECT count(*) FROM plegwatch.relist_changes) AS changes,
              (SELECT count(*) FROM plegwatch.relist_minutes) AS minutes`,
    );
    const [count] = counts;
    process.stdout.write(
      `\n${count?.events} events, ${count?.changes} changes, ${count?.minutes} minutes; ${cpus().length} cores (${cpus()[0]?.model.trim()}), load average ${loadAverage()}\n\n`,
    );
    process.stdout.write(`${printed(rows)}\n`);
    if (rows.some(({ met }) => met === false)) process.exitCode = 1;
  } finally {
    await client.end();
  }
}

async function measure(client: Client, what: string, sql: string): Promise<TableRow> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now();
    await client.query(sql);
    times.push(Math.round(performance.now() - start));
  }
  const [first = Number.NaN, ...warm] = times;
  const median = warm.toSorted((a, b) => a - b)[Math.floor(warm.length / 2)] ?? Number.NaN;
  const figure = `${median} ms (${Math.min(...warm)} to ${Math.max(...warm)}), the first ${first}`;
  return { what, figure, budget: `≤ ${BUDGET_MS} ms`, met: median <= BUDGET_MS };
}

await main();
