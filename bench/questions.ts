/*
 * How long each question of docs/how-to/questions.md takes on a week of 200 nodes: ten million events. Asked by a reader of all clusters, under
 * row-level security. Run by `make bench-questions`.
 *
 * PLEGWATCH_BENCH_NODES (of each of two clusters) makes it smaller. PLEGWATCH_BENCH_CALM_NODES adds as many calm nodes in eight more clusters, with a week
 * of hours and two days of minutes until now. The plans of questions that miss the budget are in dist/bench.
 */
import { cpus } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { type LocalPostgres, startPostgres } from '../devtools/localServices/postgres.ts';
import { run } from '../devtools/localServices/process.ts';
import { NODE_QUESTIONS, QUESTIONS } from '../test/support/documentedQuestions.ts';
import { type CalmSize, type HistorySize, writeHistory } from '../test/support/storedHistory.ts';
import { childrenOf, cpuMs, loadAverage, reapedCpuMs } from './processes.ts';
import { writeResult } from './results.ts';
import { quantile } from './statistics.ts';
import { ROOT } from './system.ts';
import { printed, type TableRow } from './table.ts';

/** The first answer is not counted: it reads what no other question has read. */
const ROUNDS = 4;
/** A question of which one answer takes longer is asked only twice. */
const LONG_MS = 10_000;
const BUDGET_MS = 3_000;
const CLI = join(ROOT, 'dist', 'cli.js');

const CALM_NODES = Number(process.env['PLEGWATCH_BENCH_CALM_NODES'] ?? 0);
const CALM: CalmSize | undefined =
  CALM_NODES === 0 ? undefined : { nodes: CALM_NODES, clusters: 8, minuteDays: 2 };
/** A pod with one container every 96 seconds, which has eight events. */
const WEEK: HistorySize = {
  nodes: Number(process.env['PLEGWATCH_BENCH_NODES'] ?? 100),
  days: CALM === undefined ? 7 : 8,
  lives: 900,
  step: 60,
  untilNow: CALM !== undefined,
};

async function main(): Promise<void> {
  const postgres = await startPostgres({ settings: { fsync: 'off', shared_buffers: '1GB' } });
  try {
    await run(process.execPath, [CLI, 'migrate', '--database-url', postgres.url]);
    process.stdout.write(`writing a week of ${2 * WEEK.nodes} nodes and of ${CALM_NODES} calm ones …\n`);
    await writeHistory(postgres.url, WEEK, CALM);
    await inspect(postgres);
  } finally {
    await postgres.stop();
  }
}

async function inspect({ url, pid }: LocalPostgres): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("CREATE ROLE reader; SELECT store.grant_reader('reader'); SET ROLE reader");
    const rows: TableRow[] = [];
    for (const { heading, sql } of [...QUESTIONS, ...NODE_QUESTIONS])
      rows.push(await measure(client, pid, heading, sql));
    const { rows: counts } = await client.query<{
      events: string;
      changes: string;
      minutes: string;
      hours: string;
    }>(
      `SELECT (SELECT count(*) FROM store.container_event) AS events, (SELECT count(*) FROM store.relist_change) AS changes,
              (SELECT count(*) FROM store.relist_minute) AS minutes, (SELECT count(*) FROM store.relist_hour) AS hours`,
    );
    const [count] = counts;
    process.stdout.write(
      `\n${count?.events} events, ${count?.changes} changes, ${count?.minutes} minutes, ${count?.hours} hours; ${cpus().length} cores (${cpus()[0]?.model.trim()}), load average ${loadAverage()}\n\n`,
    );
    process.stdout.write(`${printed(rows)}\n`);
    if (rows.some(({ met }) => met === false)) process.exitCode = 1;
  } finally {
    await client.end();
  }
}

async function measure(client: Client, pid: number, what: string, sql: string): Promise<TableRow> {
  const times: number[] = [];
  const before = postgresCpuMs(pid);
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now();
    await client.query(sql);
    times.push(Math.round(performance.now() - start));
    if (round > 0 && performance.now() - start > LONG_MS) break;
  }
  const cpu = Math.round((postgresCpuMs(pid) - before) / times.length);
  const [first = Number.NaN, ...warm] = times;
  const median = quantile(warm, 0.5);
  const met = median <= BUDGET_MS;
  if (!met) writeResult(`${what.replaceAll(/\W+/g, '-')}.plan`, await planOf(client, sql));
  const figure = `${median} ms (${Math.min(...warm)} to ${Math.max(...warm)}), the first ${first}; CPU ${cpu} ms`;
  return { what, figure, budget: `≤ ${BUDGET_MS} ms`, met };
}

/** All its processes, also workers that have ended. */
const postgresCpuMs = (pid: number): number =>
  childrenOf(pid).reduce((sum, child) => sum + cpuMs(child), cpuMs(pid) + reapedCpuMs(pid));

async function planOf(client: Client, sql: string): Promise<string> {
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, BUFFERS) ${sql}`);
  return `${rows.map((row) => row['QUERY PLAN']).join('\n')}\n`;
}

await main();
