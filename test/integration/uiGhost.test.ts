/*
 * How the page draws the life of a container that looked alive after its end, in a real browser, on a Postgres with that evidence.
 */
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { CLUSTER } from '../support/batches.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { CLI } from '../support/build.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { AGO_MS, GHOST_NODE, ghostBatch, missedId, RUNS, STATUS_LAG } from '../support/ghostEvidence.ts';
import { needs } from '../support/needs.ts';

let server: TestServer;
let databaseUrl: string;
let ui: LocalPlegwatch;
let browser: TestBrowser;
/** The period of the node, from and until this many seconds after its agent started. */
let began: number;
let address: (from: number, to: number) => string;

needs('postgres', 'chromium')('the ghost of a container on the page', () => {
  beforeAll(async () => {
    [server, browser] = await Promise.all([startServer(), startBrowser()]);
    databaseUrl = await server.database();
    began = Date.now() - AGO_MS;
    await commitAll(databaseUrl, [ghostBatch(began)]);
    for (const { n, missed } of RUNS) {
      if (missed !== undefined) await query(databaseUrl, STATUS_LAG, [missedId(n), ...missed.lag]);
    }
    const port = await freePort();
    const settings = { databaseUrl, pageAddress: `127.0.0.1:${port}` };
    ui = await startPlegwatch({ cli: CLI, command: 'ui', settings });
    address = (from, to) => {
      const [first, last] = [from, to].map((second) => new Date(began + 1000 * second).toISOString());
      return `http://127.0.0.1:${port}/#/node/${CLUSTER}/${GHOST_NODE}?from=${first}&to=${last}`;
    };
  });
  afterAll(async () => {
    await Promise.all([ui?.stop(), browser?.stop()]);
    await server?.stop();
  });

  const pod = (page: Page, name: string) =>
    page.locator('.timeline svg > g').filter({ has: page.getByText(`shop/${name}`, { exact: true }) });
  const trail = (of: Locator, witness: RegExp) => of.locator('.ghost').filter({ hasText: witness });
  const [KUBELET, API] = [/kubelet's own status/, /API server/];

  /** From when until when something is drawn on an axis from 0 to 600 s, to the pixel, in seconds. */
  async function drawn(page: Page, shape: Locator): Promise<[from: number, to: number]> {
    const svg = await page.locator('.timeline svg').getAttribute('width');
    const [x, width] = await Promise.all(['x', 'width'].map((name) => shape.first().getAttribute(name)));
    const seconds = (px: number) => ((px - 190) / (Number(svg) - 198)) * 600;
    return [seconds(Number(x)), seconds(Number(x) + Number(width))];
  }
  const isAbout = (seconds: readonly number[], expected: readonly number[]) =>
    expect(seconds.map((each, n) => Math.abs(each - (expected[n] ?? Number.NaN)) < 1)).toEqual(
      expected.map(() => true),
    );

  test('a dead container that looked alive has a solid life and a trail of each witness as long as SQL says, which leads to the finding', async () => {
    const tab = await browser.open(address(0, 600));
    const { page } = tab;
    const cart = pod(page, 'cart-7');
    await cart.getByText('kubelet: looked alive for 28 to 33 s').waitFor();
    await cart.getByText('API server: looked alive for about 35 s').waitFor();
    const [stored] = await query<
      Record<'kubelet_at_least_ms' | 'kubelet_at_most_ms' | 'lag_min_ms' | 'lag_max_ms', number>
    >(
      databaseUrl,
      'SELECT kubelet_at_least_ms, kubelet_at_most_ms, lag_min_ms, lag_max_ms FROM plegwatch.findings WHERE finding_id = $1',
      [missedId(1)],
    );
    if (stored === undefined) throw new Error('the finding is not stored');
    const after = (ms: number) => 121 + ms / 1000;
    isAbout(await drawn(page, cart.locator('.life-running').nth(1)), [32, 121]);
    for (const [witness, least, most] of [
      [KUBELET, stored.kubelet_at_least_ms, stored.kubelet_at_most_ms],
      [API, stored.lag_min_ms, stored.lag_max_ms],
    ] as const) {
      isAbout(await drawn(page, trail(cart, witness).locator('.ghost-proven')), [121, after(least)]);
      isAbout(await drawn(page, trail(cart, witness).locator('.ghost-bed')), [121, after(most)]);
    }
    await page
      .getByRole('cell', { name: /kubelet: looked alive for 28 to 33 s; API server: looked alive/ })
      .waitFor();
    expect(await tab.barriers()).toEqual([]);
    await trail(cart, API).locator('.ghost-proven').click();
    await page.getByRole('heading', { level: 1, name: 'missed STOPPED' }).waitFor();
    await tab.close();
  });

  test('unobserved times are drawn as such: a kubelet that was not watched, an end that nobody saw, lives while lists failed', async () => {
    const tab = await browser.open(address(0, 600), { colorScheme: 'dark' });
    const { page } = tab;
    const pay = pod(page, 'pay-1');
    await pay.getByText('kubelet: not observed').waitFor();
    await pay.getByText('API server: looked alive for at least 61 s').waitFor();
    expect(await trail(pay, KUBELET).locator('.ghost-proven').count()).toBe(0);
    expect(await trail(pay, API).locator('title').textContent()).toContain(
      'when it showed the stop is not known: the API server did not show the change for as long as it was asked (timed_out).',
    );
    const cart = pod(page, 'cart-7');
    isAbout(await drawn(page, cart.locator('.life-running').last()), [156, 450]);
    const [from] = await drawn(page, cart.locator('.life-unobserved').last());
    isAbout([from], [450]);
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('a time that an agent recorded before its first batch was stored is observed, and no picture says that there was no agent', async () => {
    const tab = await browser.open(address(2, 440));
    const { page } = tab;
    await page
      .locator('.timeline svg')
      .getByText(/^no gap/)
      .waitFor();
    expect(await page.getByText(/^observed since/).textContent()).toContain(
      new Date(began).toISOString().slice(11, 19),
    );
    await tab.close();
  });

  test('a stop whose event was missed and that the kubelet showed at once is no ghost', async () => {
    const tab = await browser.open(address(0, 600));
    const mail = pod(tab.page, 'mail-0');
    await mail.getByText('kubelet: showed it within 900 ms').waitFor();
    await mail.getByText('API server: showed it within 1.6 s').waitFor();
    expect(await mail.locator('.ghost-late').count()).toBe(0);
    expect(await mail.locator('.ghost-harmless').count()).toBe(2);
    await tab.close();
  });

  test('pods of which nothing missed or late is known are folded behind their number', async () => {
    const tab = await browser.open(address(0, 600));
    const { page } = tab;
    await page.getByText('3 other pods changed; nothing missed or late is known of them.').waitFor();
    expect(await pod(page, 'web-5').count()).toBe(0);
    await page.getByRole('button', { name: 'Show them' }).click();
    await pod(page, 'web-5').waitFor();
    expect(
      await page
        .locator('.timeline .row-name')
        .filter({ hasText: /^shop\// })
        .count(),
    ).toBe(6);
    await tab.close();
  });

  test('a ghost is seen in a period after the end of its container, whose life is whole', async () => {
    const tab = await browser.open(address(125, 150));
    const cart = pod(tab.page, 'cart-7');
    await cart.getByText(/^API.*about 35 s$/).waitFor();
    expect(await cart.locator('.life-exited').count()).toBeGreaterThan(0);
    await tab.close();
  });

  test('on a narrow page the words stay within the drawing', async () => {
    const tab = await browser.open(address(0, 600), { width: 360 });
    const { page } = tab;
    await pod(page, 'pay-1')
      .getByText(/^API: ≥ 61 s$/)
      .waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    const names = page.locator('.timeline .ghost-name');
    const boxes = await Promise.all((await names.all()).map((name) => name.boundingBox()));
    const inside = boxes.map((box) => box !== null && box.x >= 0 && box.x + box.width <= 360);
    expect(inside).not.toContain(false);
    expect(inside.length).toBeGreaterThan(3);
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });
});
