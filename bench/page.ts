/*
 * How long somebody waits for the page: from opening its address until it is drawn, in Debian's Chromium, with 5,000 nodes and with a busy
 * day of one node; and what twenty open pages cost. Run by `make bench-page`.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { startPlegwatch } from '../devtools/localServices/plegwatch.ts';
import { startPostgres } from '../devtools/localServices/postgres.ts';
import { freePort, run } from '../devtools/localServices/process.ts';
import { startBrowser, type TestBrowser } from '../test/support/browser.ts';
import { type HistorySize, writeHistory } from '../test/support/storedHistory.ts';
import { childrenOf, cpuMs, loadAverage, reapedCpuMs } from './processes.ts';
import { machine, writeResult } from './results.ts';
import { ROOT } from './system.ts';
import { markdown, printed, type TableRow } from './table.ts';

const ROUNDS = 7;
const FLEET_BUDGET_MS = 1_000;
const VERSIONS_BUDGET_MS = 2_000;
const VIEWERS = 20;
/** A page asks for the fleet every ten seconds, and for what became worse every minute. */
const [FLEET_EVERY_MS, CHANGE_EVERY_MS, VIEWED_MS] = [10_000, 60_000, 120_000];
const VIEWERS_BUDGET = 10;
const DAY_MS = 86_400_000;
const CLI = join(ROOT, 'dist', 'cli.js');

/** In two clusters. */
const FLEET: HistorySize = { nodes: 2_500, days: 7, lives: 4, step: 3_600 };
/** A pod with one container every half minute, so 23,000 events and as many changes. */
const BUSY_DAY: HistorySize = { nodes: 1, days: 1, lives: 2_880, step: 60 };

interface Subject {
  readonly what: string;
  readonly database: string;
  readonly history: HistorySize;
  readonly fragment: () => string;
  /** An element that is there when it is drawn. */
  readonly drawing: string;
  readonly budgetMs?: number;
  /** The server remembers its answer: each round has a new one. */
  readonly isForgotten?: boolean;
}

function subjects(): readonly Subject[] {
  const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const [from, to] = [midnight - DAY_MS, midnight].map((at) => new Date(at).toISOString());
  return [
    {
      ...{ what: 'the fleet, 5,000 nodes', database: 'fleet', history: FLEET, fragment: () => '#/fleet' },
      ...{ drawing: '.map svg path', budgetMs: FLEET_BUDGET_MS },
    },
    {
      ...{ what: 'their versions, a week', database: 'fleet', history: FLEET },
      ...{ fragment: () => `#/versions?days=${FLEET.days}`, isForgotten: true },
      ...{ drawing: '.plot-frame svg', budgetMs: VERSIONS_BUDGET_MS },
    },
    {
      ...{ what: 'a node, its day with 2,880 pods', database: 'day', history: BUSY_DAY },
      fragment: () => `#/node/east/east-001?from=${from}&to=${to}`,
      drawing: '.timeline svg path',
    },
  ];
}

async function main(): Promise<void> {
  const postgres = await startPostgres({ settings: { fsync: 'off', shared_buffers: '512MB' } });
  const browser = await startBrowser();
  const rows: TableRow[] = [];
  const urls = new Map<string, string>();
  try {
    for (const subject of subjects()) {
      const databaseUrl = urls.get(subject.database) ?? (await writeDatabase(subject, postgres.url));
      urls.set(subject.database, databaseUrl);
      rows.push(await measure(subject, databaseUrl, browser));
    }
    rows.push(await measureViewers(urls.get('fleet') ?? '', postgres.pid));
  } finally {
    await browser.stop();
    await postgres.stop();
  }
  const conditions = `${machine()}, load average ${loadAverage()}`;
  process.stdout.write(`\n${conditions}\n\n${printed(rows)}\n`);
  writeResult('page.md', `${conditions}.\n\n${markdown(rows)}`);
  if (rows.some(({ met }) => met === false)) process.exitCode = 1;
}

async function writeDatabase({ what, database, history }: Subject, server: string): Promise<string> {
  process.stdout.write(`writing the history of ${what} …\n`);
  const databaseUrl = await newDatabase(server, database);
  await run(process.execPath, [CLI, 'migrate', '--database-url', databaseUrl]);
  await writeHistory(databaseUrl, history);
  return databaseUrl;
}

async function measure(subject: Subject, databaseUrl: string, browser: TestBrowser): Promise<TableRow> {
  const { what, fragment, drawing, budgetMs, isForgotten = false } = subject;
  const drawings: Drawing[] = [];
  const rounds = isForgotten ? 1 : ROUNDS;
  while (drawings.length < ROUNDS) {
    const address = `127.0.0.1:${await freePort()}`;
    const ui = await startPlegwatch({
      cli: CLI,
      command: 'ui',
      settings: { databaseUrl, pageAddress: address },
    });
    try {
      const { page, close } = await browser.open('about:blank');
      for (let round = 0; round < rounds; round += 1) {
        await page.goto('about:blank');
        await page.goto(`http://${address}/${fragment()}`, { waitUntil: 'commit' });
        drawings.push(await page.evaluate<Drawing>(drawn(drawing)));
      }
      await close();
    } finally {
      await ui.stop();
    }
  }
  return rowOf(what, drawings, budgetMs);
}

/** Cost of open pages of the fleet for the server and Postgres, as a share of a processor. */
async function measureViewers(databaseUrl: string, postgres: number): Promise<TableRow> {
  const address = `127.0.0.1:${await freePort()}`;
  const ui = await startPlegwatch({
    cli: CLI,
    command: 'ui',
    settings: { databaseUrl, pageAddress: address },
  });
  const ask = async (path: string, first: number, every: number) => {
    const end = performance.now() + VIEWED_MS;
    for (let at = performance.now() + first; at < end; at += every) {
      await delay(Math.max(0, at - performance.now()));
      const response = await fetch(`http://${address}/api/${path}`);
      if (!response.ok) throw new Error(`/api/${path} answered ${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  const used = () => {
    const [backends, reaped] = [childrenOf(postgres).map(cpuMs), reapedCpuMs(postgres)];
    return { ui: cpuMs(ui.pid), postgres: backends.reduce((sum, each) => sum + each, reaped) };
  };
  try {
    // The connections are there, and the first answers made.
    await Promise.all(['fleet', 'change'].map((path) => fetch(`http://${address}/api/${path}`)));
    const [before, began] = [used(), performance.now()];
    const viewers = Array.from({ length: VIEWERS }, (_, n) => n / VIEWERS);
    await Promise.all(
      viewers.flatMap((part) => [
        ask('fleet', part * FLEET_EVERY_MS, FLEET_EVERY_MS),
        ask('change', part * CHANGE_EVERY_MS, CHANGE_EVERY_MS),
      ]),
    );
    const [after, elapsed] = [used(), performance.now() - began];
    const percent = (part: 'ui' | 'postgres') => (100 * (after[part] - before[part])) / elapsed;
    const all = percent('ui') + percent('postgres');
    return {
      what: `${VIEWERS} open pages of the fleet, 5,000 nodes`,
      figure: `${all.toFixed(1)} % of a core, of these ${percent('postgres').toFixed(1)} for Postgres`,
      ...{ budget: `≤ ${VIEWERS_BUDGET} %`, met: all <= VIEWERS_BUDGET },
    };
  } finally {
    await ui.stop();
  }
}

/** In milliseconds. */
interface Drawing {
  /** From opening the address until it was painted. */
  readonly all: number;
  /** The part of it for the answer of the server. */
  readonly answer: number;
}

/** Resolves with a Drawing. */
const drawn = (selector: string): string => `new Promise((resolve) => {
  const painted = () => requestAnimationFrame(() => setTimeout(() => {
    const [answer] = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/api/'));
    resolve({ all: performance.now(), answer: answer.duration });
  }));
  const look = () => (document.querySelector(${JSON.stringify(selector)}) ? painted() : requestAnimationFrame(look));
  look();
})`;

function rowOf(what: string, drawings: readonly Drawing[], budgetMs: number | undefined): TableRow {
  const sorted = (timeOf: (drawing: Drawing) => number) => drawings.map(timeOf).toSorted((a, b) => a - b);
  const [all, answers] = [sorted((drawing) => drawing.all), sorted(({ answer }) => answer)];
  const at = (times: readonly number[], share: number) =>
    Math.round(times[Math.floor((times.length - 1) * share)] ?? Number.NaN);
  const figure = `${at(all, 0.5)} ms (${at(all, 0)} to ${at(all, 1)}), of these ${at(answers, 0.5)} for the answer`;
  return budgetMs === undefined
    ? { what, figure }
    : { what, figure, budget: `≤ ${budgetMs} ms`, met: at(all, 0.5) <= budgetMs };
}

async function newDatabase(server: string, name: string): Promise<string> {
  const client = new Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

await main();
