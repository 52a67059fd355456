/*
 * The page of `plegwatch ui` in a real browser, on the real server and a Postgres with a week of two clusters. A tab with a request to
 * elsewhere, an error or a violation of the content security policy cannot be closed.
 */
import { readFileSync } from 'node:fs';
import type { Route } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import type { ErrorAnswer, TimelineAnswer } from '../../src/ui/api.ts';
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
      `INSERT INTO store.ingest SELECT cluster_id, now() - interval '1 hour', now() + interval '1 day' FROM store.cluster`,
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
    await page.getByRole('button', { name: 'Mode unknown 2', exact: true }).waitFor();
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
    const drawing = await fileOf('Readiness for Evented PLEG by pool as SVG');
    expect(drawing).toMatch(/^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
    expect(drawing).not.toContain('class=');
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('the name of a pool leads to it, from the hours and from readiness, where pools of one name are those of all clusters', async () => {
    const tab = await browser.open(`${origin}/#/hours`);
    const { page } = tab;
    await page.locator('.pool-hours .opens', { hasText: 'east / general' }).click();
    await page.getByRole('heading', { level: 1, name: 'Pool general of east' }).waitFor();
    await page.goto(`${origin}/#/versions`);
    await page.locator('.plot-frame .opens', { hasText: 'crio, 2 clusters' }).click();
    await page.getByRole('heading', { level: 1, name: 'Pool crio', exact: true }).waitFor();
    await page.goto(`${origin}/#/hours`);
    await page.getByRole('application', { name: /^The fleet by hour/ }).focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await page
      .getByRole('heading', { level: 1, name: /^(Pool .* of|Nodes without a pool of) (east|west)$/ })
      .waitFor();
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

  test('a reader without rights is asked for a token, which stays in the tab', async () => {
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

  test('a node without an agent shows what to do instead of empty rows', async () => {
    const tab = await browser.open(`${origin}/#/node/east/east-idle`);
    const { page } = tab;
    await page.getByText('This node never had an agent.').waitFor();
    await page.getByText('--field-selector spec.nodeName=east-idle').waitFor();
    expect(await page.locator('.timeline').count()).toBe(0);
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  /** Findings of a node two hours ago, as many as these. */
  const addFindings = (node: string, kind: string, many: number) =>
    query(
      databaseUrl,
      `INSERT INTO store.finding (finding_id, detected_at, day, node_id, context_id, seq, cluster_id, kind, event_type, cause, container_id, pod_uid,
                                  pod_namespace, pod_name, container_name, window_from, window_to, proof)
       SELECT gen_random_uuid(), t.at, (t.at AT TIME ZONE 'UTC')::date, n.node_id, n.context_id, 900000000 + i, n.cluster_id, $2, 'STOPPED',
              'unannounced_by_list', 'ab', 'uid-a', 'shop', 'cart', 'app', t.at - interval '40 seconds', t.at - interval '35 seconds', '{"v": 1}'
       FROM store.node n, generate_series(1, $3::int4) AS i,
            LATERAL (SELECT now() - interval '2 hours' + i * interval '10 ms' AS at) t WHERE n.name = $1`,
      [node, kind, many],
    );

  test('misses of a node stay after its agent went silent: in the figure, as a cell, and before nodes that are well', async () => {
    await addFindings('east-006', 'missed', 349);
    const [expected] = await query<{ missed: string; own: string }>(
      databaseUrl,
      `SELECT count(*) AS missed, count(*) FILTER (WHERE node = 'east-006') AS own FROM plegwatch.findings
       WHERE kind = 'missed' AND resolved_at IS NULL AND detected_at > now() - interval '24 hours'`,
    );
    const tab = await browser.open(`${origin}/#/fleet?colour=misses`);
    const { page } = tab;
    const figure = page.locator('.tile', { hasText: 'Missed events' }).locator('.summary-value');
    await figure.getByText(Number(expected?.missed).toLocaleString('en-US'), { exact: true }).waitFor();
    await page.getByRole('button', { name: '100 or more 1', exact: true }).waitFor();
    const first = page.locator('tbody tr').first();
    expect(await first.getByRole('rowheader').textContent()).toBe('east-006');
    expect(await first.getByRole('cell').nth(3).textContent()).toBe(expected?.own);
    expect(await tab.barriers()).toEqual([]);
    await page.goto(`${origin}/#/fleet?colour=completeness`);
    await page.locator('.cell-lossy').first().waitFor();
    await tab.close();
  });

  test('the figure of what is not watched leads to exactly these nodes, counted by reason', async () => {
    const tab = await browser.open(`${origin}/`);
    const { page } = tab;
    const tile = page.locator('.tile', { hasText: 'Not watched now' });
    const value = await tile.locator('.summary-value').textContent();
    expect(value).toBe('2');
    await tile.click();
    await page.getByRole('heading', { name: `Nodes, the worst first ${value}`, exact: true }).waitFor();
    for (const name of ['Agent silent 1', 'No agent 1'])
      await page.getByRole('button', { name, exact: true, pressed: true }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: `Nodes, the worst first ${value}`, exact: true }).waitFor();
    await tab.close();
  });

  test('a node whose list hangs is counted, comes first in the table, and says what holds it up', async () => {
    const today = "(now() AT TIME ZONE 'UTC')::date";
    await query(
      databaseUrl,
      `SELECT store.make_partition(name, ${today}) FROM unnest('{relist_minute,container}'::text[]) name`,
    );
    const [held] = await query<{ container_key: string; named: string }>(
      databaseUrl,
      `INSERT INTO store.container
       SELECT (jsonb_populate_record(o, jsonb_build_object('day', ${today}))).* FROM store.container o JOIN store.node n USING (node_id)
       WHERE n.name = 'east-005' AND o.container_name <> '' ORDER BY o.day DESC LIMIT 1
       RETURNING container_key, concat_ws('/', pod_namespace, pod_name, container_name) AS named`,
    );
    await query(
      databaseUrl,
      `INSERT INTO store.relist_minute
       SELECT (jsonb_populate_record(m, jsonb_build_object('minute', now() - interval '1 minute', 'ended_at', now(), 'day', ${today}, 'seq', 999999999,
         'hang_from', now(), 'hang_call', 'ListContainers', 'hang_verdict', 'container', 'slow_status_key', $1::int8))).*
       FROM store.relist_minute m JOIN store.node n USING (node_id) WHERE n.name = 'east-005' ORDER BY m.ended_at DESC LIMIT 1`,
      [held?.container_key],
    );
    const tab = await browser.open(`${origin}/`);
    const { page } = tab;
    const tile = page.locator('.tile', { hasText: 'Held up now' });
    await tile.locator('.summary-value').getByText('1', { exact: true }).waitFor();
    await tile.click();
    await page.getByRole('button', { name: 'Hang 1', exact: true, pressed: true }).waitFor();
    const row = page.locator('tbody tr');
    expect(await row.getByRole('rowheader').allTextContents()).toEqual(['east-005']);
    expect(await row.getByText(held?.named ?? 'no container', { exact: true }).count()).toBe(1);
    expect(await tab.barriers()).toEqual([]);
    await page.goto(`${origin}/#/fleet?colour=mode`);
    await page.getByRole('heading', { name: /^Nodes, the worst first/ }).waitFor();
    const names = await page.locator('tbody tr').getByRole('rowheader').allTextContents();
    await query(databaseUrl, 'DELETE FROM store.relist_minute WHERE seq = 999999999');
    expect(names.indexOf('east-005')).toBeLessThan(names.indexOf('east-004'));
    await tab.close();
  });

  test('the event stream of a silent agent is drawn until it was last heard of, and no further', async () => {
    // However long the tests before took.
    await query(
      databaseUrl,
      `UPDATE store.node SET last_seen = now() - interval '1 hour' WHERE name = 'east-006'`,
    );
    const tab = await browser.open(`${origin}/#/node/east/east-006?last=14400`);
    const { page } = tab;
    const drawn = page.locator('.timeline path.watched');
    await drawn.first().waitFor();
    const paths = await drawn.evaluateAll((all) => all.map((path) => path.getAttribute('d') ?? ''));
    const right = Math.max(
      ...paths.flatMap((path) => [...path.matchAll(/H([\d.]+)v/g)].map(([, x]) => Number(x))),
    );
    const width = await page.locator('.timeline svg').evaluate((svg) => Number(svg.getAttribute('width')));
    // An hour of the four, right of the names.
    expect((right - 190) / (width - 8 - 190)).toBeCloseTo(0.75, 1);
    await page
      .getByText(/^nothing observed: no agent, from .*: its agent is silent$/)
      .waitFor({ state: 'attached' });
    await page.getByText(/^Its agent has not reported for 1 h/).waitFor();
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('a period that nobody observed has no gap and no finding to speak of', async () => {
    const tab = await browser.open(
      `${origin}/#/node/east/east-001?from=2090-01-01T00:00:00Z&to=2090-01-02T00:00:00Z`,
    );
    const { page } = tab;
    await page.getByText('not yet', { exact: true }).waitFor();
    await page.getByText('This period is still to come.').waitFor();
    await page.getByText('Nothing is stored of this period, so nothing was found.').waitFor();
    expect(await page.getByText('no gap').count()).toBe(0);
    expect(await page.getByText(/every event that was due was received/).count()).toBe(0);
    await tab.close();
  });

  test('where more is stored than can be drawn, the drawing and the heading say so', async () => {
    await addFindings('west-001', 'duplicate', 2_001);
    await query(
      databaseUrl,
      `INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at)
       SELECT gen_random_uuid(), n.node_id, n.cluster_id, e.epoch, 'stream', 'broken', t.at, t.at + interval '1 second'
       FROM store.node n JOIN store.epoch e USING (node_id),
            LATERAL (SELECT now() - interval '3 hours' + i * interval '2 seconds' AS at FROM generate_series(1, 2500) AS i) t
       WHERE n.name = 'west-001'`,
    );
    const tab = await browser.open(`${origin}/#/node/west/west-001?last=14400`, { colorScheme: 'dark' });
    const { page } = tab;
    await page
      .getByText(/^This period has more than can be drawn; some are left out: gaps until .*, findings until /)
      .waitFor();
    await page.locator('.timeline rect.cut').first().waitFor();
    await page.getByRole('heading', { name: 'Findings in this period 2,000 or more' }).waitFor();
    await tab.close();
  });

  test('a miss that was resolved is called missed nowhere in its report', async () => {
    const [resolved] = await query<{ finding_id: string }>(
      databaseUrl,
      `SELECT finding_id FROM plegwatch.findings WHERE kind = 'missed' AND resolved_at IS NOT NULL LIMIT 1`,
    );
    const tab = await browser.open(`${origin}/#/finding/${resolved?.finding_id}`);
    const { page } = tab;
    await page.getByRole('heading', { level: 1, name: 'overdue STOPPED, resolved' }).waitFor();
    await page.getByText('Read the report').click();
    const report = await page.locator('.sharing pre').textContent();
    expect(report).toMatch(/^# overdue STOPPED, resolved: /);
    // The limits of the agent have a setting of that name.
    expect(report?.replaceAll('missed after', '')).not.toMatch(/missed|did not send|held back/);
    await tab.close();
  });

  test('a hit of a search names its cluster where there are several', async () => {
    const tab = await browser.open(`${origin}/#/fleet?search=${missed.pod_name}`);
    const hits = tab.page.locator('.hits li');
    await hits.first().waitFor();
    const texts = await hits.allTextContents();
    expect(texts.every((text) => /on .*, cluster (east|west)$/.test(text))).toBe(true);
    expect(new Set(texts).size).toBe(texts.length);
    await tab.close();
  });

  test('the filter of containers narrows the flags of missed events and the table of findings', async () => {
    const tab = await browser.open(`${origin}/${around(120)}`);
    const { page } = tab;
    await page.locator('.miss-flag').first().waitFor();
    await page.getByLabel('Only containers of').fill('no-such-pod');
    await page.getByText('None with “no-such-pod” in its name or id.').waitFor();
    expect(await page.locator('.miss-flag').count()).toBe(0);
    await page.getByLabel('Only containers of').fill(missed.pod_name);
    await page.locator('.miss-flag').first().waitFor();
    await tab.close();
  });

  test('a finding that a wrong clock dates after it was found is where it was found', async () => {
    const [found] = await query<{ finding_id: string; detected_at: Date }>(
      databaseUrl,
      `UPDATE store.finding f SET occurred_at = f.detected_at + interval '1 hour' FROM store.node n
       WHERE n.node_id = f.node_id AND n.name = 'west-003' AND f.kind = 'short_life' AND f.detected_at = (
         SELECT min(detected_at) FROM store.finding x WHERE x.node_id = f.node_id AND x.kind = 'short_life')
       RETURNING f.finding_id, f.detected_at`,
    );
    const at = found?.detected_at.getTime() ?? 0;
    const [from, to] = [at - 60_000, at + 60_000].map((ms) => new Date(ms).toISOString());
    const tab = await browser.open(`${origin}/#/node/west/west-003?from=${from}&to=${to}`);
    await tab.page.getByRole('link', { name: 'short_life' }).waitFor();
    await tab.page.locator('path.note').first().waitFor();
    await tab.close();
  });

  test('a browser whose clock is two hours ahead is answered what it shows', async () => {
    const tab = await browser.open('about:blank');
    const { page } = tab;
    await page.clock.setFixedTime(Date.now() + 7_200_000);
    const answered = page.waitForResponse(/api\/timeline/);
    await page.goto(`${origin}/#/node/east/east-001?last=3600`);
    const { now, from, to } = (await (await answered).json()) as TimelineAnswer;
    expect(Date.parse(from)).toBeLessThanOrEqual(Date.parse(now) - 3_600_000);
    expect(Date.parse(to)).toBeGreaterThanOrEqual(Math.floor(Date.parse(now)));
    await tab.close();
  });

  test('a time without a zone in the address is UTC, wherever the browser is', async () => {
    const tab = await browser.open('about:blank');
    const { page } = tab;
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Kolkata' });
    await page.goto(`${origin}/#/node/east/east-001?from=2026-11-22T03:12&to=2026-11-22%2003:13`);
    await page.getByText('2026-11-22 03:12:00 – 03:13:00 UTC').waitFor();
    await tab.close();
  });

  test('a keyboard begins at each new view, and stays where it is while a view moves', async () => {
    const tab = await browser.open(`${origin}/#/fleet?search=east-001`);
    const { page } = tab;
    const focused = () => page.evaluate('document.activeElement.tagName');
    await page.getByRole('searchbox', { name: 'Search' }).focus();
    await page.getByRole('searchbox', { name: 'Search' }).fill('east-00');
    expect(await focused()).toBe('INPUT');
    await page.getByRole('link', { name: 'east-001' }).click();
    await page.getByRole('heading', { level: 1, name: 'east-001' }).waitFor();
    expect(await focused()).toBe('MAIN');
    await page.getByRole('application', { name: /^Timeline of / }).focus();
    await page.keyboard.press('+');
    await until(() => page.url().includes('from='));
    expect(await focused()).toBe('DIV');
    await tab.close();
  });

  test('the chosen button is told apart also in the colours that a system forces', async () => {
    const tab = await browser.open(`${origin}/#/node/east/east-001?last=3600`);
    const { page } = tab;
    await page.getByRole('button', { name: '1 h', exact: true, pressed: true }).waitFor();
    await page.emulateMedia({ forcedColors: 'active' });
    const colourOf = (name: string) =>
      page.evaluate(
        `getComputedStyle([...document.querySelectorAll('button')].find(({ textContent }) => textContent === '${name}')).backgroundColor`,
      );
    expect(await colourOf('1 h')).not.toEqual(await colourOf('6 h'));
    await tab.close();
  });

  test('a name of 253 characters pushes no column out', async () => {
    const long = 'n'.repeat(253);
    await query(databaseUrl, `UPDATE store.node SET name = $1 WHERE name = 'west-004'`, [long]);
    const tab = await browser.open(`${origin}/#/fleet`);
    const { page } = tab;
    await page.getByRole('link', { name: long }).waitFor();
    const box = await page.getByRole('columnheader', { name: 'Kubelet' }).boundingBox();
    expect((box?.x ?? Number.POSITIVE_INFINITY) + (box?.width ?? 0)).toBeLessThan(1280);
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
