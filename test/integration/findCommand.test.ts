/*
 * `plegwatch find`, `readiness` and `fallbacks` on a week of two clusters whose truth is known, as a reader runs them.
 */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { plegwatch } from '../support/commandLine.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';

interface Missed extends Record<string, unknown> {
  readonly finding_id: string;
  readonly pod: string;
  readonly container_id: string;
  readonly at: Date;
}

let server: TestServer;
let databaseUrl: string;
let reader: string;
let missed: Missed;

needs('postgres')('a command that says what is stored', () => {
  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
    await writeHistory(databaseUrl, { nodes: 6, days: 7, lives: 60, step: 600 });
    reader = await server.reader(databaseUrl);
    const [found] = await query<Missed>(
      databaseUrl,
      `SELECT finding_id, concat_ws('/', pod_namespace, pod_name) AS pod, container_id, coalesce(occurred_at, window_to) AS at
       FROM plegwatch.findings WHERE node = 'east-003' AND kind = 'missed' ORDER BY detected_at LIMIT 1`,
    );
    if (found === undefined) throw new Error('the history has no missed event');
    missed = found;
  });
  afterAll(() => server?.stop());

  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await plegwatch([...args, '--database-url', reader]);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };
  const json = async (...args: string[]) => JSON.parse(await run(...args, '-o', 'json'));
  /** The arguments of the first printed command that begins like this. */
  const printed = (text: string, beginning: string) => {
    const line = text.split('\n').find((each) => each.trim().startsWith(`plegwatch ${beginning}`));
    return line?.trim().split(' ').slice(1) ?? [];
  };

  test('from the name of a pod, two commands lead to the proof of its missed event as an issue, and to its timeline', async () => {
    const found = await run('find', missed.pod, '--cluster', 'east');
    expect(found).toMatch(new RegExp(`^pod ${missed.pod} on east-003, cluster east, last event \\S+Z$`, 'm'));
    expect(found).toContain(`  missed STOPPED app ${missed.at.toISOString().slice(0, 19)}Z\n`);
    const inPod = await plegwatch(['find', missed.pod, '--database-url', reader], {
      KUBERNETES_SERVICE_HOST: '10.96.0.1',
    });
    expect(inPod.stdout).toContain(`    kubectl plegwatch finding ${missed.finding_id} -o markdown\n`);
    const issue = await run(...printed(found, `finding ${missed.finding_id}`));
    expect(issue).toMatch(/^# missed STOPPED: /);
    expect(await run(...printed(found, 'timeline east-003'))).toContain(missed.finding_id);
  });

  test('a pod of the asked cluster and namespace is found however many pods of others begin alike', async () => {
    const write = (cluster: string, namespace: string, count: number) =>
      query(
        databaseUrl,
        `INSERT INTO store.container (container_key, node_id, day, cluster_id, container_id, pod_namespace, pod_name)
         SELECT (SELECT max(container_key) FROM store.container) + i, n.node_id, (now() AT TIME ZONE 'UTC')::date, n.cluster_id, md5($2 || i), $2, 'crowd-' || i
         FROM generate_series(1, $3::int4) i,
              (SELECT node_id, cluster_id FROM store.node JOIN store.cluster USING (cluster_id) WHERE cluster.name = $1 LIMIT 1) n`,
        [cluster, namespace, count],
      );
    await write('west', 'shop', 1_100);
    await write('east', 'other', 1_100);
    await write('east', 'shop', 1);
    const { hits } = await json('find', 'shop/crowd-', '--cluster', 'east');
    expect(hits).toMatchObject([{ cluster: 'east', found: 'pod', text: 'shop/crowd-1' }]);
  });

  test('a node, a pod with or without its namespace, a container and a finding are found, the node with its missed events', async () => {
    const [namespace, name = ''] = missed.pod.split('/');
    const pod = { cluster: 'east', node: 'east-003', found: 'pod', text: missed.pod };
    for (const [text, hit] of [
      [name, pod],
      [`${namespace}/${name}`, pod],
      [missed.container_id, { ...pod, found: 'container', text: missed.container_id }],
      [missed.finding_id, { ...pod, found: 'finding', text: missed.finding_id }],
    ] as const) {
      const { hits, cut } = await json('find', text, '--cluster', 'east');
      expect(cut).toBe(false);
      expect(hits).toContainEqual(expect.objectContaining(hit));
      const own = hits.find(({ node, found }: typeof pod) => node === 'east-003' && found === hit.found);
      expect(own.findings).toMatchObject([{ finding_id: missed.finding_id, kind: 'missed' }]);
    }
    const { hits } = await json('find', 'EAST-003');
    const newest = await query<{ id: string }>(
      databaseUrl,
      `SELECT finding_id AS id FROM plegwatch.findings WHERE node = 'east-003' AND kind = 'missed'
       ORDER BY detected_at DESC, finding_id LIMIT 10`,
    );
    expect(hits).toMatchObject([{ found: 'node', text: 'east-003', hasMore: true }]);
    expect(hits[0].findings.map(({ finding_id }: Missed) => finding_id)).toEqual(newest.map(({ id }) => id));
  });

  test('nothing is found of another cluster, of a name that nothing has, or of a text that everything has', async () => {
    const { hits } = await json('find', missed.pod, '--cluster', 'west');
    expect(hits.map(({ cluster }: { cluster: string }) => cluster)).not.toContain('east');
    const none = await plegwatch(['find', "%_'; DROP", '--database-url', reader]);
    expect([none.code, none.stderr]).toEqual([1, expect.stringMatching(/^plegwatch: Nothing is found by /)]);
    expect(none.stderr).toContain('write all of it.  [NOT_FOUND]');
    const short = await plegwatch(['find', ' a ', '--database-url', reader]);
    expect([short.code, short.stderr]).toEqual([2, expect.stringContaining('at least 2 characters')]);
  });

  test('nothing is said to be known of a node without an agent', async () => {
    expect(await run('find', 'east-idle')).toBe(
      'node east-idle, cluster east, never seen\n  No agent ever reported from it: nothing is known of it.\n  plegwatch timeline east-idle --cluster east\n',
    );
  });

  test('readiness counts the nodes of each pool as the view does, in each format', async () => {
    const rows = await query(
      databaseUrl,
      `SELECT cluster, labels ->> 'pool' AS pool, count(*) FILTER (WHERE verdict = 'safe')::int4 AS safe,
              count(*) FILTER (WHERE verdict = 'unsafe')::int4 AS unsafe, count(*) FILTER (WHERE verdict = 'unknown')::int4 AS unknown
       FROM plegwatch.readiness WHERE cluster = 'east' GROUP BY 1, 2 ORDER BY labels ->> 'pool'`,
    );
    expect(rows).toHaveLength(4);
    const read = await json('readiness', '--cluster', 'east');
    expect(read.map(({ reasons, ...counts }: { reasons: string[] }) => counts)).toEqual(rows);
    expect(read.at(-1)).toMatchObject({ pool: null, unknown: 1, reasons: ['no agent reported'] });
    const table = await run('readiness', '--cluster', 'east');
    expect(table).toMatch(/^CLUSTER +POOL +SAFE +UNSAFE +UNKNOWN +WHY NOT SAFE\neast +crio +\d/);
    const csv = await run('readiness', '-o', 'csv');
    expect(csv).toMatch(/^cluster,pool,safe,unsafe,unknown,reasons\neast,crio,\d/);
  });

  test('fallbacks have the node, since when and until when: a time, now, or from when on nobody observed it', async () => {
    const [past] = await json('fallbacks', '--node', 'east-003', '--from', '-8d');
    expect(past).toMatchObject({ cluster: 'east', node: 'east-003', hours: 30, reason: 'StreamBroke' });
    const end = new Date(Date.parse(past.to_at) + 1_000).toISOString();
    expect(await run('fallbacks', '--node', 'east-003', '--from', end)).toBe(
      'No kubelet was seen to fall back in this period.\n',
    );

    const fallBack = (node: string, seenTo: string) =>
      query(
        databaseUrl,
        `WITH fallback AS (
           INSERT INTO store.mode_change (at, not_before, day, node_id, context_id, seq, cluster_id, model, from_mode, to_mode, reason, proof)
           SELECT now() - interval '2 hours', now() - interval '2 hours 10 s', ((now() - interval '2 hours') AT TIME ZONE 'UTC')::date, node_id, context_id,
                  900000000, cluster_id, 'EventedCache', 'Evented', 'Fallback', 'StreamBroke', '{"v": 1}' FROM store.node WHERE name = $1
           RETURNING node_id)
         UPDATE store.epoch e SET kubelet_seen_to = now() + $2::interval FROM fallback f WHERE e.node_id = f.node_id`,
        [node, seenTo],
      );
    await fallBack('east-001', '1 day');
    await fallBack('east-002', '-1 hour');
    // Its agent is silent: nobody observes the kubelet.
    await query(
      databaseUrl,
      `UPDATE store.node SET last_seen = now() - interval '1 hour' WHERE name = 'east-002'`,
    );
    const table = await run('fallbacks', '--cluster', 'east', '--from', '-8d');
    const heading = /^CLUSTER +NODE +SINCE +UNTIL +HOURS +MODE +FINDINGS +KUBELET +WHY$/m;
    expect(table).toMatch(heading);
    expect(table).toMatch(
      /^east +east-001 +\S+Z +now +2\.0 +Fallback +0 +v1\.36\.2 +StreamBroke, it relists/m,
    );
    expect(table).toMatch(/^east +east-002 +\S+Z +unknown from \S+Z on +1\.0 +Fallback/m);
    expect(table).toMatch(/^east +east-003 +\S+T03:12:00Z +\S+T09:12:00Z +30\.0 +Fallback/m);
    expect(table.split('\n')).toHaveLength(5);
    const csv = await run('fallbacks', '--node', 'east-001,east-003', '--from', '-8d', '-o', 'csv');
    expect(csv.split('\n').map((line) => line.split(',')[1])).toEqual([
      'node',
      'east-001',
      'east-003',
      undefined,
    ]);
    const reversed = await plegwatch(['fallbacks', '--from', 'now', '--to', '-1d', '--database-url', reader]);
    expect([reversed.code, reversed.stderr]).toEqual([2, expect.stringContaining('must be before --to')]);
  });

  test('--html - writes the page to standard output as its policy allows it to run', async () => {
    const page = await run('finding', missed.finding_id, '--html', '-');
    expect(page).toMatch(/^<!doctype html>/i);
    const [, script = ''] = /<script type="module">(.*?)<\/script>/s.exec(page) ?? [];
    expect(page).toContain(`script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`);
    expect(page).toContain(missed.finding_id);
  });
});
