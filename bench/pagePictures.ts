/*
 * Takes the pictures of the page that docs show. Run by `make pictures`; with a folder as its argument, it writes every view there, or those that are
 * named after it, in both lights and at three widths, for somebody who looks at them.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { type LocalPlegwatch, startPlegwatch } from '../devtools/localServices/plegwatch.ts';
import { freePort } from '../devtools/localServices/process.ts';
import { CLUSTER } from '../test/support/batches.ts';
import { startBrowser, type TestBrowser } from '../test/support/browser.ts';
import { commitAll } from '../test/support/committed.ts';
import { query, startServer, type TestServer } from '../test/support/database.ts';
import { AGO_MS, GHOST_NODE, ghostBatch, missedId, RUNS, STATUS_LAG } from '../test/support/ghostEvidence.ts';
import { writeHistory } from '../test/support/storedHistory.ts';
import { ROOT } from './system.ts';

const CLI = join(ROOT, 'dist', 'cli.js');
const DOCS = join(ROOT, 'docs', 'how-to');
const WIDTHS = [360, 1280, 1920];
const LIGHTS = ['light', 'dark'] as const;
const MINUTE_MS = 60_000;

interface Picture {
  readonly name: string;
  readonly url: string;
  /** An element that is there when it is drawn. */
  readonly drawn: string;
  /** Height of the picture in docs; without, docs have none. */
  readonly height?: number;
  /** At the top of the picture in docs. */
  readonly from?: string;
}

/** A week of two clusters, and beside them the node with containers that looked alive. */
async function startPages(server: TestServer, started: LocalPlegwatch[]): Promise<readonly Picture[]> {
  const serve = async (databaseUrl: string) => {
    const address = `127.0.0.1:${await freePort()}`;
    const settings = { databaseUrl, pageAddress: address };
    started.push(await startPlegwatch({ cli: CLI, command: 'ui', settings }));
    return `http://${address}/#`;
  };
  const [history, ghost] = [await server.database(), await server.database()];
  await writeHistory(history, { nodes: 24, days: 8, lives: 96, step: 60, untilNow: true });
  await query(history, `DELETE FROM store.cluster WHERE name = 'test'`);
  await query(history, readFileSync(new URL('pagePictures.sql', import.meta.url), 'utf8'));
  const began = Date.now() - AGO_MS;
  await commitAll(ghost, [ghostBatch(began)]);
  for (const { n, missed } of RUNS) {
    if (missed !== undefined) await query(ghost, STATUS_LAG, [missedId(n), ...missed.lag]);
  }
  return [...(await historyPictures(history, await serve(history))), ghostPicture(await serve(ghost), began)];
}

async function historyPictures(databaseUrl: string, origin: string): Promise<readonly Picture[]> {
  const [missed] = await query<{ finding_id: string; at: Date }>(
    databaseUrl,
    `SELECT finding_id, window_from AS at FROM plegwatch.findings
     WHERE node = 'east-003' AND kind = 'missed' AND resolved_at IS NULL ORDER BY detected_at DESC LIMIT 1`,
  );
  const [fallen] = await query<{ at: Date }>(
    databaseUrl,
    `SELECT from_at AS at FROM plegwatch.fallback_intervals WHERE node = 'east-013'`,
  );
  if (missed === undefined || fallen === undefined) throw new Error('the history lacks what is shown');
  const around = (at: Date, minutes: number) => {
    const [from, to] = [-minutes, minutes].map((each) =>
      new Date(at.getTime() + each * MINUTE_MS).toISOString(),
    );
    return `from=${from}&to=${to}`;
  };
  const finding = `${origin}/finding/${missed.finding_id}`;
  return [
    { name: 'fleet', url: `${origin}/fleet`, drawn: '.map svg path', height: 900 },
    { name: 'fleet-pools', url: `${origin}/fleet?group=pool&colour=completeness`, drawn: '.map svg path' },
    {
      name: 'node',
      url: `${origin}/node/east/east-003?${around(missed.at, 5)}`,
      drawn: '.timeline rect.hole',
      height: 900,
    },
    {
      name: 'node-day',
      url: `${origin}/node/east/east-013?${around(fallen.at, 720)}`,
      drawn: '.timeline svg path',
    },
    { name: 'node-now', url: `${origin}/node/west/west-017`, drawn: '.timeline svg' },
    {
      ...{ name: 'node-beside', url: `${origin}/node/east/east-013?${around(fallen.at, 120)}&beside=pool` },
      drawn: '.beside table',
    },
    { name: 'finding', url: finding, drawn: '.strip svg', height: 900 },
    { name: 'hours', url: `${origin}/hours`, drawn: '.hours svg' },
    { name: 'unobserved', url: `${origin}/unobserved`, drawn: 'main table' },
    { name: 'fallbacks', url: `${origin}/fallbacks`, drawn: 'main table' },
    { name: 'versions', url: `${origin}/versions`, drawn: '.plot-frame svg' },
    { name: 'pool', url: `${origin}/pool?by=pool&cluster=east&pool=general`, drawn: 'main svg' },
  ];
}

function ghostPicture(origin: string, began: number): Picture {
  const [from, to] = [0, 500].map((seconds) => new Date(began + 1000 * seconds).toISOString());
  const url = `${origin}/node/${CLUSTER}/${GHOST_NODE}?from=${from}&to=${to}`;
  return {
    name: 'ghost',
    url,
    drawn: '.timeline .ghost',
    height: 330,
    from: '.timeline svg > g:has(.ghost)',
  };
}

async function take(browser: TestBrowser, { name, url, drawn, height = 900, from }: Picture): Promise<void> {
  const { page, close } = await browser.open(url, { width: 1280, height });
  await shown(page, drawn);
  const top = from === undefined ? 0 : await topOf(page, from);
  await page.screenshot({
    path: join(DOCS, `ui-${name}.png`),
    fullPage: true,
    clip: { x: 0, y: top, width: 1280, height },
  });
  await close();
}

async function takeAll(browser: TestBrowser, folder: string, { name, url, drawn }: Picture): Promise<void> {
  for (const width of WIDTHS) {
    for (const colorScheme of LIGHTS) {
      const { page, close } = await browser.open(url, { width, height: 900, colorScheme });
      await shown(page, drawn);
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      await close();
    }
  }
}

async function shown(page: Page, drawn: string): Promise<void> {
  await page.locator(drawn).first().waitFor({ state: 'attached' });
  // Every answer is drawn.
  await page.waitForLoadState('networkidle');
}

async function topOf(page: Page, selector: string): Promise<number> {
  const box = await page.locator(selector).first().boundingBox();
  if (box === null) throw new Error(`nothing is drawn at ${selector}`);
  return Math.round(box.y);
}

const [folder, ...only] = process.argv.slice(2);
if (folder !== undefined) mkdirSync(folder, { recursive: true });
const started: LocalPlegwatch[] = [];
const server = await startServer();
const browser = await startBrowser(folder);
try {
  for (const picture of await startPages(server, started)) {
    if (only.length > 0 && !only.includes(picture.name)) continue;
    if (folder !== undefined) await takeAll(browser, folder, picture);
    else if (picture.height !== undefined) await take(browser, picture);
  }
} finally {
  await browser.stop();
  for (const ui of started) await ui.stop();
  await server.stop();
}
