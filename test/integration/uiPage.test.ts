/*
 * The page of `plegwatch ui` in a real browser, on the real server and a Postgres with a week of two clusters. A tab with a request to
 * elsewhere, an error or a violation of the content security policy cannot be closed.
 */
import { readFileSync } from 'node:fs';
import type { Route } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import type { ErrorAnswer } from '../../src/ui/api.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { CLI } from '../support/build.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';
import { until } from '../support/waitFor.ts';

/** A Node cannot have such a name, and a row in the database can. */
const HOSTILE = '<img src=x onerror="document.title=1">\u202egnp';
const MANY = 5_000;

let server: TestServer;
let databaseUrl: string;
let ui: LocalPlegwatch;
let browser: TestBrowser;
let origin: string;
let missed: { finding_id: string; pod_name: string; window_from: Date };

needs('postgres', 'chromium')('the page', () => {
  beforeAll(async () => {
    [server, browser] = await Promise.all([startServer(), startBrowser()]);
    databaseUrl = await server.database();
    await writeHistory(databaseUrl, { nodes: 6, days: 7, lives: 24, step: 600 });
    await query(databaseUrl, `UPDATE store.node SET name = $1 WHERE name = 'west-002'`, [HOSTILE]);
    // However long the tests take: one agent is silent, and the others are not.
    await query(
      databaseUrl,
      `UPDATE store.node SET last_seen = now() + CASE name WHEN 'east-006' THEN interval '-1 hour' ELSE interval '1 day' END
       WHERE last_seen IS NOT NULL`,
    );
    await query(
      databaseUrl,
      `UPDATE store.node_state s SET mode = 'Fallback' FROM store.node n WHERE n.node_id = s.node_id AND n.name = 'east-003'`,
    );
    const [found] = await query<typeof missed>(
      databaseUrl,
      `SELECT finding_id, pod_name, window_from FROM plegwatch.findings
       WHERE node = 'east-003' AND kind = 'missed' AND resolved_at IS NULL ORDER BY detected_at DESC LIMIT 1`,
    );
    if (found === undefined) throw new Error('the history has no missed event');
    missed = found;
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    const settings = { databaseUrl, pageAddress: `127.0.0.1:${port}` };
    ui = await startPlegwatch({ cli: CLI, command: 'ui', settings });
  });
  afterAll(async () => {
    await Promise.all([ui?.stop(), browser?.stop()]);
    await server?.stop();
  });

  const around = (seconds: number) => {
    const at = missed.window_from.getTime();
    const [from, to] = [-1000 * seconds, 1000 * seconds].map((ms) => new Date(at + ms).toISOString());
    return `#/node/east/east-003?from=${from}&to=${to}`;
  };

  test('the fleet shows every node, by state, and a state narrows it to its nodes', async () => {
    const tab = await browser.open(`${origin}/`);
    const { page } = tab;
    await page.getByRole('heading', { name: 'Nodes, the worst first 13' }).waitFor();
    // The silent agent, and the Node that never had one.
    await page.getByRole('button', { name: 'Unknown 2', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Fallback 1', exact: true }).click();
    await page.getByRole('heading', { name: 'Nodes, the worst first 1' }).waitFor();
    await page.getByRole('button', { name: 'Fallback 1', exact: true }).click();
    await page.getByRole('searchbox', { name: 'Search' }).fill('EAST-00');
    await page.getByRole('heading', { name: 'Nodes, the worst first 6' }).waitFor();
    await page.getByRole('radio', { name: 'pool' }).check({ force: true });
    await page.getByRole('heading', { name: 'crio 2 nodes' }).waitFor();
    await until(() => new URL(page.url()).hash === '#/fleet?group=pool&colour=mode&search=EAST-00');
    await tab.close();
  });

  test('a pod is found by its name, and leads to the timeline of its node', async () => {
    const tab = await browser.open(`${origin}/#/fleet?search=${missed.pod_name}`);
    await tab.page
      .getByRole('link', { name: new RegExp(`${missed.pod_name} on`) })
      .first()
      .click();
    await tab.page.getByRole('application', { name: /^Timeline of / }).waitFor();
    await until(() => tab.page.url().includes(encodeURIComponent(missed.pod_name)));
    await tab.close();
  });

  test('arrow keys go from node to node, and Enter opens one', async () => {
    const tab = await browser.open(`${origin}/#/fleet?search=east-00`);
    const { page } = tab;
    await page.getByRole('application', { name: /^Nodes:/ }).focus();
    await page.getByText(/^east-001: /).waitFor();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.getByText(/^east-003: /).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'east-003' }).waitFor();
    await tab.close();
  });

  test('a missed event is a hole on the timeline, which zooms by keys and wheel and keeps its period in the address', async () => {
    const tab = await browser.open(`${origin}/${around(120)}`);
    const { page } = tab;
    const drawing = page.getByRole('application', { name: /^Timeline of east-003 .*: 1 missed event/ });
    await drawing.locator('rect.hole').waitFor();
    const lengthOf = () => {
      const values = new URLSearchParams(page.url().split('?')[1]);
      return Date.parse(values.get('to') ?? '') - Date.parse(values.get('from') ?? '');
    };
    await drawing.focus();
    await page.keyboard.press('+');
    await until(() => lengthOf() === 120_000);
    await page.keyboard.press('ArrowLeft');
    await drawing.locator('rect.hole').hover();
    await page.mouse.wheel(0, -300);
    await until(() => lengthOf() < 100_000);
    await drawing.locator('rect.hole').waitFor();
    await page.reload();
    await drawing.locator('rect.hole').waitFor();
    expect(await tab.barriers()).toEqual([]);
    await page.getByRole('link', { name: 'missed STOPPED' }).first().click();
    await page.getByRole('heading', { level: 1, name: 'missed STOPPED' }).waitFor();
    await tab.close();
  });

  test('a finding says which pod, when and why, and is copied without names unless they are asked for', async () => {
    const tab = await browser.open(`${origin}/#/finding/${missed.finding_id}`, {
      width: 360,
      colorScheme: 'dark',
    });
    const { page } = tab;
    await page
      .getByText(`batch/${missed.pod_name} app`)
      .or(page.getByText(`shop/${missed.pod_name} app`))
      .first()
      .waitFor();
    await page
      .getByRole('img', { name: /^STOPPED was due between .* and no such event was received/ })
      .waitFor();
    await page.getByText('Read the report').click();
    const report = page.locator('.sharing pre');
    expect(await report.textContent()).not.toContain(missed.pod_name);
    await page.getByRole('checkbox').check();
    await report.filter({ hasText: missed.pod_name }).waitFor();
    expect(await tab.barriers()).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await tab.close();
  });

  test('each plot of versions is a file with the figures that it shows', async () => {
    const tab = await browser.open(`${origin}/#/versions`);
    const { page } = tab;
    const fileOf = async (name: string) => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name }).click(),
      ]);
      return readFileSync(await download.path(), 'utf8');
    };
    expect(await fileOf('Missed events by version as CSV')).toMatch(
      /^cluster,runtime_name.*\neast,containerd,2\.0\.5/s,
    );
    const drawing = await fileOf('Fallbacks to Generic PLEG by day as SVG');
    expect(drawing).toMatch(/^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
    expect(drawing).not.toContain('class=');
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('a hostile name is text, and what turns the text around it is an escape', async () => {
    const tab = await browser.open(`${origin}/`, { width: 360 });
    const { page } = tab;
    const link = page.getByRole('link', { name: '<img src=x onerror="document.title=1">\\u{202e}gnp' });
    await link.waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(await tab.barriers()).toEqual([]);
    await link.click();
    await page.getByRole('heading', { level: 1, name: /<img/ }).waitFor();
    await tab.close();
  });

  test('who has no right is asked for a token, which stays in the tab', async () => {
    const refusal: ErrorAnswer = {
      error: {
        code: 'TOKEN_REQUIRED',
        message: 'This page needs a token.',
        cure: 'Make one with kubectl create token.',
      },
    };
    const tab = await browser.open('about:blank', { colorScheme: 'dark' });
    const { page } = tab;
    await page.route('**/api/**', (route) =>
      route.request().headers()['authorization'] === 'Bearer right'
        ? route.continue()
        : route.fulfill({ status: 401, json: refusal }),
    );
    await page.goto(`${origin}/`);
    await page.getByRole('heading', { name: 'Who may see this?' }).waitFor();
    expect(await tab.barriers()).toEqual([]);
    await page.getByLabel('Token of the API server').fill('right');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /^Nodes, the worst first/ }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: /^Nodes, the worst first/ }).waitFor();
    await page.getByRole('button', { name: 'Forget token' }).click();
    await page.getByRole('heading', { name: 'Who may see this?' }).waitFor();
    // The browser itself reports an answer of 401.
    expect(tab.takeFaults().filter((fault) => !fault.includes('401'))).toEqual([]);
    await tab.close();
  });

  /** A tab whose first request for the fleet waits until it is resumed. Its time goes on as it does, and can be moved forward. */
  const openHeld = async () => {
    const tab = await browser.open('about:blank');
    const { page } = tab;
    const held = Promise.withResolvers<Route>();
    await page.route('**/api/fleet', (route) => held.resolve(route), { times: 1 });
    await page.clock.install();
    await page.goto(`${origin}/`);
    return { tab, page, held: await held.promise };
  };

  test('an answer that is late is said to be late until it comes', async () => {
    const { tab, page, held } = await openHeld();
    const notice = page.getByRole('alert').getByText('The answer of the server is late.');
    await page.clock.fastForward(20_000);
    await notice.waitFor();
    await page.getByText('The page goes on asking.').waitFor();
    expect(await tab.barriers()).toEqual([]);
    await held.continue();
    await page.getByRole('heading', { name: /^Nodes, the worst first/ }).waitFor();
    await notice.waitFor({ state: 'detached' });
    await tab.close();
  });

  test('a request that is never answered is given up, and the page asks again', async () => {
    const { tab, page } = await openHeld();
    const givenUp = page.waitForEvent('requestfailed');
    await page.clock.fastForward(120_000);
    expect((await givenUp).url()).toBe(`${origin}/api/fleet`);
    await page.getByText('The answer of the server is late.').waitFor();
    await page.clock.fastForward(5_000);
    await page.getByRole('heading', { name: /^Nodes, the worst first/ }).waitFor();
    await tab.close();
  });

  test('a node of which nothing is known says so', async () => {
    const tab = await browser.open(`${origin}/#/node/east/east-idle`);
    await tab.page.getByText('This node never had an agent.').waitFor();
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('5,000 nodes are all on the map, in few elements', async () => {
    await query(
      databaseUrl,
      `INSERT INTO store.node (cluster_id, name)
       SELECT cluster_id, 'many-' || i FROM store.cluster, generate_series(1, ${MANY}) AS i WHERE name = 'west'`,
    );
    const tab = await browser.open(`${origin}/`);
    await tab.page
      .getByRole('heading', { name: `Nodes, the worst first ${(MANY + 13).toLocaleString('en-US')}` })
      .waitFor();
    const cells = tab.page.locator('.map-cells');
    expect(await cells.locator('*').count()).toBeLessThan(100);
    const squares = await cells
      .locator('path.cell')
      .evaluateAll((paths) =>
        paths.map((path) => path.getAttribute('d')?.match(/z/g)?.length ?? 0).reduce((a, b) => a + b, 0),
      );
    expect(squares).toBe(MANY + 13);
    await tab.close();
  });
});
