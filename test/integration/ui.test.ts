/*
 * `plegwatch ui` as it is run: on a real Postgres, as a reader of one cluster, with a real API server that says who may read.
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { where } from '../../devtools/localServices/where.ts';
import { MAX_INT4 } from '../../src/protocol/record.ts';
import { withClient } from '../../src/store/connection.ts';
import { command } from '../../src/store/statement.ts';
import type {
  ChangeAnswer,
  ErrorAnswer,
  FallbacksAnswer,
  FindingAnswer,
  FleetAnswer,
  HoursAnswer,
  NeighboursAnswer,
  PoolAnswer,
  SearchAnswer,
  TimelineAnswer,
  UnobservedAnswer,
  VersionsAnswer,
} from '../../src/ui/api.ts';
import { agentIncarnation } from '../support/batches.ts';
import { CLI } from '../support/build.ts';
import { plegwatch } from '../support/commandLine.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { evidence, NOT_READY, STATE, UNHEALTHY } from '../support/evidence.ts';
import { needs } from '../support/needs.ts';
import { event, hexId, relistMinute } from '../support/records.ts';
import { answerOf } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const run = promisify(execFile);
const ID = hexId(1);
/** More nodes than the page ever waits for. */
const NODES = 5_000;
const ANSWERS = [
  'fleet',
  'unobserved',
  'timeline',
  'fallbacks',
  'finding',
  'versions',
  'hours',
  'change',
  'search',
  'pool',
  'neighbours',
  'record',
];

let server: TestServer;
let databaseUrl: string;
let api: LocalApiServer;
let ui: LocalPlegwatch;
let origin: string;
/** Tokens of service accounts: one that may get plegreports, and one that may not. */
let viewer: string;
let stranger: string;
let missed: string;

needs(
  'postgres',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('plegwatch ui', () => {
  const kubectl = async (...args: string[]): Promise<string> =>
    (await run(where('kubectl'), ['--kubeconfig', api.kubeconfig, ...args])).stdout.trim();

  beforeAll(async () => {
    [server, api] = await Promise.all([startServer(), startApiServer({ users: { page: [] } })]);
    databaseUrl = await server.database();
    const reader = await server.role(databaseUrl, 'reader');
    // It reads both, so that only the server keeps them apart.
    await query(databaseUrl, `SELECT store.grant_reader($1)`, [new URL(reader).username]);
    await storeEvidence();
    await grant();
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    ui = await startPlegwatch({
      cli: CLI,
      command: 'ui',
      settings: {
        ...{ cluster: 'test', databaseUrl: reader, pageAddress: `127.0.0.1:${port}` },
        kubeconfig: api.kubeconfigOf('page'),
      },
    });
  });
  afterAll(async () => {
    await ui?.stop();
    await Promise.all([server?.stop(), api?.stop()]);
  });

  async function storeEvidence(): Promise<void> {
    const node = agentIncarnation('node-a', 1, 120_000);
    await commitAll(databaseUrl, [node.batch(1, [...evidence(), STATE])]);
    // However long the tests take, it is not silent.
    await query(databaseUrl, "UPDATE store.node SET last_seen = now() + interval '1 day'");
    await query(databaseUrl, UNHEALTHY);
    await query(
      databaseUrl,
      `INSERT INTO store.ready_change SELECT node_id, cluster_id, at, status, reason, '{pleg}' FROM store.node_condition`,
    );
    await query(databaseUrl, NOT_READY);
    const [found] = await query<{ finding_id: string }>(
      databaseUrl,
      `SELECT finding_id FROM plegwatch.findings WHERE kind = 'missed' ORDER BY seq LIMIT 1`,
    );
    missed = found?.finding_id ?? '';
    await query(
      databaseUrl,
      `INSERT INTO store.node_info (node_id, cluster_id, at, labels, os_image, kernel_version)
       SELECT node_id, cluster_id, now(), '{"topology.kubernetes.io/zone": "a", "karpenter.sh/nodepool": "gpu"}', '', ''
       FROM store.node WHERE name = 'node-a'`,
    );
    await query(databaseUrl, `INSERT INTO store.cluster (name) VALUES ('other')`);
    await query(
      databaseUrl,
      `INSERT INTO store.node (cluster_id, name)
       SELECT c.cluster_id, 'idle-' || i FROM store.cluster c, generate_series(1, CASE c.name WHEN 'test' THEN ${NODES} ELSE 1 END) AS i`,
    );
  }

  async function grant(): Promise<void> {
    const role = (name: string, verb: string, resource: string) =>
      kubectl('create', 'clusterrole', name, `--verb=${verb}`, `--resource=${resource}`);
    await role('reads-reports', 'get', 'pods');
    // kubectl refuses a resource that the API server does not have; the definition is not needed to decide about rights.
    const rules = [{ apiGroups: ['plegwatch.dev'], resources: ['plegreports'], verbs: ['get'] }];
    await kubectl('patch', 'clusterrole', 'reads-reports', '--type=merge', '-p', JSON.stringify({ rules }));
    await role(
      'reviews',
      'create',
      'tokenreviews.authentication.k8s.io,subjectaccessreviews.authorization.k8s.io',
    );
    await kubectl('create', 'clusterrolebinding', 'page', '--clusterrole=reviews', '--user=page');
    await kubectl(
      ...['create', 'clusterrolebinding', 'people', '--clusterrole=reads-reports'],
      ...['--user=ann', '--group=on-call'],
    );
    for (const account of ['viewer', 'stranger']) await kubectl('create', 'serviceaccount', account);
    await kubectl(
      ...['create', 'clusterrolebinding', 'viewer', '--clusterrole=reads-reports'],
      '--serviceaccount=default:viewer',
    );
    [viewer, stranger] = (await Promise.all(
      ['viewer', 'stranger'].map((account) => kubectl('create', 'token', account)),
    )) as [string, string];
  }

  const get = async (path: string, token: string | null = viewer) => {
    const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(`${origin}/api/${path}`, { headers });
    return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) };
  };
  const answer = async <T>(path: string): Promise<T> => {
    const { status, body } = await get(path);
    expect([path, status, body.error]).toEqual([path, 200, undefined]);
    return body;
  };
  const codeOf = async (path: string, token?: string | null) => {
    const { status, body } = await get(path, token);
    return [status, body.error?.code];
  };

  test.each(ANSWERS)(
    '%s is for those who may get plegreports in the cluster, and nobody else',
    async (path) => {
      const anonymous = await get(path, null);
      expect([anonymous.status, anonymous.body.error.code]).toEqual([401, 'TOKEN_REQUIRED']);
      expect(anonymous.headers.get('www-authenticate')).toBe('Bearer');
      expect(anonymous.body.error.cure).toMatch(/kubectl create token/);
      expect(await codeOf(path, `${viewer}x`)).toEqual([401, 'TOKEN_REFUSED']);
      expect(await codeOf(path, stranger)).toEqual([403, 'FORBIDDEN']);
      expect((await get(path, stranger)).body.error.message).toMatch(
        /default:stranger may not get plegreports/,
      );
    },
  );

  test('the fleet has every node, with what is known of it and why nothing is', async () => {
    const { nodes, clusters, leftOut } = await answer<FleetAnswer>('fleet');
    expect(clusters).toEqual([{ name: 'test', nodes: NODES + 1 }]);
    expect([nodes.length, leftOut]).toEqual([NODES + 1, null]);
    expect(nodes.find(({ node }) => node === 'node-a')).toMatchObject({
      ...{ cluster: 'test', pool: 'gpu', agent: 'Reporting', mode: 'Fallback', modeReason: 'StreamBroke' },
      ...{ streamState: 'Active', missed24h: 2, runtimeName: 'containerd' },
      // Watched until its stream broke after a third of its time.
      completeness24h: expect.toSatisfy((share: number) => share > 0 && share < 1),
    });
    expect(nodes[0]).toMatchObject({
      ...{ node: 'idle-1', agent: 'IngestBehind', mode: 'Unknown', modeReason: 'NeverSeen' },
      ...{ missed24h: null, completeness24h: null, lastSeen: null },
    });
  });

  test('unobserved nodes are counted by reason, in the cluster that the server shows', async () => {
    const { nodes, leftOut, reasons, rows } = await answer<UnobservedAnswer>('unobserved');
    expect([nodes, leftOut]).toEqual([NODES + 1, null]);
    expect(new Set(rows.map(({ cluster }) => cluster))).toEqual(new Set(['test']));
    // No controller says that everything is stored that agents sent.
    expect(reasons).toEqual([{ what: 'everything', reason: 'IngestBehind', cause: null, nodes: NODES }]);
    expect(rows).toHaveLength(NODES);
  });

  test('the timeline has each kind of row, and each container once', async () => {
    const timeline = await answer<TimelineAnswer>('timeline?cluster=test&node=node-a');
    const { containers, events, changes, findings, sessions, gaps, modes, conditions, relists } = timeline;
    expect(timeline.empty).toBeNull();
    expect(containers.filter(({ id }) => id === ID)).toHaveLength(1);
    const of = (container: number | null) => (container === null ? null : containers[container]?.id);
    expect(events.rows.map(({ type, container }) => [type, of(container)])).toEqual([['STARTED', ID]]);
    expect(changes.rows).toMatchObject([{ oldState: 'running', newState: 'non-existent' }]);
    expect(of(changes.rows[0]?.container ?? null)).toBe(ID);
    expect(findings.rows.filter(({ kind }) => kind === 'missed')).toHaveLength(2);
    expect(sessions.rows).toMatchObject([{ code: 'UNAVAILABLE', message: 'EOF', events: 4, replayed: 1 }]);
    expect(gaps.rows).toContainEqual(expect.objectContaining({ scope: 'stream', cause: 'broken' }));
    expect(modes.rows.map(({ toMode }) => toMode)).toEqual(['Evented', 'Fallback']);
    expect(conditions.rows).toMatchObject([
      { status: 'False', causes: ['pleg'], message: expect.stringMatching(/^PLEG is not healthy/) },
      { status: 'False', causes: ['network'], message: null },
    ]);
    expect(relists.rows.map(({ relists: n, seconds }) => [n, seconds])).toEqual([
      [12, 60],
      [12, 60],
    ]);
    expect(relists.rows[0]).toMatchObject({ hist: [0, 3, 9], maxMs: 7, kubeletRelists: null });
    expect(relists.rows[1]).toMatchObject({ kubeletRelists: 60 });
    expect(timeline.histBoundsMs).toHaveLength(23);
    for (const rows of [events, changes, findings, sessions, gaps]) expect(rows.cut).toBeNull();
  });

  test('the latest of too many rows are answered, with the time until which some are missing', async () => {
    await query(
      databaseUrl,
      `INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at)
       SELECT gen_random_uuid(), node_id, cluster_id, gen_random_uuid(), 'stream', 'broken',
              '2026-01-01Z'::timestamptz + i * interval '1 second', '2026-01-01Z'::timestamptz + i * interval '1 second'
       FROM store.node, generate_series(0, 2000) AS i WHERE name = 'idle-3'`,
    );
    const { gaps } = await answer<TimelineAnswer>(
      'timeline?cluster=test&node=idle-3&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z',
    );
    expect(gaps.cut).toEqual({ until: '2026-01-01T00:00:00.000000Z' });
    expect(gaps.rows).toHaveLength(2000);
    expect(gaps.rows.at(-1)?.from).toBe('2026-01-01T00:33:20.000000Z');
  });

  test('a timeline without anything says why', async () => {
    const idle = await answer<TimelineAnswer>('timeline?cluster=test&node=idle-1');
    expect(idle.empty).toMatch(/never had an agent/);
    const early = 'timeline?cluster=test&node=node-a&from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z';
    expect((await answer<TimelineAnswer>(early)).empty).toMatch(/^The first agent reported at .* after this/);
  });

  test('a finding has what plegwatch finding prints, and the issue with and without names', async () => {
    const finding = await answer<FindingAnswer>(`finding?id=${missed.toUpperCase()}`);
    expect(finding).toMatchObject({ id: missed, kind: 'missed', eventType: 'STOPPED', node: 'node-a' });
    expect(finding.provenBy).toMatch(/^(A list|An event) /);
    expect(finding.evidence.map(({ title }) => title)).toContain('Why nothing else explains it');
    expect(finding.container).toMatchObject({ id: ID });
    expect(Date.parse(finding.around.from)).toBeLessThan(Date.parse(finding.from ?? ''));
    for (const [issue, ...flags] of [
      [finding.issue.withoutNames],
      [finding.issue.withNames, '--with-names'],
    ] as const) {
      const args = ['finding', missed, '-o', 'markdown', ...flags, '--database-url', databaseUrl];
      expect(issue).toBe((await plegwatch(args)).stdout);
    }
    expect(finding.issue.withoutNames).not.toContain('node-a');
  });

  test('versions have the miss rate with its interval, and readiness', async () => {
    const { missRates, readiness, empty } = await answer<VersionsAnswer>('versions');
    expect(missRates).toMatchObject([{ cluster: 'test', runtimeName: 'containerd', decided: 10, missed: 2 }]);
    expect(missRates[0]?.lowPerMillion).toBeLessThan(missRates[0]?.perMillion ?? 0);
    expect(readiness).toMatchObject([
      { cluster: 'test', pool: 'gpu', safe: 0, unsafe: 1, unknown: 0 },
      { cluster: 'test', pool: null, safe: 0, unsafe: 0, unknown: NODES, reasons: ['no agent reported'] },
    ]);
    expect(empty).toEqual({ missRates: null, readiness: null });
    const early = 'versions?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z';
    const before = await answer<VersionsAnswer>(early);
    expect(before.empty).toMatchObject({ missRates: expect.stringMatching(/./) });
  });

  test('fallbacks by day are those that began on it, and a period without any says so', async () => {
    expect((await answer<FallbacksAnswer>('fallbacks')).days).toMatchObject([
      { cluster: 'test', fallbacks: 1, nodes: 1 },
    ]);
    const early = 'fallbacks?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z';
    expect(await answer<FallbacksAnswer>(early)).toMatchObject({
      days: [],
      empty: expect.stringMatching(/./),
    });
  });

  test('a pool with too many nodes to look at says of how many too little is known, and is called safe by nobody', async () => {
    const pool = await answer<PoolAnswer>('pool?by=pool&cluster=test');
    expect([pool.nodes.length, pool.leftOut, pool.verdict]).toEqual([1000, NODES - 1000, 'unknown']);
    expect(pool.sentence).toContain(`too little is known of ${NODES} of ${NODES} nodes`);
    expect([pool.watched, pool.lines, pool.linesLeftOut]).toEqual([0, [], 0]);
  });

  test('a pool is judged by what was found, and its node is compared in the period that is asked for', async () => {
    const pool = await answer<PoolAnswer>('pool?by=pool&cluster=test&pool=gpu');
    expect(pool).toMatchObject({
      ...{
        verdict: 'unsafe',
        sentence: expect.stringMatching(
          /^Not safe for Evented PLEG: 1 of 1 node is unsafe, because its kubelet fell back once\.$/,
        ),
      },
      nodes: [
        { node: 'node-a', missed: 2, decided: 10, fallbacks: 1, mode: 'Fallback', kubeletVersion: 'v1.36.2' },
      ],
    });
    const [run] = await query<{ started_at: Date; ended_at: Date }>(
      databaseUrl,
      `SELECT min(minute) - interval '1 minute' AS started_at, max(minute) AS ended_at FROM plegwatch.relist_minutes WHERE node = 'node-a'`,
    );
    const of = `neighbours?cluster=test&node=node-a&to=${run?.ended_at.toISOString()}`;
    const before = await answer<NeighboursAnswer>(`${of}&from=${run?.started_at.toISOString()}`);
    expect([before.pool.pool, before.empty]).toEqual(['gpu', 'This node is the only one of its pool.']);
    expect(before.nodes).toMatchObject([{ node: 'node-a', maxMs: 7 }]);
    const never = await answer<NeighboursAnswer>(
      'neighbours?cluster=test&node=node-a&from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00Z',
    );
    expect(never.nodes).toMatchObject([
      { missed: null, watched: null, maxMs: null, p99Ms: null, mode: 'Unknown', kubeletVersion: null },
    ]);
  });

  test('a search finds nodes, pods, containers and findings by a name, its beginning, or an id', async () => {
    const [{ pod_namespace: namespace, pod_name: pod }] = (await query<Record<string, string>>(
      databaseUrl,
      `SELECT pod_namespace, pod_name FROM plegwatch.container_events WHERE pod_name IS NOT NULL LIMIT 1`,
    )) as [Record<string, string>];
    const hits = async (q: string | undefined) =>
      (await answer<SearchAnswer>(`search?q=${encodeURIComponent(q ?? '')}`)).hits;
    const found = (text: string | undefined, kind: string) => [
      expect.objectContaining({ cluster: 'test', node: 'node-a', found: kind, text }),
    ];
    expect(await hits('ODE-')).toEqual(found('node-a', 'node'));
    for (const q of [pod, `${namespace}/${pod}`, pod?.slice(0, 3)])
      expect(await hits(q)).toEqual(found(`${namespace}/${pod}`, 'pod'));
    expect(await hits(ID)).toEqual(found(ID, 'container'));
    expect(await hits(ID.slice(0, 12))).toEqual(expect.arrayContaining(found(ID, 'container')));
    expect(await hits(missed)).toEqual(found(missed, 'finding'));
    const many = await answer<SearchAnswer>('search?q=idle');
    expect([many.hits.length, many.cut]).toEqual([50, true]);
    const none = await answer<SearchAnswer>(`search?q=${encodeURIComponent("%_'; DROP")}`);
    expect([none.hits, none.empty]).toEqual([[], expect.stringMatching(/./)]);
  });

  test('another cluster of the database cannot be seen, as if it were not there', async () => {
    await query(
      databaseUrl,
      `WITH other AS (SELECT cluster_id FROM store.cluster WHERE name = 'other')
       UPDATE store.node SET name = 'secret-1' FROM other WHERE node.cluster_id = other.cluster_id`,
    );
    expect(await codeOf('timeline?cluster=other&node=secret-1')).toEqual([404, 'NOT_FOUND']);
    expect(await codeOf(`finding?id=${missed}&cluster=other`)).toEqual([404, 'NOT_FOUND']);
    for (const path of ['neighbours?cluster=other&node=secret-1', 'record?cluster=other&node=secret-1'])
      expect(await codeOf(path)).toEqual([404, 'NOT_FOUND']);
    for (const pool of ['by=cluster&cluster=other', 'by=pool&cluster=other'])
      expect(await answer<PoolAnswer>(`pool?${pool}`)).toMatchObject({
        nodes: [],
        empty: expect.stringMatching(/./),
      });
    const everywhere = await answer<PoolAnswer>('pool?by=pool');
    expect(everywhere.nodes.every(({ cluster }) => cluster === 'test')).toBe(true);
    expect((await answer<SearchAnswer>('search?q=secret')).hits).toEqual([]);
    expect(
      (await answer<VersionsAnswer>('versions')).readiness.every(({ cluster }) => cluster === 'test'),
    ).toBe(true);
    const { pools, versions } = await answer<HoursAnswer>('hours');
    expect(new Set([...pools, ...versions].map(({ cluster }) => cluster))).toEqual(new Set(['test']));
    expect((await answer<ChangeAnswer>('change')).sentence).not.toContain('other');
  });

  test.each([
    'fleet?node=a',
    'timeline?node=node-a',
    'timeline?cluster=test&node=node-a&from=now',
    'timeline?cluster=test&node=node-a&from=2000-01-01T00:00:00Z',
    'finding',
    'finding?id=1',
    'versions?from=-1',
    'hours?days=0',
    'hours?days=401',
    'change?days=1',
    'search?q=a',
    'pool',
    'pool?by=cluster',
    'pool?by=zone&cluster=test',
    'neighbours?cluster=test',
    'record?cluster=test&node=node-a&id=1',
  ])('%s is refused with what is wrong', async (path) => {
    expect(await codeOf(path)).toEqual([400, 'BAD_PARAMETER']);
  });

  test('a role that may read nothing is told what it lacks', async () => {
    const role = await server.role(databaseUrl, 'nobody');
    await query(databaseUrl, `SELECT store.grant_reader($1, 'other')`, [new URL(role).username]);
    const port = await freePort();
    const settings = { cluster: 'test', databaseUrl: role, pageAddress: `127.0.0.1:${port}` };
    const other = await startPlegwatch({ cli: CLI, command: 'ui', settings });
    try {
      const response = await fetch(`http://127.0.0.1:${port}/api/fleet`);
      expect(await response.json()).toMatchObject({
        nodes: [],
        empty: expect.stringMatching(/grant_reader/),
      });
    } finally {
      await other.stop();
    }
  });

  describe('behind a proxy', () => {
    const startBehindProxy = async (kubeconfig: string) => {
      const port = await freePort();
      const other = await startPlegwatch({
        cli: CLI,
        command: 'ui',
        settings: {
          ...{ cluster: 'test', databaseUrl, pageAddress: `127.0.0.1:${port}`, kubeconfig },
          ...{ userHeader: 'X-Forwarded-User', groupsHeader: 'X-Forwarded-Groups' },
        },
      });
      const ask = async (user: string, groups = '') => {
        const headers = { 'x-forwarded-user': user, 'x-forwarded-groups': groups };
        const response = await fetch(`http://127.0.0.1:${port}/api/search?q=node-a`, { headers });
        const { error } = (await response.json()) as Partial<ErrorAnswer>;
        return { status: response.status, code: error?.code, text: `${error?.message} ${error?.cure}` };
      };
      return { other, ask };
    };

    test('the API server says which users and groups may read', async () => {
      const { other, ask } = await startBehindProxy(api.kubeconfigOf('page'));
      try {
        expect((await ask('ann')).status).toBe(200);
        expect((await ask('bob', 'dev,on-call')).status).toBe(200);
        expect(await ask('bob', 'dev')).toMatchObject({
          ...{ status: 403, code: 'FORBIDDEN' },
          text: expect.stringMatching(/^bob may not get plegreports.* ClusterRole/),
        });
        expect(await ask('bob', 'system:masters')).toMatchObject({ status: 403 });
        expect(await ask('x'.repeat(257))).toMatchObject({ status: 401, code: 'USER_UNKNOWN' });
        // Where tokens are asked for, no header names a user.
        const response = await fetch(`${origin}/api/fleet`, { headers: { 'x-forwarded-user': 'ann' } });
        expect(response.status).toBe(401);
      } finally {
        await other.stop();
      }
    });

    test('nobody may read while the API server is away, and it says what to do', async () => {
      const folder = temporaryFolder('kubeconfig', undefined);
      const kubeconfig = join(folder.dir, 'away');
      const nowhere = `https://127.0.0.1:${await freePort()}`;
      writeFileSync(kubeconfig, readFileSync(api.kubeconfigOf('page'), 'utf8').replace(api.url, nowhere));
      const { other, ask } = await startBehindProxy(kubeconfig);
      try {
        expect(await ask('ann')).toMatchObject({
          ...{ status: 503, code: 'ACCESS_UNKNOWN' },
          text: expect.stringMatching(/API server could not be asked .*Try again; the log/),
        });
        expect(other.log()).toContain('the API server could not be asked who may read');
      } finally {
        await other.stop();
        folder.remove();
      }
    });

    test('without an API server it does not start, unless everybody may read whom the proxy lets through', async () => {
      const args = [
        'ui',
        '--cluster',
        'test',
        '--database-url',
        databaseUrl,
        '--page-address',
        '127.0.0.1:0',
      ];
      const { code, stderr } = await plegwatch([...args, '--user-header', 'X-Forwarded-User']);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/--authorization proxy.*\[UI_UNPROTECTED\]/s),
      ]);
    });
  });

  test('an account that may not review tokens is refused at the start, and says what to grant', async () => {
    await kubectl('delete', 'clusterrolebinding', 'page');
    const args = ['ui', '--cluster', 'test', '--database-url', databaseUrl, '--page-address', '127.0.0.1:0'];
    const ended = await plegwatch([...args, '--kubeconfig', api.kubeconfigOf('page')]);
    expect(ended.stderr).toMatch(
      /create tokenreviews.*\n.*Grant the verb create on tokenreviews.* \[KUBE_REFUSED\]/,
    );
    expect(ended.code).toBe(1);
    const proxied = await plegwatch([
      ...[...args, '--kubeconfig', api.kubeconfigOf('page')],
      ...['--user-header', 'X-Forwarded-User'],
    ]);
    expect(proxied.stderr).toMatch(/Grant the verb create on subjectaccessreviews.* \[KUBE_REFUSED\]/);
    // A reader whom it does not remember.
    const [first = ''] = [await kubectl('create', 'token', 'stranger', '--duration', '20m')];
    expect(await codeOf('fleet', first)).toEqual([503, 'ACCESS_UNKNOWN']);
    await kubectl('create', 'clusterrolebinding', 'page', '--clusterrole=reviews', '--user=page');
  });

  test('a page that other machines reach is not served without access', async () => {
    const { code, stderr } = await plegwatch(['ui', '--database-url', databaseUrl, '--page-address', ':0']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/\[UI_UNPROTECTED\]/)]);
  });

  test('clients that ask for the fleet at the same time share one answer, and later get a newer one', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => answer<FleetAnswer>('fleet')));
    const seen = new Set(answers.map(({ now }) => now));
    // An answer holds for five seconds: a busy machine takes up some of the requests later.
    expect(seen.size).toBeLessThan(answers.length / 2);
    expect(await codeOf('fleet', stranger)).toEqual([403, 'FORBIDDEN']);
    await waitFor('a newer answer', async () => !seen.has((await answer<FleetAnswer>('fleet')).now));
  });

  test('an event says how its container ended, if it knows', async () => {
    const node = agentIncarnation('node-exits', 1, 120_000);
    const exits = [{ code: 137, reason: 'OOMKilled' }, { code: null, reason: 'Error' }, undefined] as const;
    const records = exits.map((exit, i) =>
      event(i + 1, { eventType: 2, ...(exit === undefined ? {} : { exit }) }),
    );
    await commitAll(databaseUrl, [node.batch(1, records)]);
    const { events } = await answer<TimelineAnswer>('timeline?cluster=test&node=node-exits');
    expect(events.rows.map(({ exit }) => exit).sort()).toEqual(['exit 137 OOMKilled', 'exit ? Error', null]);
  });

  test('minutes with the largest numbers that an agent may send are answered', async () => {
    const node = agentIncarnation('node-max', 1, 120_000);
    const kubelet = {
      scraped: { from: 0, to: 0 },
      ...{ relists: MAX_INT4, hist: [MAX_INT4], intervals: MAX_INT4, intervalSum: MAX_INT4 },
      ...{ lastSeenAge: null, discarded: MAX_INT4, streamErrors: MAX_INT4, listP99: 0, resident: 0 },
    };
    const most = { relists: MAX_INT4, errors: MAX_INT4, hist: Array(64).fill(MAX_INT4), kubelet };
    await commitAll(databaseUrl, [node.batch(1, Array(3).fill(relistMinute(most)))]);
    const { relists } = await answer<TimelineAnswer>('timeline?cluster=test&node=node-max');
    expect(relists.rows).toMatchObject([
      { relists: 3 * MAX_INT4, errors: 3 * MAX_INT4, kubeletRelists: 3 * MAX_INT4 },
    ]);
  });

  test('however much is asked for, nobody is told that Postgres does not answer', async () => {
    await withClient({ databaseUrl }, 'test', async (sql) => {
      // Readers of a node wait for this transaction.
      await sql.run(command('BEGIN; LOCK TABLE store.node IN ACCESS EXCLUSIVE MODE'));
      const codes = await Promise.all(Array.from({ length: 6 }, () => codeOf('search?q=node-a')));
      // Four were stopped after 15 s, and the others waited for as long.
      expect(codes.map(([status]) => status)).toEqual(Array(6).fill(503));
      expect(codes.map(([, code]) => code)).not.toContain('DATABASE_AWAY');
    });
    expect((await get('search?q=node-a')).status).toBe(200);
  });

  test('while Postgres is away each request says so, and when it is back they are answered again', async () => {
    await server.part.kill();
    // The fleet's answer is remembered, on a busy machine for up to a minute: these are not.
    for (const path of ['search?q=node-a', 'timeline?cluster=test&node=node-a']) {
      expect(await codeOf(path)).toEqual([503, 'DATABASE_AWAY']);
    }
    await waitFor('it is not ready', async () => (await ui.ask('/readyz'))?.status === 503);
    expect((await answerOf(ui, '/livez'))?.status).toBe(200);
    await server.part.restart();
    await waitFor('it is ready', async () => (await ui.ask('/readyz'))?.status === 200);
    expect((await get('search?q=node-a')).status).toBe(200);
    expect((await answerOf(ui, '/metrics'))?.body).toMatch(
      /plegwatch_ui_requests_total\{status="5xx"\} [1-9]/,
    );
    expect(ui.log()).not.toContain(viewer);
  });
});
