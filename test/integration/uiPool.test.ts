/*
 * The view of a pool, its slide, and a node beside its neighbours, in a real browser: what is drawn, against SQL, on a history with a hole, a slow node,
 * a silent agent, a node without one, and names that are not harmless.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import type { PageRecord } from '../../src/ui/api.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { CLI } from '../support/build.ts';
import { plegwatch } from '../support/commandLine.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';
import { until } from '../support/waitFor.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Three whole days of the seven that are stored: what follows is the same whenever it runs. */
const TO = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - 2 * DAY_MS);
const FROM = new Date(TO.getTime() - 3 * DAY_MS);
const HOURS = 72;
const at = (hour: number): Date => new Date(FROM.getTime() + hour * HOUR_MS);
/** A Node and a label cannot have such a name, and rows in the database can. */
const HOSTILE = '<img src=x onerror="document.title=1">\u202egnp';

/** A line without a height is not visible to the driver of the browser. */
const ATTACHED = { state: 'attached' } as const;

let server: TestServer;
let databaseUrl: string;
let ui: LocalPlegwatch;
let browser: TestBrowser;
let origin: string;
const folder = temporaryFolder('pool', undefined);

const period = `from=${FROM.toISOString()}&to=${TO.toISOString()}`;
const pool = (name: string) => `#/pool?by=pool&cluster=east&pool=${encodeURIComponent(name)}&${period}`;

needs('postgres', 'chromium')('the page of a pool', () => {
  beforeAll(async () => {
    [server, browser] = await Promise.all([startServer(), startBrowser()]);
    databaseUrl = await server.database();
    await writeHistory(databaseUrl, { nodes: 12, days: 7, lives: 24, step: 600 });
    // A pool of four: a hole of ten hours, and eight slow hours of another node.
    await query(
      databaseUrl,
      `DELETE FROM store.relist_hour h USING store.node n WHERE n.node_id = h.node_id AND n.name = 'east-003' AND h.hour >= $1 AND h.hour < $2`,
      [at(20), at(30)],
    );
    await query(
      databaseUrl,
      `UPDATE store.relist_hour h SET max_us = 700000 + 1000 * extract(hour FROM h.hour)::int4 FROM store.node n
       WHERE n.node_id = h.node_id AND n.name = 'east-006' AND h.hour >= $1 AND h.hour < $2`,
      [at(50), at(58)],
    );
    await query(
      databaseUrl,
      `UPDATE store.node SET last_seen = now() + interval '1 day' WHERE last_seen IS NOT NULL AND name <> 'east-012'`,
    );
    await query(
      databaseUrl,
      `UPDATE store.node SET last_seen = now() - interval '1 hour' WHERE name = 'east-012'`,
    );
    await query(databaseUrl, `UPDATE store.node SET name = $1 WHERE name = 'west-003'`, [HOSTILE]);
    await query(
      databaseUrl,
      `UPDATE store.node_info i SET labels = labels || jsonb_build_object('pool', $1::text) FROM store.node n
       WHERE n.node_id = i.node_id AND n.name IN ($1, 'west-006')`,
      [HOSTILE],
    );
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    ui = await startPlegwatch({
      cli: CLI,
      command: 'ui',
      settings: { databaseUrl, pageAddress: `127.0.0.1:${port}` },
    });
  });
  afterAll(async () => {
    await Promise.all([ui?.stop(), browser?.stop()]);
    await server?.stop();
    folder.remove();
  });

  interface Figures {
    readonly [figure: string]: unknown;
    readonly missed: number;
    readonly decided: number;
    readonly fallbacks: number;
    readonly watched: number;
  }

  /** By the public views, of nodes whose names match. */
  async function stored(pattern: string, nodes: number): Promise<Figures> {
    const [row] = await query<Figures>(
      databaseUrl,
      `SELECT m.missed, h.matched + m.missed AS decided, c.fallbacks, h.covered_ms / ($4::int4 * 1000.0 * extract(epoch FROM $3::timestamptz - $2::timestamptz)) AS watched
       FROM (SELECT count(*)::float8 AS missed FROM plegwatch.findings WHERE node ~ $1 AND kind = 'missed' AND resolved_at IS NULL
               AND detected_at >= $2 AND detected_at < $3) m,
            (SELECT count(*)::float8 AS fallbacks FROM plegwatch.mode_changes WHERE node ~ $1 AND to_mode = 'Fallback' AND at >= $2 AND at < $3) c,
            (SELECT sum(matched)::float8 AS matched, sum(covered_ms) AS covered_ms FROM plegwatch.relist_hours
             WHERE node ~ $1 AND hour >= $2 AND hour < $3) h`,
      [pattern, FROM, TO, nodes],
    );
    if (row === undefined) throw new Error('the aggregates have a row');
    return row;
  }

  const tile = (page: Page, name: string) =>
    page.locator('.tile').filter({ has: page.getByText(name, { exact: true }) });
  const number = (n: number) => n.toLocaleString('en-US');
  /** Never rounded up. */
  const percent = (part: number) => {
    const floored = Math.floor(Number(part) * 10_000) / 100;
    return `${floored.toFixed(floored >= 99 ? 2 : 1)} %`;
  };

  async function expectFigures(page: Page, of: Figures): Promise<void> {
    await page.locator('.verdict').waitFor();
    const value = (name: string) => tile(page, name).locator('.summary-value').textContent();
    const detail = (name: string) => tile(page, name).locator('.summary-detail').textContent();
    expect(await value('Missed events')).toBe(number(of.missed));
    expect(await detail('Missed events')).toBe(`of ${number(of.decided)} that were due`);
    expect(await value('Fallbacks')).toBe(number(of.fallbacks));
    expect(await value('Watched')).toBe(percent(of.watched));
  }

  test('a group of the fleet leads to its view, whose figures are those of SQL, with the verdict and its reason', async () => {
    const tab = await browser.open(`${origin}/#/fleet?group=pool`);
    const { page } = tab;
    await page.getByRole('link', { name: 'east / general' }).click();
    await page.getByRole('heading', { level: 1, name: 'Pool general of east' }).waitFor();
    await page.goto(`${origin}/${pool('general')}`);
    await expectFigures(page, await stored('^east-0(03|06|09|12)$', 4));
    expect(await page.locator('.verdict').textContent()).toMatch(
      /^Not safe for Evented PLEG: 4 of 4 nodes are unsafe, /,
    );
    expect(await tile(page, 'Nodes').textContent()).toContain('1 without a reporting agent now');
    expect(await tile(page, 'Watched').textContent()).toContain(
      '3 for 90 % or more, 1 for less, 0 not at all',
    );
    await page.getByText(`Source: plegwatch, as of`).waitFor();
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('a node that nobody ever observed lowers what is watched of its pool, which nobody can then call safe', async () => {
    const tab = await browser.open(`${origin}/#/pool?by=cluster&cluster=east&${period}`, {
      colorScheme: 'dark',
    });
    const { page } = tab;
    await expectFigures(page, await stored('^east-', 13));
    await page.getByText('agents on 12 of 13 nodes.').waitFor();
    const idle = page.getByRole('row', { name: /^east-idle unknown no agent reported/ });
    expect(await idle.getByText('not observed').count()).toBe(1);
    await page.goto(`${origin}/#/pool?by=pool&cluster=east&${period}`);
    await page.getByText('too little is known of 1 of 1 node, because no agent reported.').waitFor();
    await page.getByText('No relist of these nodes is recorded in this period.').waitFor();
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  interface Drawn {
    readonly lines: readonly (readonly [node: string, path: string])[];
    readonly ticks: readonly (readonly [y: number, label: string])[];
    readonly plot: { readonly x: number; readonly width: number };
    readonly unseen: readonly string[];
  }

  const drawnOn = (page: Page) =>
    page.evaluate<Drawn>(`(() => {
      const svg = document.querySelector('.plot-frame svg');
      const number = (element, name) => Number(element.getAttribute(name));
      const plot = svg.querySelector('rect.plot');
      return {
        lines: [...svg.querySelectorAll('path.relists')].map((path) => [path.querySelector('title').textContent, path.getAttribute('d')]),
        ticks: [...svg.querySelectorAll('.tick-line')].map((line) => [
          Number(line.getAttribute('d').split(/[ H]/)[1]), line.parentElement.querySelector('text').textContent]),
        plot: { x: number(plot, 'x'), width: number(plot, 'width') },
        unseen: [...svg.querySelectorAll('.unobserved-nodes title')].map(({ textContent }) => textContent),
      };
    })()`);

  /** The longest relist of each hour that a line covers, in milliseconds, as one reads it from the drawing. */
  function readLine(path: string, { ticks, plot }: Drawn): Map<number, number> {
    const scale = ticks.map(([y, label]) => {
      const [, value, unit] = /^([\d.]+) (ms|s)$/.exec(label) ?? [];
      return { y, log: Math.log10(Number(value) * (unit === 's' ? 1000 : 1)) };
    });
    const [low, high] = [scale[0], scale.at(-1)];
    if (low === undefined || high === undefined) throw new Error('there are no ticks');
    const points = [...path.matchAll(/L([\d.]+) ([\d.]+)/g)];
    return new Map(
      points.map(([, x, y]) => {
        const hour = Math.floor(((Number(x) - plot.x) / plot.width) * HOURS);
        return [hour, 10 ** (low.log + ((Number(y) - low.y) / (high.y - low.y)) * (high.log - low.log))];
      }),
    );
  }

  test('each line has the longest relists that SQL has, a hole where it has none, and the outlier its name', async () => {
    const tab = await browser.open(`${origin}/${pool('general')}`);
    const { page } = tab;
    await page.locator('.plot-frame svg .relists').first().waitFor(ATTACHED);
    const drawn = await drawnOn(page);
    const rows = await query<{ node: string; hour: Date; max_ms: number }>(
      databaseUrl,
      `SELECT node, hour, max(max_ms) AS max_ms FROM plegwatch.relist_hours
       WHERE node ~ '^east-0(03|06|09|12)$' AND hour >= $1 AND hour < $2 AND relists > 0 GROUP BY node, hour`,
      [FROM, TO],
    );
    expect(drawn.lines.map(([node]) => node)).toEqual(['east-003', 'east-006', 'east-009', 'east-012']);
    const counts = Array.from({ length: HOURS }, () => 4);
    for (const [node, path] of drawn.lines) {
      const line = readLine(path, drawn);
      const own = rows.filter((row) => row.node === node);
      const hours = own.map(({ hour }) => (hour.getTime() - FROM.getTime()) / HOUR_MS).sort((a, b) => a - b);
      expect([node, [...line.keys()]]).toEqual([node, hours]);
      for (const { hour, max_ms } of own) {
        const n = (hour.getTime() - FROM.getTime()) / HOUR_MS;
        counts[n] = (counts[n] ?? 0) - 1;
        expect(Math.abs(Math.log10((line.get(n) ?? 0) / max_ms))).toBeLessThan(0.02);
      }
    }
    const missing = counts.flatMap((n, hour) =>
      n === 0
        ? []
        : [`${n} of 4 nodes not observed from ${at(hour).toISOString().slice(0, 19).replace('T', ' ')} UTC`],
    );
    expect(missing).toHaveLength(10);
    expect(drawn.unseen).toEqual(missing);
    const ends = await page.locator('.plot-frame .hole-ends').getAttribute('d');
    expect(ends?.match(/M/g)).toHaveLength(2);
    const [slowest] = rows.filter(({ node }) => node === 'east-006').sort((a, b) => b.max_ms - a.max_ms);
    expect(await page.locator('.outlier-name').textContent()).toBe(
      `east-006: ${Math.round(slowest?.max_ms ?? 0)} ms`,
    );
    await tab.close();
  });

  async function download(page: Page, button: string): Promise<string> {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: button }).click(),
    ]);
    const path = join(folder.dir, file.suggestedFilename());
    await file.saveAs(path);
    return path;
  }

  test('the slide is one picture of 16 to 9 with the title, the period, the source, the verdict and the figures of the view', async () => {
    const tab = await browser.open(`${origin}/${pool('general')}`);
    const { page } = tab;
    await page.locator('.verdict').waitFor();
    const texts = (
      await page.locator('.verdict, .summary-name, .summary-value, .summary-detail').allTextContents()
    ).map(oneLine);
    const file = await download(page, 'Download as a slide');
    await page.goto(`file://${file}`);
    const slide = page.locator('svg');
    expect([await slide.getAttribute('width'), await slide.getAttribute('height')]).toEqual(['1280', '720']);
    const said = oneLine((await slide.locator('text').allTextContents()).join(' '));
    const day = (time: Date) => time.toISOString().slice(0, 16).replace('T', ' ');
    for (const text of [
      'Pool general of east',
      `${day(FROM)} – ${day(TO)} UTC`,
      'Source: plegwatch, as of',
      'east-006: ',
      ...texts,
    ])
      expect(said).toContain(text);
    expect(await page.locator('svg > title').textContent()).toContain('Not safe');
    expect(await slide.locator('path').count()).toBeGreaterThan(5);
    const within = await slide.locator('text').evaluateAll((all) =>
      all
        .filter((text) => {
          const { left, right, top, bottom } = text.getBoundingClientRect();
          return left < 0 || right > 1280 || top < 0 || bottom > 720;
        })
        .map(({ textContent }) => textContent),
    );
    expect(within).toEqual([]);
    await tab.close();
  });

  test('hostile names of nodes and pools are text, in the view and on the slide', async () => {
    const tab = await browser.open(
      `${origin}/#/pool?by=pool&cluster=west&pool=${encodeURIComponent(HOSTILE)}&${period}`,
    );
    const { page } = tab;
    await page
      .getByRole('heading', {
        level: 1,
        name: 'Pool <img src=x onerror="document.title=1">\\u{202e}gnp of west',
      })
      .waitFor();
    await page.getByRole('link', { name: '<img src=x onerror="document.title=1">\\u{202e}gnp' }).waitFor();
    const file = readFileSync(await download(page, 'Download as a slide'), 'utf8');
    expect(file).toContain('&lt;img src=x');
    expect(file).not.toMatch(/<img|\u202e|<script/);
    expect(await page.title()).not.toBe('1');
    await tab.close();
  });

  test('the slowest nodes of a pool too large to draw are drawn, and the outlier is one beside the median of all', async () => {
    const [copied] = await query<{ node_id: number }>(
      databaseUrl,
      `SELECT node_id FROM store.node WHERE name = 'west-001'`,
    );
    await query(
      databaseUrl,
      `INSERT INTO store.node (cluster_id, name, first_seen, last_seen)
       SELECT cluster_id, 'many-' || lpad(i::text, 3, '0'), first_seen, last_seen FROM store.node, generate_series(1, 130) AS i WHERE node_id = $1`,
      [copied?.node_id],
    );
    await query(
      databaseUrl,
      `INSERT INTO store.node_info (node_id, cluster_id, at, labels, os_image, kernel_version)
       SELECT node_id, cluster_id, now(), '{"pool": "many"}', '', '' FROM store.node WHERE name LIKE 'many-%'`,
    );
    await query(
      databaseUrl,
      `INSERT INTO store.relist_hour
       SELECT (jsonb_populate_record(h, jsonb_build_object('node_id', n.node_id, 'max_us', CASE WHEN n.name = 'many-120' THEN 900000 ELSE 2000 + 50 * right(n.name, 3)::int4 END))).*
       FROM store.relist_hour h, store.node n WHERE h.node_id = $1 AND n.name LIKE 'many-%' AND h.hour >= $2 AND h.hour < $3`,
      [copied?.node_id, FROM, TO],
    );
    const tab = await browser.open(`${origin}/#/pool?by=pool&cluster=west&pool=many&${period}`);
    const { page } = tab;
    await page
      .getByText(
        /^The longest relist of each 1 h, of 100 nodes; .* 30 other nodes had shorter relists and no line\./,
      )
      .waitFor();
    await page.getByText('Lines of the 30 nodes with the shortest relists are left out.').waitFor();
    const { lines } = await drawnOn(page);
    expect(lines.map(([node]) => node)).toEqual(
      Array.from({ length: 100 }, (_, n) => `many-${String(n + 31).padStart(3, '0')}`),
    );
    expect(await page.locator('.outlier-name').textContent()).toBe('many-120: 900 ms');
    // The 65th and the 66th of 130, of which one is slow: not the middle of the slowest hundred.
    await page.getByText(/ where the median was 5 ms\.$/).waitFor();
    await tab.close();
  });

  test('one click compares a node with its pool at the same time: what differs stands out, what is equal is folded', async () => {
    const tab = await browser.open(`${origin}/#/node/east/east-003?${period}`);
    const { page } = tab;
    await page.getByRole('button', { name: 'Compare with its neighbours' }).focus();
    await page.keyboard.press('Enter');
    const beside = page.getByRole('region', { name: 'Beside its neighbours' });
    await beside.getByText('3 other nodes of').waitFor();
    const rows = await beside.locator('tbody tr').all();
    const texts = await Promise.all(
      rows.map(async (row) => ({
        isShown: await row.isVisible(),
        cells: await row.locator('th, td').allTextContents(),
      })),
    );
    const shown = texts.filter(({ isShown }) => isShown).map(({ cells }) => cells);
    const watched = async (node: string) => percent((await stored(`^${node}$`, 1)).watched);
    const others = await Promise.all(['east-006', 'east-009', 'east-012'].map(watched));
    expect(new Set(others).size).toBe(1);
    expect(shown).toContainEqual(['Watched', await watched('east-003'), others[0]?.replace('100.00', '100')]);
    expect(shown).toContainEqual(['Fallbacks', '1', '0']);
    expect(shown.map(([name]) => name)).not.toContain('Runtime');
    await beside.getByText(/^\d+ equal/).click();
    const runtime = beside.getByRole('row', { name: /^Runtime / });
    expect(await runtime.locator('td').allTextContents()).toEqual([
      'containerd 2.0.5',
      'containerd 2.0.5: 3',
    ]);
    expect(await tab.barriers()).toEqual([]);
    await until(() => page.url().includes('beside=pool'));
    await beside.getByRole('link', { name: 'Pool general of east' }).click();
    await page.getByRole('heading', { level: 1, name: 'Pool general of east' }).waitFor();
    await tab.close();
  });

  test('a saved view is the file that the terminal writes, and needs no server', async () => {
    const [from, to] = [at(26), at(28)].map((time) => time.toISOString());
    const tab = await browser.open(`${origin}/#/node/east/east-003?from=${from}&to=${to}`);
    const { page } = tab;
    const saved = await download(page, 'Save this view');
    await page.getByText('Saved.').waitFor();
    await page.getByRole('button', { name: 'Zoom in' }).click();
    await page.getByText('Saved.').waitFor({ state: 'detached' });
    const printed = join(folder.dir, 'printed.html');
    const of = ['east-003', '--cluster', 'east', '--from', from ?? '', '--to', to ?? ''];
    const { stderr, code } = await plegwatch([
      'timeline',
      ...of,
      '--html',
      printed,
      '--database-url',
      databaseUrl,
    ]);
    expect([code, stderr]).toEqual([0, '']);
    const [own, other] = [saved, printed].map((file) => partsOf(readFileSync(file, 'utf8')));
    expect(own).toEqual(other);
    await page.goto(`file://${saved}`);
    await page.getByRole('application', { name: /^Timeline of east-003 / }).waitFor();
    expect(await page.getByRole('button', { name: 'Save this view' }).count()).toBe(0);
    await tab.close();
  });

  test('a saved finding opens with that finding', async () => {
    const [found] = await query<{ finding_id: string }>(
      databaseUrl,
      `SELECT finding_id FROM plegwatch.findings WHERE node = 'east-003' AND kind = 'missed' AND resolved_at IS NULL LIMIT 1`,
    );
    const tab = await browser.open(`${origin}/#/finding/${found?.finding_id}`);
    const { page } = tab;
    await page.getByRole('heading', { level: 1, name: 'missed STOPPED' }).waitFor();
    const saved = await download(page, 'Save this view');
    await page.goto(`file://${saved}`);
    await page.getByRole('heading', { level: 1, name: 'missed STOPPED' }).waitFor();
    await tab.close();
  });

  test.each([
    [360, 'dark'],
    [1280, 'light'],
    [1920, 'dark'],
  ] as const)(
    'at a width of %i no view scrolls sideways, and each uses all of it',
    async (width, colorScheme) => {
      const tab = await browser.open(`${origin}/${pool('general')}`, { width, colorScheme });
      const { page } = tab;
      const expectWidth = async () => {
        expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
        const box = await page.getByRole('main').boundingBox();
        expect(box?.width).toBeGreaterThan(width - 60);
        expect(await tab.barriers()).toEqual([]);
      };
      await page.locator('.plot-frame svg .relists').first().waitFor(ATTACHED);
      await expectWidth();
      const lines = await page.locator('.plot-frame svg').boundingBox();
      expect(lines?.width).toBeGreaterThan(width - 120);
      await page.goto(`${origin}/#/node/east/east-003?${period}&beside=pool`);
      await page.getByText('3 other nodes of').waitFor();
      await expectWidth();
      await page.goto(`${origin}/#/fleet?group=pool`);
      await page.getByRole('link', { name: 'east / general' }).waitFor();
      await expectWidth();
      await tab.close();
    },
  );
});

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

/** The record in a file without the clock that wrote it, and what is around the record. */
function partsOf(html: string) {
  const [, before, json = '', after] =
    /^(.*<script type="application\/json" id="record">)(.*?)(<\/script>.*)$/s.exec(html) ?? [];
  const { writtenAt, timeline, ...record } = JSON.parse(json) as PageRecord;
  const { now, lastSeen, ...rest } = timeline;
  return { before, after, record, rest };
}
