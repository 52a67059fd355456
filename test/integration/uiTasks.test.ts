/*
 * The questions that people bring to the page, in a real browser, on the real server and a Postgres with a week of two clusters. The contents of the
 * page are held against SQL and against the terminal.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import type { FleetAnswer } from '../../src/ui/api.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { CLI } from '../support/build.ts';
import { plegwatch } from '../support/commandLine.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';
import { until, waitFor } from '../support/waitFor.ts';

const MINUTE = 60_000;
/** A Node cannot have such a name, and a row in the database can. */
const HOSTILE = '<img src=x onerror="document.title=1">\u202egnp';

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
    await query(
      databaseUrl,
      `UPDATE store.node SET last_seen = now() + interval '1 day' WHERE last_seen IS NOT NULL`,
    );
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

  test('a text that is no time is refused in words, and the drawing stays', async () => {
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

  test('a time that a file does not have is refused with the period that it has', async () => {
    const folder = temporaryFolder('uiTasks', undefined);
    const file = join(folder.dir, 'incident.html');
    const [from, to] = [-60, 60].map((minutes) =>
      new Date(fellBack.getTime() + minutes * MINUTE).toISOString(),
    );
    const written = await plegwatch([
      ...['timeline', 'east-003', '--database-url', databaseUrl, '--from', `${from}`, '--to', `${to}`],
      ...['--html', file],
    ]);
    expect([written.code, written.stderr]).toEqual([0, '']);
    const tab = await browser.open(`file://${file}`);
    const { page } = tab;
    const field = page.getByLabel('Go to (UTC)');
    await field.fill('2020-01-01 03:12');
    await page.keyboard.press('Enter');
    await page
      .getByRole('alert')
      .getByText(/^This file has only .* 02:12:00 – 04:12:00 UTC\.$/)
      .waitFor();
    await field.fill(fellBack.toISOString());
    await page.keyboard.press('Enter');
    await page.getByText(/ 02:57:00 – 03:27:00 UTC/).waitFor();
    await tab.close();
    folder.remove();
  });

  test('a list that hung is shown with the name of the container that it waited for', async () => {
    await query(
      databaseUrl,
      `UPDATE store.relist_minute m
       SET hang_from = m.minute, hang_to = m.ended_at, hang_call = 'ListContainers', hang_verdict = 'container', hang_waited_us = 200000000,
           hang_listed = 40, hang_asked = 9, hang_quick = 8, hang_unanswered = 1, slow_status_key = o.container_key
       FROM store.container o
       WHERE o.node_id = m.node_id AND o.day = m.day AND o.container_name = 'app' AND m.minute <= $1 AND m.ended_at > $1
         AND m.node_id = (SELECT node_id FROM store.node WHERE name = 'east-003')`,
      [fellBack],
    );
    const [hang] = await query<{ pod: string; why: string }>(
      databaseUrl,
      `SELECT pod_namespace || '/' || pod_name AS pod, why FROM plegwatch.list_hangs WHERE node = 'east-003' AND verdict = 'container'`,
    );
    const from = new Date(fellBack.getTime() - 15 * MINUTE).toISOString();
    const to = new Date(fellBack.getTime() + 15 * MINUTE).toISOString();
    const tab = await open(`#/node/east/east-003?from=${from}&to=${to}`);
    const rows = tab.page.getByLabel('Lists that hung', { exact: true }).locator('tbody tr');
    await rows.first().waitFor();
    expect(await rows.count()).toBe(1);
    expect(await rows.locator('td').allTextContents()).toEqual([
      ...[expect.any(String), expect.any(String)],
      ...[`${hang?.pod} app`, hang?.why],
    ]);
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  /** The rows of a table as it is saved: the fields of each. */
  const savedRows = async (page: Page, name: string) => {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: `${name} as CSV` }).click(),
    ]);
    const [head = '', ...lines] = readFileSync(await download.path(), 'utf8')
      .trimEnd()
      .split('\n');
    return { fields: head.split(','), lines };
  };

  /** Stores nodes that are not observed for different reasons, each by what a controller or an agent stores. */
  const stopObserving = async () => {
    const state = (node: string, set: string) =>
      query(
        databaseUrl,
        `UPDATE store.node_state s SET ${set} FROM store.node n WHERE n.node_id = s.node_id AND n.name = $1`,
        [node],
      );
    await state('east-002', `mode = 'Unknown', mode_reason = 'NotObserved', kubelet_error = 'Forbidden'`);
    await state(
      'west-003',
      `mode = 'Unknown', mode_reason = 'NotObserved', kubelet_error = 'Forbidden', stream_state = 'Starved'`,
    );
    await state('east-004', `stream_state = 'Interrupted'`);
    await state(
      'east-005',
      `relist_healthy = false, relist_reason = 'the list failed: <img src=x onerror="document.title=1">'`,
    );
    await query(
      databaseUrl,
      `UPDATE store.node SET last_seen = now() - interval '1 hour' WHERE name IN ('east-006', 'west-006')`,
    );
    await query(
      databaseUrl,
      `DELETE FROM store.node_state s USING store.node n WHERE n.node_id = s.node_id AND n.name = 'west-001'`,
    );
    await query(databaseUrl, `UPDATE store.node SET name = $1 WHERE name = 'west-006'`, [HOSTILE]);
    // Everything that agents of the cluster east sent is stored; nobody says so of west.
    await query(
      databaseUrl,
      `INSERT INTO store.ingest SELECT cluster_id, now() - interval '1 hour', now() + interval '1 day' FROM store.cluster WHERE name = 'east'`,
    );
    await query(
      databaseUrl,
      `INSERT INTO store.relist_minute
       SELECT (jsonb_populate_record(m, jsonb_build_object('minute', now() - interval '1 minute', 'ended_at', now(), 'seq', 999999999,
         'day', (now() AT TIME ZONE 'UTC')::date, 'hang_from', now() - interval '4 minutes', 'hang_call', 'ListContainers', 'hang_verdict', 'runtime',
         'hang_waited_us', 1, 'hang_listed', 1, 'hang_asked', 1, 'hang_quick', 1, 'hang_unanswered', 0))).*
       FROM store.relist_minute m JOIN store.node n USING (node_id) WHERE n.name = 'west-004' ORDER BY m.ended_at DESC LIMIT 1`,
    );
  };

  interface ReportList {
    readonly items: readonly {
      readonly metadata: { readonly name: string };
      readonly status: { readonly conditions: readonly { type: string; status: string; reason: string }[] };
    }[];
  }

  /** The unobserved parts by the terminal's reports: `node what reason`. */
  const unobservedByReports = async () => {
    const { stdout } = await plegwatch(['report', '--database-url', databaseUrl, '-o', 'json']);
    const { items } = JSON.parse(stdout) as ReportList;
    return items.flatMap(({ metadata, status }) => {
      const of = (type: string) => status.conditions.find((each) => each.type === type);
      const [agent, stream] = [of('AgentReporting'), of('StreamConnected')];
      const whole = agent?.status === 'True' ? (stream?.reason === 'NoEvidence' ? stream : undefined) : agent;
      if (whole !== undefined) return [`${metadata.name} everything ${whole.reason}`];
      return [
        ['events', stream, stream?.status !== 'True'] as const,
        ['lists', of('RelistHealthy'), of('RelistHealthy')?.status !== 'True'] as const,
        ['mode', of('EventedPLEGInUse'), of('EventedPLEGInUse')?.status === 'Unknown'] as const,
      ].flatMap(([what, condition, isUnobserved]) =>
        isUnobserved ? [`${metadata.name} ${what} ${condition?.reason}`] : [],
      );
    });
  };

  test('the nodes that are not observed are counted by reason, as the reports of the terminal say, and each reason has exactly its nodes', async () => {
    const calm = await open('#/fleet');
    await calm.page.getByRole('link', { name: 'Not observed' }).click();
    // East-idle never had an agent, and nobody says whether one of it waits.
    await calm.page.getByRole('button', { name: 'everything: IngestBehind 1' }).waitFor();
    await calm.close();
    await stopObserving();
    const expected = (await unobservedByReports()).sort();
    const nodes = await query<{ node: string }>(
      databaseUrl,
      `SELECT node FROM plegwatch.nodes WHERE stream_state <> 'Active' OR relist_healthy IS NOT TRUE OR mode = 'Unknown'
       UNION SELECT node FROM plegwatch.list_hangs WHERE to_at IS NULL`,
    );
    const tab = await open('#/unobserved');
    const { page } = tab;
    await page.getByText(`${nodes.length} of 13 nodes, in whole or in part`).waitFor();
    const { fields, lines } = await savedRows(page, 'Nodes');
    expect(fields).toEqual('node,not_observed,reason,since,message,pool,cluster,last_seen'.split(','));
    const known = (text: string) =>
      expected
        .find((each) => each.startsWith(`${text} `))
        ?.split(' ')
        .slice(-2)
        .join(' ');
    for (const node of [
      'east-002',
      'east-004',
      'east-005',
      'east-006',
      'east-idle',
      'west-001',
      'west-004',
      HOSTILE,
    ])
      expect([node, known(node)]).toEqual([node, expect.any(String)]);
    expect(new Set(expected.map((each) => each.split(' ').at(-1)))).toEqual(
      new Set([
        'NotObserved',
        'Interrupted',
        'ListsFailing',
        'AgentSilent',
        'NeverSeen',
        'IngestBehind',
        'NoEvidence',
        'ListHangs',
        'Starved',
      ]),
    );
    // Neither the quotes of a hostile name nor a comma of a reason makes a field of its own here.
    const saved = lines.map((line) => {
      const [, name = '', what, reason] = /^("(?:[^"]|"")*"|[^,]*),(\w+),"?(\w+)/.exec(line) ?? [];
      return `${name.replaceAll(/^"|"$/g, '').replaceAll('""', '"')} ${what} ${reason}`;
    });
    // A file may be shown in a terminal, so it spells out what turns the direction of text.
    expect(saved.sort()).toEqual(expected.map((each) => each.replaceAll('\u202e', '\\u202e')));
    // The fleet says of each agent what its report says.
    const states = Object.fromEntries(
      expected.flatMap((each) => {
        const [, node = '', reason = ''] = /^(.*) everything (\w+)$/.exec(each) ?? [];
        return node === '' ? [] : [[node, reason === 'NoEvidence' ? 'NotReportedYet' : reason]];
      }),
    );
    await waitFor('the fleet is read again', async () => {
      const answer = (await (await fetch(`${origin}/api/fleet`)).json()) as FleetAnswer;
      const agents = answer.nodes.filter(({ agent }) => agent !== 'Reporting');
      return isDeepStrictEqual(Object.fromEntries(agents.map(({ node, agent }) => [node, agent])), states);
    });

    await page.getByRole('button', { name: 'mode of the kubelet: NotObserved, Forbidden 2' }).click();
    await page.getByRole('heading', { name: 'Nodes 2', exact: true }).waitFor();
    const shown = () => page.locator('tbody th').allTextContents();
    expect(await shown()).toEqual(['east-002', 'west-003']);
    await page.getByText("The agent cannot read the kubelet's metrics: Forbidden.").first().waitFor();
    await page.getByRole('button', { name: 'Node', exact: true }).press('Enter');
    expect(await shown()).toEqual(['east-002', 'west-003']);
    await page.getByRole('button', { name: 'Node ↑', exact: true }).press('Enter');
    expect(await shown()).toEqual(['west-003', 'east-002']);
    await page.getByRole('columnheader', { name: 'Node ↓' }).waitFor();
    expect((await savedRows(page, 'Nodes')).lines.map((line) => line.slice(0, 8))).toEqual([
      'west-003',
      'east-002',
    ]);
    await page.reload();
    await page.getByRole('heading', { name: 'Nodes 2', exact: true }).waitFor();
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('a hostile name among what is not observed is text, on a narrow page in the dark, and leads to where its evidence ends', async () => {
    const tab = await open('#/unobserved', { width: 360, colorScheme: 'dark' });
    const { page } = tab;
    await page.getByText('the list failed: <img').waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(await tab.barriers()).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await page.getByRole('link', { name: /<img src=x/ }).click();
    await page.getByRole('heading', { level: 1, name: /<img/ }).waitFor();
    await page.getByText(/^Its agent has not reported for 1 h/).waitFor();
    await tab.close();
  });

  test('that no node has the chosen reason is said, and what was left out', async () => {
    const tab = await open('#/unobserved?why=events.Teleported');
    const { page } = tab;
    await page.getByText('No node has this reason now. Choose another one.').waitFor();
    await page.route('**/api/unobserved', async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({ json: { ...answer, leftOut: 3, reasonsLeftOut: 2 } });
    });
    await page.reload();
    await page.getByText('Not looked at: 3 nodes more. They have no rows here.').waitFor();
    await page.getByText('Rarer reasons, 2 of them, are in the table only.').waitFor();
    await tab.close();
  });

  /** A fallback of a node that was observed until then, with findings meanwhile; of a silent agent nobody knows how it goes on. */
  const fallBack = (node: string, age: string) =>
    query(
      databaseUrl,
      `INSERT INTO store.mode_change (at, not_before, day, node_id, context_id, seq, cluster_id, model, from_mode, to_mode, reason, proof)
       SELECT now() - $2::interval, now() - $2::interval - interval '10 s', ((now() - $2::interval) AT TIME ZONE 'UTC')::date, node_id, context_id,
              900000000, cluster_id, 'EventedCache', 'Evented', 'Fallback', 'StreamBroke', '{"v": 1}' FROM store.node WHERE name = $1`,
      [node, age],
    );

  test('the fallbacks of the past have the names and times that the terminal and SQL have, and a day opens those that lasted on it', async () => {
    await query(
      databaseUrl,
      `UPDATE store.node SET name = $1, last_seen = now() + interval '1 day' WHERE name IN ('west-006', $1)`,
      [HOSTILE],
    );
    await query(databaseUrl, `UPDATE store.epoch SET kubelet_seen_to = now() + interval '1 day'`);
    await fallBack(HOSTILE, '2 days');
    const rows = await query<
      Record<'node' | 'from_at' | 'to_at' | 'hours' | 'findings' | 'day', string | null>
    >(
      databaseUrl,
      `SELECT f.node, f.from_at::text, f.to_at::text, round(f.hours::numeric, 1)::text AS hours, f.findings::text,
              (f.from_at AT TIME ZONE 'UTC')::date::text AS day
       FROM plegwatch.fallback_intervals f WHERE coalesce(f.to_at, now()) > now() - interval '30 days'`,
    );
    const found = (row: (typeof rows)[number]) =>
      query<{ findings: string }>(
        databaseUrl,
        `SELECT count(*)::text AS findings FROM plegwatch.findings
         WHERE node = $1 AND kind IN ('missed', 'kubelet_late') AND resolved_at IS NULL AND detected_at >= $2 AND detected_at < coalesce($3::timestamptz, 'infinity')`,
        [row.node, row.from_at, row.to_at],
      );
    for (const row of rows) expect((await found(row))[0]?.findings).toBe(row.findings);
    expect(rows.map(({ node }) => node).sort()).toEqual([HOSTILE, 'east-003', 'west-003'].sort());
    // The truth of the history: 30 hours from 03:12 on, with missed events.
    expect(rows.find(({ node }) => node === 'east-003')).toMatchObject({
      hours: '30.0',
      findings: expect.stringMatching(/^[1-9]/),
    });
    const { stdout } = await plegwatch([
      'fallbacks',
      '--database-url',
      databaseUrl,
      '--from',
      '-30d',
      '-o',
      'json',
    ]);
    const printed = JSON.parse(stdout) as { node: string; findings: number; hours: number }[];
    const alike = (node: string | null, findings: unknown, hours: unknown) =>
      `${node} ${findings} ${Number(hours).toFixed(1)}`;
    const expected = rows.map((row) => alike(row.node, row.findings, row.hours)).sort();
    expect(printed.map((row) => alike(row.node, row.findings, row.hours)).sort()).toEqual(expected);

    const tab = await open('#/fleet');
    const { page } = tab;
    await page.getByRole('link', { name: 'Fallbacks' }).click();
    await page.getByRole('heading', { name: 'Fallbacks, those that last first 3' }).waitFor();
    expect(await tab.barriers()).toEqual([]);
    const visible = (text: string | null) => text?.replace('\u202e', '\\u{202e}') ?? null;
    const cells = await page
      .locator('tbody tr')
      .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    const drawn = cells.map(([node = null, , , hours, findings]) => alike(node, findings, hours));
    expect(drawn.sort()).toEqual(rows.map((row) => alike(visible(row.node), row.findings, row.hours)).sort());
    // The one that lasts is before those that ended.
    expect([cells[0]?.[0]?.slice(0, 4), cells[0]?.[2]]).toEqual(['<img', 'now']);
    expect(cells.find(([node]) => node === 'east-003')?.slice(1, 3)).toEqual(
      [fellBack, new Date(fellBack.getTime() + 30 * 60 * MINUTE)].map((at) =>
        at.toISOString().slice(0, 19).replace('T', ' '),
      ),
    );
    const { fields, lines } = await savedRows(page, 'Fallbacks, those that last first');
    expect(fields.join()).toBe(
      'node,from_at,to_at,hours,findings,kubelet_version,mode,reason,next_mode,cluster',
    );
    expect(lines).toHaveLength(3);

    // On the day after the beginning it lasted, and did not begin.
    const day = fellBack.toISOString().slice(0, 10);
    const began = rows.filter((row) => row.day === day).length;
    await page
      .getByRole('combobox', { name: 'Day' })
      .selectOption({ label: `${day}: ${began} fallbacks on ${began} nodes` });
    await page
      .getByRole('heading', { name: `Fallbacks that lasted on ${day} ${began}`, exact: true })
      .waitFor();
    expect(new URL(page.url()).hash).toBe(`#/fallbacks?day=${day}`);
    const next = new Date(fellBack.getTime() + 24 * 60 * MINUTE).toISOString().slice(0, 10);
    await page.goto(`${origin}/#/fallbacks?day=${next}`);
    const lasted = rows.filter(
      ({ from_at, to_at }) =>
        Date.parse(from_at ?? '') < Date.parse(next) + 24 * 60 * MINUTE &&
        (to_at === null || Date.parse(to_at) > Date.parse(next)),
    ).length;
    await page
      .getByRole('heading', { name: `Fallbacks that lasted on ${next} ${lasted}`, exact: true })
      .waitFor();
    await page.getByRole('link', { name: 'east-003' }).click();
    await page.getByRole('application', { name: /^Timeline of east-003 .* mode Fallback\./ }).waitFor();
    await tab.close();
  });

  test('a day on which no kubelet fell back says so, and a click on the drawing opens another one, also on a narrow page in the dark', async () => {
    const tab = await open('#/fallbacks?days=7&day=2020-02-29', { width: 360, colorScheme: 'dark' });
    const { page } = tab;
    await page.getByText('No kubelet was seen in fallback on this day.').waitFor();
    expect(await page.getByRole('combobox', { name: 'Day' }).inputValue()).toBe('2020-02-29');
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await page.locator('g.opens rect').first().click();
    await page.getByRole('heading', { name: /^Fallbacks that lasted on / }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('the last days are those of the server, whatever the clock of the browser says', async () => {
    const tab = await open('#/unobserved');
    const { page } = tab;
    await page.clock.setFixedTime('2020-01-01T00:00:00Z');
    for (const view of ['fallbacks', 'versions']) {
      const today = new Date().toISOString().slice(0, 8);
      await page.goto(`${origin}/#/${view}?days=30`);
      await page
        .locator('.heading')
        .getByText(new RegExp(` – ${today}.* UTC$`))
        .waitFor();
    }
    await tab.close();
  });

  test('a day shows nothing of the day before it while it is read', async () => {
    const day = fellBack.toISOString().slice(0, 10);
    const tab = await open(`#/fallbacks?day=${day}`);
    const { page } = tab;
    await page.getByRole('heading', { name: `Fallbacks that lasted on ${day}` }).waitFor();
    const asked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await page.route('**/api/fallbacks?*2020-02-29*', async (route) => {
      asked.resolve();
      await release.promise;
      await route.continue();
    });
    await page.goto(`${origin}/#/fallbacks?day=2020-02-29`);
    await asked.promise;
    await page.getByText('Reading the day …').waitFor();
    expect(await page.getByRole('heading', { name: /^Fallbacks that lasted/ }).count()).toBe(0);
    release.resolve();
    await page.getByText('No kubelet was seen in fallback on this day.').waitFor();
    await tab.close();
  });

  test('more fallbacks than an answer has are said to be left out, those that last never first', async () => {
    await query(
      databaseUrl,
      `INSERT INTO store.mode_change (at, not_before, day, node_id, context_id, seq, cluster_id, model, from_mode, to_mode, reason, proof)
       SELECT t.at, t.at, (t.at AT TIME ZONE 'UTC')::date, node_id, context_id, 800000000 + i, cluster_id, 'EventedCache',
              CASE WHEN i % 2 = 0 THEN 'Fallback' ELSE 'Evented' END, CASE WHEN i % 2 = 0 THEN 'Evented' ELSE 'Fallback' END, 'StreamBroke', '{"v": 1}'
       FROM store.node, generate_series(1, 4100) AS i, LATERAL (SELECT date_trunc('day', now(), 'UTC') - interval '14 hours' + i * interval '10 s' AS at) t
       WHERE name = 'east-001'`,
    );
    const tab = await open('#/fallbacks?days=90');
    const { page } = tab;
    await page.getByRole('heading', { name: 'Fallbacks, those that last first 2,000' }).waitFor();
    await page
      .getByText(/^Those that ended before .* UTC are left out: choose a day, or a shorter period\.$/)
      .waitFor();
    const { lines } = await savedRows(page, 'Fallbacks, those that last first');
    expect(lines.filter((line) => line.includes('<img'))).toHaveLength(1);
    await tab.close();
  });

  test('a day on which nobody observed a kubelet is marked, and no day without fallbacks', async () => {
    // From the middle of the day before yesterday on, nobody did.
    await query(
      databaseUrl,
      `UPDATE store.epoch SET kubelet_seen_to = date_trunc('day', now(), 'UTC') - interval '36 hours'`,
    );
    const unobserved = await query<{ ago: number }>(
      databaseUrl,
      `SELECT ((now() AT TIME ZONE 'UTC')::date - (d.day AT TIME ZONE 'UTC')::date) AS ago
       FROM generate_series(date_trunc('day', now() - interval '29 days', 'UTC'), now(), interval '24 hours') AS d (day)
       WHERE NOT EXISTS (SELECT FROM store.epoch WHERE kubelet_seen_from < d.day + interval '24 hours' AND kubelet_seen_to >= d.day)
         AND NOT EXISTS (SELECT FROM plegwatch.fallback_intervals WHERE from_at >= d.day AND from_at < d.day + interval '24 hours')`,
    );
    // Before the first evidence, and after the last.
    expect(unobserved.map(({ ago }) => ago)).toEqual(expect.arrayContaining([29, 0]));
    const tab = await open('#/fallbacks?days=29');
    const { page } = tab;
    await page.locator('.plot-frame .gap-plate').first().waitFor();
    const titles = await page.locator('.plot-frame .gap-plate title').allTextContents();
    const days = unobserved.length;
    expect(titles.filter((title) => title.endsWith(': nobody observed a kubelet'))).toHaveLength(days);
    await page.getByRole('img', { name: new RegExp(`Nobody observed a kubelet on ${days} days$`) }).waitFor();
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });
});
