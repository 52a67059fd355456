/*
 * `plegwatch timeline`: on a history that a controller stored, as a reader runs it, on a terminal and not.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentIncarnation } from '../support/batches.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { CLI } from '../support/build.ts';
import { plegwatch } from '../support/commandLine.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { evidence, STATE, UNHEALTHY } from '../support/evidence.ts';
import { needs } from '../support/needs.ts';
import { event } from '../support/records.ts';

const run = promisify(execFile);

let server: TestServer;
let admin: string;
let reader: string;

needs('postgres')('plegwatch timeline', () => {
  beforeAll(async () => {
    server = await startServer();
    const databaseUrl = await server.database();
    admin = databaseUrl;
    reader = await server.reader(databaseUrl);
    const first = agentIncarnation('node-a', 1, 120_000);
    const next = agentIncarnation('node-a', 2, 30_000);
    await commitAll(databaseUrl, [
      first.batch(1, evidence()),
      next.batch(1, [event(3), STATE], { prev: first.epoch }),
      agentIncarnation('node-b', 1, 120_000).batch(1, evidence()),
    ]);
    await query(databaseUrl, UNHEALTHY);
    await query(databaseUrl, `INSERT INTO store.cluster (name) VALUES ('other')`);
    await query(
      databaseUrl,
      `INSERT INTO store.node (cluster_id, name) SELECT cluster_id, n FROM store.cluster, unnest('{node-b,node-c}'::text[]) AS n
       WHERE store.cluster.name = 'other'`,
    );
  });
  afterAll(() => server?.stop());

  const timeline = (...args: string[]) => plegwatch(['timeline', '--database-url', reader, ...args]);

  test('the story of a node is in one order: its agent, subscription, fallback, break, misses and condition', async () => {
    const { code, stdout, stderr } = await timeline('node-a', '--from', '-1h');
    expect([code, stderr]).toEqual([0, '']);
    const story = [
      /^node-a, cluster test, \S+ \S+ to \S+ \S+ UTC$/m,
      /^\S+ {2}agent +the agent started \(version/m,
      /^\S+ {2}mode +the kubelet's PLEG: Unknown -> Evented \(Connected/m,
      /^\S+ {2}finding +missed STOPPED: shop\/cart-7 app \(.*finding [0-9a-f-]{36}\)$/m,
      /^\S+ {2}session +the subscription ended \(UNAVAILABLE: EOF\)$/m,
      /^\S+ {2}mode +the kubelet's PLEG: Evented -> Fallback \(StreamBroke/m,
      /^\S+ {2}condition +the Node reports Ready=False \(KubeletNotReady: PLEG is not healthy/m,
    ];
    const at = story.map((line) => stdout.search(line));
    expect(at).not.toContain(-1);
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    expect(stdout).toMatch(/no events observed for .* \(broken\)/);
    const times = [...stdout.matchAll(/^(\d\d:\d\d:\d\d\.\d{3}) /gm)].map(([, time]) => time);
    expect(times.length).toBeGreaterThan(8);
  });

  test('JSON has every entry of the function, in its order', async () => {
    const { stdout } = await timeline('node-a', '--from', '-1h', '-o', 'json');
    const json = JSON.parse(stdout);
    const rows = await query(
      reader,
      `SELECT kind, what, pod, container, container_id, epoch, seq FROM plegwatch.timeline('test', 'node-a', $1, $2)`,
      [json.from, json.to],
    );
    expect(json.entries.map(({ at, until, detail, ...rest }: Record<string, unknown>) => rest)).toEqual(rows);
    expect(json).toMatchObject({ cluster: 'test', node: 'node-a', cut: null });
    expect(json.entries[0].at).toMatch(/\.\d{6}Z$/);
  });

  test('--limit keeps the first lines, and says how many entries are not shown and from when on', async () => {
    const { stdout } = await timeline('node-a', '--from', '-1h', '--limit', '3', '--every');
    expect(stdout.match(/^\d\d:\d\d:/gm)).toHaveLength(3);
    expect(stdout).toMatch(/^\d+ more entries from \S+ \S+ on are not shown\. Set --limit higher/m);
    const { stdout: json } = await timeline('node-a', '--limit', '3', '-o', 'json');
    expect(JSON.parse(json)).toMatchObject({ entries: { length: 3 }, cut: { entries: expect.any(Number) } });
  });

  test('colours are for terminals only, and not with NO_COLOR', async () => {
    const line = `${process.execPath} ${CLI} timeline node-a --database-url ${reader}`;
    const onTerminal = async (env: Record<string, string>) =>
      (await run('script', ['-qec', line, '/dev/null'], { env: { PATH: process.env['PATH'], ...env } }))
        .stdout;
    expect(await onTerminal({})).toContain('\u001b[31mfinding');
    expect(await onTerminal({ NO_COLOR: '1' })).not.toContain('\u001b');
    expect((await timeline('node-a')).stdout).not.toContain('\u001b');
  });

  test('an unknown node is an error that names those that there are', async () => {
    const { code, stderr } = await timeline('node-x');
    expect([code, stderr]).toEqual([1, expect.stringContaining('There is no node node-x')]);
    expect(stderr).toMatch(/^Known: node-[abc], node-[abc], node-[abc]\. {2}\[NOT_FOUND\]$/m);
  });

  test('a node of several clusters asks for --cluster', async () => {
    const { code, stderr } = await timeline('node-b');
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('Several clusters have a node node-b: other, test.'),
    ]);
    expect((await timeline('node-b', '--cluster', 'test')).code).toBe(0);
  });

  test('a wrong time, and an end before the start, are refused with what would be right', async () => {
    const wrong = await timeline('node-a', '--from', 'yesterday', '--to', '1h');
    expect(wrong.code).toBe(2);
    expect(wrong.stderr.match(/must be a time such as 2026-11-22T03:12:00Z, 03:12/g)).toHaveLength(2);
    const reversed = await timeline('node-a', '--from', '-1h', '--to', '-2h');
    expect([reversed.code, reversed.stderr]).toEqual([
      2,
      expect.stringMatching(/--from \(\S+\) must be before --to/),
    ]);
  });

  test('a period without evidence says when there is some, and a node without an agent that it has none', async () => {
    const early = await timeline('node-a', '--from', '2020-01-01', '--to', '2020-01-02');
    expect(early.stdout).toMatch(
      /^Nothing is stored of this period\. The node's evidence begins at 2\S+Z and ends at 2\S+Z\.$/m,
    );
    const never = await timeline('node-c');
    expect(never.stdout).toContain('it never had an agent');
  });

  needs('chromium')('--html', () => {
    const HOSTILE =
      '</script><script>globalThis.ran = true</script><img src="http://192.0.2.1/" onerror="ran = true">';
    let folder: string;
    let browser: TestBrowser;

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'record-'));
      await query(
        admin,
        `WITH condition AS (
           INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message)
           SELECT now(), (now() AT TIME ZONE 'UTC')::date, node_id, cluster_id, 'False', 'KubeletNotReady', $1
           FROM store.node WHERE name = 'node-a' RETURNING node_id, cluster_id, at, status, reason
         )
         INSERT INTO store.ready_change (node_id, cluster_id, at, status, reason, causes)
         SELECT node_id, cluster_id, at, status, reason, '{pleg}' FROM condition`,
        [HOSTILE],
      );
      browser = await startBrowser();
    });
    afterAll(async () => {
      await browser?.stop();
      rmSync(folder, { recursive: true });
    });

    const written = async (...args: string[]) => {
      const file = join(folder, `${args[0]}.html`);
      const { code, stdout, stderr } = await plegwatch([...args, '--database-url', reader, '--html', file]);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(/^\S+\.html: \d+ KiB$/m);
      return browser.open(pathToFileURL(file).href);
    };

    test('the timeline in a file needs no server, runs no text of a node, and opens the findings that it shows', async () => {
      const tab = await written('timeline', 'node-a', '--from', '-1h');
      await tab.page.getByRole('heading', { name: 'node-a' }).waitFor();
      expect(
        await tab.page.evaluate('[globalThis.ran, document.querySelector("#record").textContent]'),
      ).toEqual([undefined, expect.stringContaining(JSON.stringify(HOSTILE).replaceAll('<', '\\u003c'))]);
      expect(await tab.barriers()).toEqual([]);
      await tab.page.getByRole('button', { name: 'Zoom in', exact: true }).click();
      await tab.page.getByRole('button', { name: 'Zoom out', exact: true }).click();
      await tab.page.getByRole('link', { name: 'missed STOPPED' }).first().click();
      await tab.page.getByRole('heading', { name: 'missed STOPPED' }).waitFor();
      expect(await tab.page.getByRole('link', { name: 'Fleet' }).count()).toBe(0);
      await tab.close();
    });

    test('a finding in a file has its evidence, and the timeline around it', async () => {
      const [missed] = await query<{ finding_id: string }>(
        reader,
        `SELECT finding_id FROM plegwatch.findings WHERE node = 'node-a' AND kind = 'missed' ORDER BY seq LIMIT 1`,
      );
      const tab = await written('finding', missed?.finding_id ?? '', '--node', 'node-a');
      await tab.page.getByRole('heading', { name: 'Why nothing else explains it' }).waitFor();
      expect(await tab.barriers()).toEqual([]);
      await tab.page.getByRole('link', { name: 'See it on the timeline of node-a' }).click();
      await tab.page.getByRole('region', { name: 'Findings', exact: true }).waitFor();
      await tab.close();
    });

    test('a file that cannot be written is named in the error', async () => {
      const file = join(folder, 'missing', 'a.html');
      const { code, stderr } = await timeline('node-a', '--html', file);
      expect([code, stderr]).toEqual([1, expect.stringContaining(`--html: ${file} cannot be written`)]);
    });
  });
});
