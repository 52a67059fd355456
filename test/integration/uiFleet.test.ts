/*
 * The page of a fleet over days, in a real browser, against SQL: twelve clusters with agents that are silent, streams that broke, kubelets in
 * fallback, and versions that changed.
 */
import type { Locator, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { CLI } from '../support/build.ts';
import { plegwatch } from '../support/commandLine.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';
import { passes, until } from '../support/waitFor.ts';

const CLUSTERS = 12;
const HOSTILE = '<img src=x onerror="document.title=1">\u202egnp';
const SHOWN_HOSTILE = '<img src=x onerror="document.title=1">\\u{202e}gnp';
const HOUR_MS = 3_600_000;

let server: TestServer;
let databaseUrl: string;
let ui: LocalPlegwatch;
let browser: TestBrowser;
let origin: string;

needs('postgres', 'chromium')('the page over days', () => {
  beforeAll(async () => {
    [server, browser] = await Promise.all([startServer(), startBrowser()]);
    databaseUrl = await server.database();
    await writeHistory(databaseUrl, { nodes: 36, days: 7, lives: 8, step: 3600 });
    await spread();
    // However long the tests take: one agent has been silent for 30 hours, and the others are not.
    await query(
      databaseUrl,
      `UPDATE store.node SET last_seen = now() + CASE name WHEN 'east-006' THEN interval '-30 hours' ELSE interval '1 day' END
       WHERE last_seen IS NOT NULL`,
    );
    await query(
      databaseUrl,
      `DELETE FROM store.relist_hour h USING store.node n WHERE n.node_id = h.node_id AND n.name = 'east-006' AND h.hour > now() - interval '30 hours'`,
    );
    await query(
      databaseUrl,
      `UPDATE store.node_info i SET labels = jsonb_build_object('pool', $1::text) FROM store.node n WHERE n.node_id = i.node_id AND n.name = 'west-007'`,
      [HOSTILE],
    );
    await addFindings('east-001', 'missed', 120, '20 minutes');
    ({ ui, origin } = await startUi());
  });
  afterAll(async () => {
    await Promise.all([ui?.stop(), browser?.stop()]);
    await server?.stop();
  });

  const startUi = async () => {
    const port = await freePort();
    const settings = { databaseUrl, pageAddress: `127.0.0.1:${port}` };
    const started = await startPlegwatch({ cli: CLI, command: 'ui', settings });
    return { ui: started, origin: `http://127.0.0.1:${port}` };
  };

  /** Nodes of east and west in as many clusters, with all that is stored of them. */
  const spread = () =>
    query(
      databaseUrl,
      `DO $$ DECLARE t regclass; BEGIN
         INSERT INTO store.cluster (name) SELECT 'c' || lpad(i::text, 2, '0') FROM generate_series(1, ${CLUSTERS - 2}) AS i;
         CREATE TEMP TABLE moved AS SELECT n.node_id, c.cluster_id FROM store.node n
           JOIN store.cluster c ON c.name = 'c' || lpad((right(n.name, 3)::int4 % ${CLUSTERS})::text, 2, '0') WHERE n.name ~ '\\d{3}$';
         FOR t IN SELECT a.attrelid::regclass FROM pg_attribute a JOIN pg_class k ON k.oid = a.attrelid
                  WHERE a.attname = 'cluster_id' AND k.relkind IN ('r', 'p') AND NOT k.relispartition AND k.relnamespace = 'store'::regnamespace
                    AND EXISTS (SELECT FROM pg_attribute b WHERE b.attrelid = a.attrelid AND b.attname = 'node_id') LOOP
           EXECUTE format('UPDATE %s t SET cluster_id = m.cluster_id FROM moved m WHERE m.node_id = t.node_id', t);
         END LOOP; END $$`,
    );

  /** Findings of a node, as many as these, a second after the other, the last one this long ago. */
  const addFindings = (node: string, kind: string, many: number, ago: string) =>
    query(
      databaseUrl,
      `INSERT INTO store.finding (finding_id, detected_at, day, node_id, context_id, seq, cluster_id, kind, event_type, cause, container_id, pod_uid,
                                  pod_namespace, pod_name, container_name, window_from, window_to, proof)
       SELECT gen_random_uuid(), t.at, (t.at AT TIME ZONE 'UTC')::date, n.node_id, n.context_id, 900000000 + i, n.cluster_id, $2, 'STOPPED',
              'unannounced_by_list', 'ab', 'uid-a', 'shop', 'cart', 'app', t.at - interval '1 second', t.at, '{"v": 1}'
       FROM store.node n, generate_series(1, $3::int4) AS i,
            LATERAL (SELECT now() - $4::interval - ($3 - i) * interval '1 second' AS at) t WHERE n.name = $1`,
      [node, kind, many, ago],
    );

  interface Hour extends Record<string, unknown> {
    readonly name: string;
    readonly hour: number;
    readonly nodes: number;
    readonly missed: number;
    readonly fallen: number;
    readonly slow: number;
    readonly unobserved: number;
  }

  /** The figures of each pool in each hour, by the views that everybody reads. */
  const hoursBySql = async (from: string, slices: number) => {
    const rows = await query<Hour>(
      databaseUrl,
      `WITH hour AS (
         SELECT i AS hour, $1::timestamptz + i * interval '1 hour' AS from_at, least(now(), $1::timestamptz + (i + 1) * interval '1 hour') AS to_at
         FROM generate_series(0, $2 - 1) AS i
       ), node AS (
         SELECT n.cluster, n.node, concat(n.cluster, coalesce(' / ' || (n.labels ->> 'pool'), ', nodes without a pool')) AS name FROM plegwatch.nodes n
       ), each AS (
         SELECT n.name, h.hour, h.from_at,
                (SELECT count(*) FROM plegwatch.findings f WHERE f.cluster = n.cluster AND f.node = n.node AND f.kind = 'missed' AND f.resolved_at IS NULL
                   AND f.detected_at >= h.from_at AND f.detected_at < h.to_at) AS missed,
                EXISTS (SELECT FROM plegwatch.fallback_intervals f WHERE f.cluster = n.cluster AND f.node = n.node AND f.from_at < h.to_at
                   AND coalesce(f.to_at, 'infinity') > h.from_at) AS fallen,
                EXISTS (SELECT FROM plegwatch.kubelet_hours k WHERE k.cluster = n.cluster AND k.node = n.node AND k.hour = h.from_at
                   AND (k.hist[12] > 0 OR k.last_seen_age_ms > 10000))
                OR EXISTS (SELECT FROM plegwatch.pleg_verdicts v WHERE v.cluster = n.cluster AND v.node = n.node AND v.kind = 'unhealthy' AND v.at < h.to_at
                   AND coalesce(v.to_at, 'infinity') > h.from_at) AS slow,
                coalesce((SELECT sum(r.covered_ms) FROM plegwatch.relist_hours r WHERE r.cluster = n.cluster AND r.node = n.node AND r.hour = h.from_at), 0) AS covered_ms,
                extract(epoch FROM h.to_at - h.from_at) * 1000 AS known_ms
         FROM node n CROSS JOIN hour h
       )
       SELECT name, hour, count(*)::int4 AS nodes, sum(missed)::int4 AS missed, (count(*) FILTER (WHERE fallen))::int4 AS fallen,
              (count(*) FILTER (WHERE slow))::int4 AS slow, (1 - sum(covered_ms) / sum(known_ms))::float8 AS unobserved
       FROM each GROUP BY name, hour`,
      [from, slices],
    );
    return rows.map((row) => ({ ...row, name: row.name.replace(HOSTILE, SHOWN_HOSTILE) }));
  };

  const STRIPS = ['missed', 'fallen', 'slow', 'unobserved'] as const;

  /** The strength of each slice that a strip has coloured. */
  const drawnOf = async (group: Locator, slices: number) => {
    const width = await group.evaluate((g) => Number(g.closest('svg')?.getAttribute('width')));
    const drawn: Record<string, Record<number, number>> = {};
    for (const strip of STRIPS) {
      const found: Record<number, number> = {};
      for (const strength of [1, 2, 3]) {
        const paths = await group
          .locator(`.strip-${strip}.heat-${strength}`)
          .evaluateAll((all) => all.map((path) => path.getAttribute('d') ?? ''));
        for (const [, left, right] of paths.join('').matchAll(/M(\d+) \d+H(\d+)v/g)) {
          const sliceAt = (x: string | undefined) => Math.round(((Number(x) - 130) / (width - 130)) * slices);
          for (let slice = sliceAt(left); slice < sliceAt(right); slice += 1) found[slice] = strength;
        }
      }
      drawn[strip] = found;
    }
    return drawn;
  };

  const drawHours = async () => {
    const tab = await browser.open('about:blank');
    const answered = tab.page.waitForResponse(/api\/hours/);
    await tab.page.goto(`${origin}/#/hours?days=2`);
    const { from, pools } = (await (await answered).json()) as {
      from: string;
      pools: { missed: number[] }[];
    };
    await tab.page.locator('.pool-hours').first().waitFor();
    return { tab, page: tab.page, from, slices: pools[0]?.missed.length ?? 0 };
  };

  type Coloured = Readonly<Record<number, number>>;

  /** How strong each slice of a strip is, by SQL. The last one still lasts, and what is observed of it was read at another moment. */
  const expectedOf = (rows: readonly Hour[], strip: (typeof STRIPS)[number], slices: number): Coloured => {
    const isRead = ({ hour }: Hour) => strip !== 'unobserved' || hour < slices - 1;
    const partOf = (row: Hour) => (strip === 'unobserved' ? row.unobserved : row[strip] / row.nodes);
    const least = strip === 'unobserved' ? 0.01 : 0.000_001;
    const coloured = rows.filter((row) => isRead(row) && partOf(row) >= least);
    return Object.fromEntries(
      coloured.map((row) => [row.hour, 1 + [0.1, 0.5].filter((part) => partOf(row) >= part).length]),
    );
  };

  const nameOf = async (group: Locator) =>
    (await group.locator('.plot-name title').textContent())?.replace(/, \d+ nodes?$/, '') ?? '';

  test('the fleet by hour has coloured exactly the hours of each pool in which SQL says that something went wrong or was not observed', async () => {
    const { tab, page, from, slices } = await drawHours();
    const more = page.getByRole('button', { name: /more pools?$/ });
    await more.click();
    await more.waitFor({ state: 'detached' });
    const rows = await hoursBySql(from, slices);
    const groups = await page.locator('.pool-hours').all();
    // In this history each pool has some time that nobody observed.
    expect(groups).toHaveLength(new Set(rows.map(({ name }) => name)).size);
    let coloured = 0;
    for (const group of groups) {
      const name = await nameOf(group);
      const drawn = await drawnOf(group, slices);
      for (const strip of STRIPS) {
        const expected = expectedOf(
          rows.filter((row) => row.name === name),
          strip,
          slices,
        );
        const found = { ...drawn[strip] };
        if (strip === 'unobserved') delete found[slices - 1];
        expect([name, strip, found]).toEqual([name, strip, expected]);
        coloured += Object.keys(found).length;
      }
    }
    // How many depends on the time of day: the history ends at midnight.
    expect(coloured).toBeGreaterThan(50);
    expect(await page.locator('img').count()).toBe(0);
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('the hours are read with the keyboard, each with its figures', async () => {
    const { tab, page, from, slices } = await drawHours();
    const rows = await hoursBySql(from, slices);
    const drawing = page.getByRole('application', { name: /^The fleet by hour/ });
    await drawing.focus();
    const isWatched = ({ unobserved }: Hour) => unobserved < 1;
    /** The line above the drawing has what SQL has, and no zero where nobody watched. */
    const expectSaid = async (row: Hour) => {
      const figures = [
        ...(isWatched(row) || row.missed > 0 ? [`${row.missed} missed event`] : []),
        ...(isWatched(row) || row.fallen > 0 ? [`${row.fallen} in fallback`] : []),
        ...(isWatched(row) || row.slow > 0 ? [`PLEG slow or hung on ${row.slow}`] : []),
      ];
      const hour = new Date(Date.parse(from) + row.hour * HOUR_MS).toISOString().slice(0, 16);
      const said = page.getByRole('status').filter({ hasText: `${row.name}, ${hour.replace('T', ' ')} – ` });
      await said.waitFor();
      const text = (await said.textContent())?.split(/ nodes?: /)[1] ?? '';
      expect(text.replaceAll('events', 'event')).toMatch(
        new RegExp(`^${[...figures, '[\\d.]+ % observed'].join(', ')}`),
      );
    };
    const groups = await Promise.all((await page.locator('.pool-hours').all()).map(nameOf));
    // The worst pool of all may have been watched by nobody.
    const down = groups.findIndex((pool) => rows.some((row) => row.name === pool && isWatched(row)));
    const ofPool = rows.filter(({ name }) => name === groups[down]).toSorted((a, b) => b.hour - a.hour);
    const latest = ofPool.findIndex(isWatched);
    for (const [n, row] of ofPool.slice(0, latest + 1).entries()) {
      await page.keyboard.press('ArrowLeft');
      for (let pool = 0; n === 0 && pool < down; pool += 1) await page.keyboard.press('ArrowDown');
      if (n === 0 || n === latest) await expectSaid(row);
    }
    expect(latest).toBeGreaterThanOrEqual(0);
    await tab.close();
  });

  test('a version that changed is a line through the hours of its pool, and weeks say how long a slice is', async () => {
    const tab = await browser.open(`${origin}/#/hours`, { colorScheme: 'dark' });
    const { page } = tab;
    await page.locator('.version-line').first().waitFor({ state: 'attached' });
    const [expected] = await query<{ pools: number }>(
      databaseUrl,
      `SELECT count(DISTINCT (n.cluster, n.labels ->> 'pool'))::int4 AS pools FROM plegwatch.relist_hours h
       JOIN plegwatch.nodes n USING (cluster, node) WHERE h.hour >= now() - interval '7 days' AND h.kubelet_version <> n.kubelet_version`,
    );
    const more = page.getByRole('button', { name: /more pools?$/ });
    await more.click();
    await more.waitFor({ state: 'detached' });
    expect(await page.locator('.pool-hours:has(.version-line)').count()).toBe(expected?.pools);
    await page.getByRole('radio', { name: '4 weeks' }).check({ force: true });
    await page.getByText(/in slices of 4 hours;/).waitFor();
    expect(await tab.barriers()).toEqual([]);
    await tab.close();
  });

  test('the fleet opens with what became worse since yesterday, by as much as SQL says, and of how many nodes nobody knows', async () => {
    const tab = await browser.open('about:blank');
    const { page } = tab;
    const held = Promise.withResolvers<Route>();
    await page.route('**/api/change', (route) => held.resolve(route), { times: 1 });
    await page.goto(`${origin}/`);
    const map = page.getByRole('region', { name: 'Map of the nodes' });
    const sentence = page.locator('.change');
    const before = await map.boundingBox();
    expect(await sentence.count()).toBe(0);
    await (await held.promise).continue();
    await sentence.waitFor();
    // Nobody clicks on what was elsewhere a moment ago.
    expect(await map.boundingBox()).toEqual(before);
    let text = '';
    // Again, if a full hour passed between the answers.
    await passes(async () => {
      await page.reload();
      await sentence.waitFor();
      const [expected] = await query<{ today: number; before: number; pool: string; cluster: string }>(
        databaseUrl,
        `WITH d AS (SELECT date_trunc('hour', now(), 'UTC') + interval '1 hour' AS until)
         SELECT n.cluster, n.labels ->> 'pool' AS pool, count(*) FILTER (WHERE f.detected_at >= d.until - interval '24 hours')::int4 AS today,
                count(*) FILTER (WHERE f.detected_at < d.until - interval '24 hours')::int4 AS before
         FROM d, plegwatch.findings f JOIN plegwatch.nodes n USING (cluster, node)
         WHERE f.kind = 'missed' AND f.resolved_at IS NULL AND f.detected_at >= d.until - interval '48 hours'
           AND (n.cluster, n.labels ->> 'pool') = (SELECT cluster, labels ->> 'pool' FROM plegwatch.nodes WHERE node = 'east-001')
         GROUP BY 1, 2`,
      );
      text = (await sentence.textContent()) ?? '';
      expect(text).toContain(
        `Worse than yesterday: ${expected?.today} missed events instead of ${expected?.before} in pool ${expected?.pool} of ${expected?.cluster}, since `,
      );
      const { stdout } = await plegwatch(['readiness', '--database-url', databaseUrl]);
      expect(stdout.trimEnd().split('\n').at(-1)?.split(';')[0]).toBe(text.split(';')[0]);
    });
    // The silent agent, and the Node that never had one.
    expect(text).toContain('of 2 nodes without a reporting agent it cannot be known');
    expect(await tab.barriers()).toEqual([]);
    await sentence.getByRole('link').click();
    await page.locator('.pool-hours').first().waitFor();
    await tab.close();
  });

  test('versions of twelve clusters are folded into few rows with the sums of SQL, the worst first, and can be unfolded', async () => {
    const tab = await browser.open(`${origin}/#/versions`);
    const { page } = tab;
    const details = page.locator('.plot-frame').nth(0).locator('.plot-detail');
    await details.first().waitFor();
    const textsOf = async () =>
      (await details.evaluateAll((all) => all.map((each) => each.firstChild?.textContent ?? ''))).map(
        (text) => text.replaceAll(',', ''),
      );
    const sums = (texts: readonly string[]) =>
      texts.reduce(
        (all, text) => {
          const [, missed, decided] = /(\d+) missed of (\d+)/.exec(text) ?? [];
          return { missed: all.missed + Number(missed), decided: all.decided + Number(decided) };
        },
        { missed: 0, decided: 0 },
      );
    const [expected] = await query<{ missed: number; decided: number; rows: number; folded: number }>(
      databaseUrl,
      `SELECT sum(missed)::int4 AS missed, sum(decided)::int4 AS decided, count(*)::int4 AS rows,
              count(DISTINCT (runtime_name, runtime_version, kubelet_version))::int4 AS folded FROM plegwatch.miss_rate()`,
    );
    const folded = await textsOf();
    expect(sums(folded)).toEqual({ missed: expected?.missed, decided: expected?.decided });
    expect(folded.length).toBeGreaterThanOrEqual(expected?.folded ?? 0);
    expect(folded.length).toBeLessThan((expected?.rows ?? 0) / 2);
    expect(folded[0]).toMatch(/[1-9]\d* missed of/);
    const height = await page.evaluate<number>('document.documentElement.scrollHeight');
    expect(height).toBeLessThan(2_000);
    expect(await tab.barriers()).toEqual([]);
    await page.getByRole('radio', { name: 'each' }).check({ force: true });
    await page.getByRole('button', { name: `Show ${(expected?.rows ?? 0) - 20} more rows` }).click();
    await details.nth((expected?.rows ?? 0) - 1).waitFor({ state: 'attached' });
    expect(sums(await textsOf())).toEqual({ missed: expected?.missed, decided: expected?.decided });
    await tab.close();
  });

  test('findings of a week are marks with their numbers, none of which is lost, and a mark opens its period', async () => {
    await addFindings('east-002', 'late', 300, '26 hours');
    await addFindings('east-002', 'out_of_order', 7, '80 hours');
    await addFindings('east-002', 'missed', 40, '50 hours');
    const tab = await browser.open(
      `${origin}/#/node/${(await clusterOf('east-002')) ?? ''}/east-002?last=604800`,
    );
    const { page } = tab;
    const marks = page.locator('.timeline .finding-bin');
    await page.locator('.finding-bin', { hasText: '300 late (it matters: ' }).waitFor({ state: 'attached' });
    const drawn = await marks.evaluateAll((all) =>
      all.map((mark) => [
        mark.querySelector('.miss-flag') === null ? 'other' : 'missed',
        Number((mark.querySelector('text')?.textContent ?? '1').replace(',', '')),
      ]),
    );
    const sumOf = (kind: string) =>
      drawn.reduce((sum, [name, n]) => (name === kind ? sum + Number(n) : sum), 0);
    const [expected] = await query<{ missed: number; other: number }>(
      databaseUrl,
      `SELECT count(*) FILTER (WHERE kind = 'missed')::int4 AS missed, count(*) FILTER (WHERE kind <> 'missed')::int4 AS other FROM plegwatch.findings
       WHERE node = 'east-002' AND least(coalesce(occurred_at, window_to), detected_at) > now() - interval '7 days'`,
    );
    expect({ missed: sumOf('missed'), other: sumOf('other') }).toEqual(expected);
    expect(await tab.barriers()).toEqual([]);
    await page.locator('.finding-bin', { hasText: '300 late (it matters: ' }).click();
    await until(() => page.url().includes('from='));
    await tab.close();
  });

  const clusterOf = async (node: string) =>
    (
      await query<{ cluster: string }>(databaseUrl, 'SELECT cluster FROM plegwatch.nodes WHERE node = $1', [
        node,
      ])
    )[0]?.cluster;
});
