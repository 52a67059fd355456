/*
 * The questions that people bring to the page, in a real browser, on the real server and a Postgres with a week of two clusters. What the page
 * shows is held against SQL and against what the terminal prints.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { CLI } from '../support/build.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';
import { until } from '../support/waitFor.ts';

const MINUTE = 60_000;

let server: TestServer;
let databaseUrl: string;
let ui: LocalPlegwatch;
let browser: TestBrowser;
let origin: string;
/** When the kubelet of east-003 fell back, at 03:12 some days ago. */
let fellBack: Date;

needs('postgres', 'chromium')('the questions that people bring to the page', () => {
  beforeAll(async () => {
    [server, browser] = await Promise.all([startServer(), startBrowser()]);
    databaseUrl = await server.database();
    await writeHistory(databaseUrl, { nodes: 6, days: 7, lives: 24, step: 600 });
    const [found] = await query<{ from_at: Date }>(
      databaseUrl,
      `SELECT from_at FROM plegwatch.fallback_intervals WHERE node = 'east-003'`,
    );
    if (found === undefined) throw new Error('the history has no fallback');
    fellBack = found.from_at;
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    const settings = { databaseUrl, pageAddress: `127.0.0.1:${port}` };
    ui = await startPlegwatch({ cli: CLI, command: 'ui', settings });
  });
  afterAll(async () => {
    await Promise.all([ui?.stop(), browser?.stop()]);
    await server?.stop();
  });

  const open = (hash: string, options?: Parameters<TestBrowser['open']>[1]) =>
    browser.open(`${origin}/${hash}`, options);
  const periodOf = (url: string) => {
    const values = new URLSearchParams(url.split('?')[1]);
    return ['from', 'to'].map((name) => Date.parse(values.get(name) ?? '') - fellBack.getTime());
  };
  /** The time as a reader would say it, days ago. */
  const daysAgo = () =>
    `-${Math.round((Date.parse(new Date().toISOString().slice(0, 10)) - Date.parse(fellBack.toISOString().slice(0, 10))) / 86_400_000)}d 03:12`;

  test('a time that is typed is shown in the middle, wherever the browser is, and the link shows the same', async () => {
    const tab = await open('#/node/east/east-003', { width: 360, colorScheme: 'dark' });
    const { page } = tab;
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Kolkata' });
    await page.reload();
    const field = page.getByLabel('Go to (UTC)');
    await field.fill(daysAgo());
    await page.keyboard.press('Enter');
    await until(() => page.url().includes('from='));
    expect(periodOf(page.url())).toEqual([-15 * MINUTE, 15 * MINUTE]);
    const [mode] = await query<{ to_mode: string; kubelet_version: string }>(
      databaseUrl,
      `SELECT to_mode, kubelet_version FROM plegwatch.mode_changes WHERE node = 'east-003' AND at = $1`,
      [fellBack],
    );
    expect(mode?.to_mode).toBe('Fallback');
    const shown = page.getByRole('application', { name: /, mode Fallback\./ });
    await shown.waitFor();
    expect(await tab.barriers()).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    const link = page.url();
    await page.goto('about:blank');
    await page.goto(link);
    await shown.waitFor();
    await tab.close();
  });

  test('what is no time is refused in words, and the drawing stays', async () => {
    const tab = await open('#/node/east/east-003');
    const { page } = tab;
    const before = page.url();
    await page.getByLabel('Go to (UTC)').fill('yesterday <b>');
    await page.keyboard.press('Enter');
    await page
      .getByRole('alert')
      .getByText(/^Write a time such as/)
      .waitFor();
    expect(page.url()).toBe(before);
    expect(await tab.barriers()).toEqual([]);
    await page.getByLabel('Go to (UTC)').fill('-3650d 03:12');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await page.getByText(/^The first agent reported at .*, after this period\.$/).waitFor();
    await tab.close();
  });

  test('a stretch that is dragged over the axis becomes the period, and Escape, the button and the browser lead back', async () => {
    const [from, to] = [-60, 60].map((minutes) =>
      new Date(fellBack.getTime() + minutes * MINUTE).toISOString(),
    );
    const tab = await open(`#/node/east/east-003?from=${from}&to=${to}`);
    const { page } = tab;
    const drawing = page.getByRole('application', { name: /^Timeline of / });
    const axis = drawing.locator('.axis');
    const whole = [-60 * MINUTE, 60 * MINUTE];
    const drag = async () => {
      const box = await axis.boundingBox();
      if (box === null) throw new Error('the axis is not drawn');
      const y = box.y + box.height / 2;
      // The right edge of the drawing has a margin of eight pixels.
      const x = (part: number) => box.x + (box.width - 8) * part;
      await page.mouse.move(x(0.75), y);
      await page.mouse.down();
      await page.mouse.move(x(0.5), y, { steps: 4 });
      await page.locator('rect.stretch').waitFor();
      await page.mouse.move(x(0.25), y, { steps: 4 });
      await page.mouse.up();
      await page.locator('rect.stretch').waitFor({ state: 'detached' });
      const [first = 0, last = 0] = periodOf(page.url());
      // To the pixel.
      expect(Math.abs(first + 30 * MINUTE)).toBeLessThan(MINUTE / 2);
      expect(Math.abs(last - 30 * MINUTE)).toBeLessThan(MINUTE / 2);
    };
    await drag();
    await drawing.focus();
    await page.keyboard.press('Escape');
    await until(() => String(periodOf(page.url())) === String(whole));
    await drag();
    expect(await tab.barriers()).toEqual([]);
    await page.getByRole('button', { name: 'Back' }).click();
    await until(() => String(periodOf(page.url())) === String(whole));
    await drag();
    await page.goBack();
    await until(() => String(periodOf(page.url())) === String(whole));
    expect(await page.getByRole('button', { name: 'Back' }).count()).toBe(0);
    await tab.close();
  });
});
