/*
 * The questions of docs/how-to/questions.md about many nodes: every query, on a history of two clusters, 100 nodes, three runtimes and seven days,
 * gives the answer that test/support/storedHistory.sql put there.
 */
import { count, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { getViewConfig, type PgColumn } from 'drizzle-orm/pg-core';
import { Client } from 'pg';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as views from '../../src/store/schema/views.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { DOCUMENTED_SQL, NODE_QUESTIONS, QUESTIONS } from '../support/documentedQuestions.ts';
import { emptyFleet, federateGroups } from '../support/fleetDatabase.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';

type Row = Record<string, unknown>;

async function connected(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString });
  await client.connect();
  await client.query("SET TimeZone = 'UTC'");
  return client;
}

const CLUSTERS = ['east', 'west'] as const;
const SIZE = { nodes: 50, days: 7, lives: 120, busy: 10, step: 600 } as const;
/** It takes half a minute, and on a busy machine many times as long. */
const WRITTEN_WITHIN_MS = 1_200_000;
const ROWS_OF_A_VIEW = 5_000;
const DAY_S = 86_400;
const MINUTES_OF_DAY = DAY_S / SIZE.step;

/** The numbers of the nodes in storedHistory.sql. */
const NUMBERS = Array.from({ length: SIZE.nodes }, (_, index) => index + 1);
const POOLS = ['general', 'memory', 'crio'] as const;
const numbersOf = (pool: (typeof POOLS)[number]) => NUMBERS.filter((number) => POOLS[number % 3] === pool);
const ending = (digit: number, numbers: readonly number[] = NUMBERS) =>
  numbers.filter((number) => number % 10 === digit);
const isBusy = (number: number) => number <= SIZE.busy;
const livesOf = (number: number) => (isBusy(number) ? SIZE.lives : SIZE.lives / 5);
const sum = (numbers: readonly number[], of: (number: number) => number) =>
  numbers.reduce((total, number) => total + of(number), 0);
const named = (cluster: string, numbers: readonly number[]) =>
  numbers.map((number) => `${cluster}-${String(number).padStart(3, '0')}`);
const ofBoth = (...numbers: readonly number[]) =>
  CLUSTERS.flatMap((cluster) => named(cluster, numbers)).sort();

/** The containers of a node that a question is about, by their own numbers. */
const containers = (number: number, isMeant: (no: number) => boolean) =>
  Array.from({ length: SIZE.days * livesOf(number) }, (_, no) => no).filter(isMeant);

/** When a container starts, in seconds since the history began. */
function startOf(number: number, no: number): number {
  const lives = livesOf(number);
  return Math.floor(no / lives) * DAY_S + ((no % lives) * 86_200) / lives;
}

/** Whether the stream was broken as it started. */
const isInGap = (number: number, no: number) =>
  number % 10 === 4 && startOf(number, no) >= DAY_S + 10 * 3_600 && startOf(number, no) < DAY_S + 16 * 3_600;

/** The containers whose stop was lost while the stream was watched, and those of them that stayed missed. */
function missesOf(number: number) {
  // None is a multiple of NaN.
  const every = [20, 200][number % 3] ?? Number.NaN;
  const all = containers(number, (no) => no % every === 0 && !isInGap(number, no));
  return { all, lasting: all.filter((no) => (no / every) % 5 !== 4) };
}
const missed = (numbers: readonly number[]) => sum(numbers, (number) => missesOf(number).lasting.length);
const missedInAll = sum(NUMBERS, (number) => missesOf(number).all.length);
const nodes = (rows: readonly Row[]) => [...new Set(rows.map(({ node }) => node))].sort();
const of = (rows: readonly Row[], condition: Row) =>
  rows.filter((row) => Object.entries(condition).every(([key, value]) => row[key] === value));

/** The answers by the history, by the words with which a question begins. */
const ANSWERS: Readonly<Record<string, (rows: readonly Row[]) => void>> = {
  'Which kubelets fell back': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(3)));
    expect(rows[0]).toMatchObject({
      reason: 'StreamBroke',
      our_stream_ended_with: 'UNAVAILABLE',
      runtime_version: '2.0.5',
    });
  },
  'Which events were missed': (rows) => {
    expect(rows).toHaveLength(2 * missed(NUMBERS));
    expect(new Set(rows.map(({ event_type }) => event_type))).toEqual(new Set(['STOPPED']));
  },
  'How long was the published status behind': (rows) => {
    expect(of(rows, { node: 'east-006' })).toMatchObject([
      { missed: '42', shortest_lag_ms: 291_000, longest_lag_ms: 302_000, more_than_ordinary: '42' },
    ]);
  },
  'PLEG was not healthy': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(5)));
    expect(of(rows, { node: 'east-005' })).toMatchObject([
      { kind: 'slow', verdict: 'runtime' },
      { kind: 'unhealthy', verdict: 'runtime' },
    ]);
    const why =
      'both waited for lists; meanwhile all tasks of the node that were not idle waited for its disk for 85 % of the time';
    expect(of(rows, { node: 'west-005' })).toMatchObject([
      { kind: 'slow', verdict: 'runtime', why },
      // Half of what its ten-minute records cover lies after the pressure.
      { kind: 'unhealthy', verdict: 'runtime' },
    ]);
  },
  'Was the node short of CPU, memory or disk time': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(5)));
    const none = { memory_some: '0.00', memory_full: '0.00' };
    for (const row of of(rows, { kind: 'slow', cluster: 'east' }))
      expect(row).toMatchObject({ ...none, cpu_some: '0.20', io_some: '0.00', io_full: '0.00' });
    for (const row of of(rows, { kind: 'slow', cluster: 'west' }))
      expect(row).toMatchObject({ ...none, cpu_some: '0.20', io_some: '0.95', io_full: '0.85' });
  },
  'How many hours did each node spend in fallback': (rows) => {
    expect(rows).toMatchObject(ofBoth(...ending(3)).map((node) => ({ node, hours: '30.0' })));
  },
  'Which pods stayed wrong after a fallback': (rows) =>
    expect(rows).toMatchObject([
      {
        ...{ node: 'west-043', kubelet_version: 'v1.31.9', pod_name: 'job-2-3', event_type: 'STOPPED' },
        ...{ wrong_for_s: 895, never_shown: true },
      },
    ]),
  'What happened on a node at 03:12': (rows) => {
    expect(of(rows, { kind: 'mode' })).toMatchObject([{ what: 'Evented -> Fallback' }]);
    expect(of(rows, { kind: 'session' }).map(({ what }) => what)).toEqual(['opened', 'ended', 'opened']);
    expect(of(rows, { kind: 'gap' })).toMatchObject([{ what: 'stream', detail: 'broken' }]);
  },
  // On node 6, the first of two was not announced.
  'Which containers were OOMKilled or failed': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(2), ...ending(6)));
    expect(of(rows, { node: 'west-002' }).map((row) => [row['exit_code'], row['announced']])).toEqual([
      ['7', true],
      ['7', true],
    ]);
    expect(of(rows, { node: 'east-006', exit_reason: 'OOMKilled' }).map((row) => row['announced'])).toEqual([
      ...[false, true],
      ...[false, true],
      ...[false, true],
    ]);
  },
  'What was the true exit code': (rows) =>
    expect(rows).toMatchObject([
      { pod_name: 'job-0-20', exit_code: '137', exit_reason: 'OOMKilled', said_by: 'status' },
      { pod_name: 'job-0-30', exit_code: '137', exit_reason: 'OOMKilled', said_by: 'event' },
    ]),
  // The last life of the last day.
  'What were the last events of a node': (rows) => {
    expect(rows.map((row) => [row['event_type'], row['container_name']])).toEqual([
      ['DELETED', null],
      ['DELETED', 'app'],
      ['STOPPED', null],
      ['STOPPED', 'app'],
      ['STARTED', 'app'],
    ]);
    expect(new Set(rows.map((row) => row['pod_name']))).toEqual(new Set(['job-6-119']));
  },
  'Is this node, pool or fleet safe': (rows) => {
    // The others had too few events.
    expect(nodes(of(rows, { verdict: 'safe' }))).toEqual(ofBoth(...numbersOf('crio').filter(isBusy)));
    expect(nodes(of(rows, { verdict: 'unsafe' }))).toEqual(
      expect.arrayContaining(ofBoth(...numbersOf('general'), ...ending(3))),
    );
    expect(of(rows, { node: 'east-idle' })).toMatchObject([
      { verdict: 'unknown', reason: 'no agent reported' },
    ]);
    expect(of(rows, { node: 'east-003' })).toMatchObject([{ reason: 'its kubelet fell back once' }]);
  },
  'Is this pool safe': (rows) => {
    const fallbacks = (pool: (typeof POOLS)[number]) => `${ending(3, numbersOf(pool)).length}`;
    const count = (pool: (typeof POOLS)[number]) => `${numbersOf(pool).length}`;
    expect(of(rows, { cluster: 'west' })).toMatchObject([
      {
        pool: 'crio',
        verdict: 'unsafe',
        nodes: count('crio'),
        safe: '3',
        unsafe: fallbacks('crio'),
        missed: '0',
      },
      { pool: 'general', nodes: count('general'), unsafe: count('general'), fallbacks: fallbacks('general') },
      { pool: 'memory', nodes: count('memory'), fallbacks: fallbacks('memory') },
    ]);
    expect(of(rows, { cluster: 'east', pool: null })).toMatchObject([{ nodes: '1', verdict: 'unknown' }]);
  },
  'How does the latency of relists grow': (rows) => {
    // Nodes 8 have kept 800 exited containers of each of seven days.
    const classOf = (number: number) =>
      Math.floor((20 + (number % 50) + (number % 10 === 8 ? 800 * SIZE.days : 0)) / 10) * 10;
    const classes = [...new Set(NUMBERS.map(classOf))]
      .toSorted((a, b) => a - b)
      .map((from) => [
        from,
        // Each row is about as many minutes as there are between two of them.
        `${(SIZE.step / 60) * MINUTES_OF_DAY * NUMBERS.filter((number) => classOf(number) === from).length}`,
      ]);
    expect(rows.map(({ containers_from, minutes }) => [containers_from, minutes])).toEqual([
      ...classes,
      ...classes,
    ]);
  },
  'Where did two containers of one name': (rows) => expect(nodes(rows)).toEqual(ofBoth(...ending(6))),
  // One node of ten was not watched for six hours.
  'How complete is the evidence': (rows) => {
    expect(rows).toHaveLength(14);
    expect(of(rows, { cluster: 'east' }).map(({ streamed }) => Number(streamed))).toEqual([
      1, 0.975, 1, 1, 1, 1, 1,
    ]);
    expect(new Set(rows.map(({ listed }) => Number(listed)))).toEqual(new Set([1]));
  },
  'Which namespaces churn most': (rows) => {
    expect(of(rows, { cluster: 'west' })).toMatchObject([
      { pod_namespace: 'shop', started: `${0.75 * sum(NUMBERS, livesOf)}` },
      { pod_namespace: 'batch', started: `${0.25 * sum(NUMBERS, livesOf)}` },
    ]);
  },
  'Which pods can have lost events': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(7)));
    expect(new Set(rows.map(({ discarded }) => discarded))).toEqual(new Set(['5']));
    // From 07:00 to 07:10 of the second day, and a relist of 300 s before.
    const [from, to] = [DAY_S + 25_200 - 300, DAY_S + 25_800];
    const changed = (of: number) =>
      containers(of, (no) =>
        [0.1, 1.2, 60, 61, 70, 80].some((after) => {
          const window = Math.floor((startOf(of, no) + after) / 5) * 5;
          return window <= to && window + 5 >= from;
        }),
      ).map((no) => `${(no % livesOf(of)) % 4 === 0 ? 'batch' : 'shop'}/job-1-${no % livesOf(of)}`);
    expect(changed(7).length).toBeGreaterThan(0);
    for (const number of ending(7)) {
      const [row] = of(rows, { node: `west-${String(number).padStart(3, '0')}` });
      expect(row?.['pod_names'] ?? []).toEqual(changed(number).sort());
      expect(row?.['pods']).toBe(`${changed(number).length}`);
    }
  },
  'How often did STOPPED come before': (rows) => {
    const onLastDay = (number: number, isMeant: (no: number) => boolean) =>
      containers(number, (no) => startOf(number, no) >= (SIZE.days - 1) * DAY_S && isMeant(no)).length;
    const reversed = sum(ending(8, numbersOf('crio')), (number) =>
      onLastDay(number, (no) => no % 400 === 350),
    );
    expect(reversed).toBeGreaterThan(0);
    expect(rows.map((row) => [row['cluster'], row['runtime_name'], Number(row['stopped_first'])])).toEqual(
      CLUSTERS.flatMap((cluster) => [
        [cluster, 'containerd', 0],
        [cluster, 'containerd', 0],
        [cluster, 'cri-o', reversed],
      ]),
    );
    // Two of both events came of each.
    expect(of(rows, { cluster: 'east', runtime_name: 'cri-o' })[0]?.['containers']).toBe(
      `${sum(numbersOf('crio'), (number) => onLastDay(number, () => true))}`,
    );
  },
  "Where does a container's status contradict": (rows) => {
    expect(new Set(rows.map(({ kind, cause }) => `${kind} ${cause}`))).toEqual(
      new Set(['regression state_went_back', 'missed runtime_state_late']),
    );
    expect(
      of(rows, { cluster: 'west', kind: 'regression' }).reduce(
        (total, row) => total + Number(row['nodes']),
        0,
      ),
    ).toBe(ending(8).length);
  },
  'How much later do statuses come': (rows) => {
    const east = of(rows, { cluster: 'east' });
    expect(
      east.map((row) => [row['mode'], row['event_type'], row['p50_at_least_ms'], row['p50_at_most_ms']]),
    ).toEqual([
      ['Evented', 'STARTED', 4_900, 5_100],
      ['Evented', 'STOPPED', 4_900, 5_100],
      ['EventedHint', 'STARTED', 400, 600],
      ['EventedHint', 'STOPPED', 400, 600],
      ['Generic', 'STARTED', 400, 600],
      ['Generic', 'STOPPED', 400, 600],
    ]);
    // Every two hours of two days; switched off after twelve.
    expect([east[0]?.['statuses'], east[2]?.['statuses']]).toEqual([
      `${(SIZE.nodes - ending(0).length) * 24}`,
      `${ending(0).length * 6}`,
    ]);
  },
  'What did the kubelet know': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(0)));
    const late = { kubelet_at_least_ms: 11_000, kubelet_at_most_ms: 40_000 };
    const published = { kubelet_at_most_ms: 640, publishing_min_ms: 290_360, publishing_max_ms: 302_000 };
    // It was upgraded on the fourth day.
    const misses = missesOf(30).all.filter((no) => no >= 3 * livesOf(30));
    expect(of(rows, { node: 'east-030' })).toMatchObject([
      { verdict: 'noticed late', changes: '1', ...late, publishing_min_ms: null, publishing_max_ms: null },
      { verdict: 'published late', changes: `${misses.length}`, kubelet_at_least_ms: 0, ...published },
    ]);
  },
  'How late does the kubelet notice': (rows) => {
    const hours = ending(0).length * 2 * (3_600 / SIZE.step);
    expect(of(rows, { cluster: 'east' })).toMatchObject([
      {
        mode: 'EventedHint',
        event_type: 'STARTED',
        transitions: `${hours * (24 * 2 + 11)}`,
        p99_at_most_ms: 2,
      },
      {
        mode: 'EventedHint',
        event_type: 'STOPPED',
        transitions: `${hours * (24 * 2 + 11)}`,
        p99_at_most_ms: 2,
      },
      { mode: 'Generic', event_type: 'STARTED', transitions: `${hours * 36}`, p99_at_most_ms: 2 },
      { mode: 'Generic', event_type: 'STOPPED', transitions: `${hours * 36}`, p99_at_most_ms: 512 },
    ]);
  },
  'What did the kubelet discard': (rows) => {
    expect(of(rows, { node: 'west-007' })).toMatchObject([
      { discarded_by_kubelet: '5', not_delivered_to_agent: `${missed([7])}` },
    ]);
    expect(of(rows, { node: 'west-006' })).toMatchObject([
      { discarded_by_kubelet: '0', not_delivered_to_agent: `${missed([6])}` },
    ]);
  },
  'How does the rate of misses differ': (rows) => {
    const missedWith = (version: string) =>
      of(rows, { cluster: 'east', runtime_version: version }).reduce(
        (total, row) => total + Number(row['missed']),
        0,
      );
    expect(['2.0.5', '2.1.4', '1.33.1'].map(missedWith)).toEqual(
      POOLS.map((pool) => missed(numbersOf(pool))),
    );
    for (const { low, per_million: rate, high } of rows) {
      expect(Number(low)).toBeLessThanOrEqual(Number(rate));
      expect(Number(high)).toBeGreaterThan(Number(rate));
    }
  },
  'How did latency change with the upgrade': (rows) =>
    expect(of(rows, { cluster: 'east' }).map((row) => row['kubelet_version'])).toEqual([
      'v1.35.4',
      'v1.36.2',
      'v1.37.2',
    ]),
  'How did latency develop': (rows) =>
    expect(of(rows, { cluster: 'east' }).reduce((total, row) => total + Number(row['relists']), 0)).toBe(
      (SIZE.nodes * SIZE.days * DAY_S) / 5,
    ),
  'Does the kubelet wait for lists': (rows) => {
    expect(nodes(rows)).toEqual(named('east', ending(5).slice(0, 4)));
    const minutes = SIZE.days * MINUTES_OF_DAY;
    expect(rows[0]).toMatchObject({
      sandbox_list_ms: 20 * minutes,
      // One of these minutes lasted as long as its lists.
      container_list_ms: 30 * (minutes - 1) + SIZE.step * 1_000 - 20,
      ...{ sandbox_statuses: String(2 * minutes), sandbox_status_ms: 4 * minutes },
      ...{ container_statuses: String(4 * minutes), container_status_ms: 6 * minutes, errors: '0' },
    });
  },
  'Which node nears the limit of a list': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(8)));
    expect(of(rows, { node: 'east-048' })).toMatchObject([
      { mib: '9.2', days_left: expect.stringMatching(/^[56]$/), containers: 5_668, exited_containers: 5_600 },
    ]);
  },
  'Which pod makes the relist hang': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(1)));
    expect(of(rows, { node: 'east-001' })).toMatchObject([
      {
        pod_name: 'job-3-25',
        container_name: null,
        timed_out: true,
        longest_ms: 5_000,
        slow: '3',
        asked: '9',
      },
    ]);
  },
  "Which container's lock": (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(8)));
    expect(of(rows, { node: 'east-008' })).toMatchObject([
      {
        ...{ list_call: 'ListContainers', verdict: 'container', container_name: 'app' },
        ...{ asked: 40, quick: 39, unanswered: 1 },
      },
    ]);
  },
  'Which nodes have no working agent': (rows) =>
    expect(rows).toMatchObject([{ node: 'east-idle', mode_reason: 'NeverSeen' }]),
  'When did a Node say': (rows) =>
    expect(of(rows, { node: 'east-005' }).map(({ status }) => status)).toEqual(['False', 'True']),
  'Which Nodes were not Ready': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(5), ...ending(8), ...ending(9)));
    expect(
      ofBoth(5, 8, 9)
        .slice(3)
        .flatMap((node) => of(rows, { node })),
    ).toMatchObject([
      { node: 'west-005', minutes: '7.0', causes: ['pleg'] },
      { node: 'west-008', minutes: '30.0', status: 'Unknown', causes: ['kubelet_silent'] },
      { node: 'west-009', minutes: '2.0', causes: ['network'] },
    ]);
  },
  'How much work does Evented PLEG save': (rows) => {
    expect(of(rows, { in_fallback: true }).map((row) => Number(row['relists_per_minute']))).toEqual([60, 60]);
    expect(of(rows, { cluster: 'east' }).map((row) => Number(row['kubelet_cpu_share']))).toEqual([
      0.03, 0.05,
    ]);
    expect(of(rows, { in_fallback: false }).map((row) => Number(row['relists_per_minute']))).toEqual([
      0.2, 0.2,
    ]);
  },
  'Which containers lived too briefly': (rows) =>
    expect(of(rows, { cluster: 'east' }).reduce((total, row) => total + Number(row['short_lives']), 0)).toBe(
      sum(NUMBERS, (number) => containers(number, (no) => no % 50 === 7).length),
    ),
  'Which broken streams cost a fallback': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(3), ...ending(4)));
    const costly = rows.filter(({ fell_back_at }) => fell_back_at !== null);
    expect(nodes(costly)).toEqual(ofBoth(...ending(3)));
    expect(new Set(costly.map(({ hours }) => hours))).toEqual(new Set([30]));
  },
  'Which findings resolved late': (rows) =>
    expect(rows).toMatchObject(
      CLUSTERS.map((cluster) => ({ cluster, resolved: `${missedInAll - missed(NUMBERS)}`, median_s: 40 })),
    ),
  'Which nodes behave unlike': (rows) => expect(nodes(rows)).toEqual(ofBoth(...numbersOf('general'))),
  'Does it depend on the pool': (rows) => {
    // Within three days.
    const ofSpot = missesOf(9).lasting.filter((no) => no < 3 * livesOf(9)).length;
    expect(of(rows, { cluster: 'east' }).map((row) => [row['pool'], Number(row['missed'])])).toEqual([
      ['crio', 0],
      ['general', missed(numbersOf('general')) - ofSpot],
      ['memory', missed(numbersOf('memory'))],
      ['spot', ofSpot],
    ]);
  },
  // The nodes of each pool that end with 4 lack six hours of a day.
  'In which pools is the evidence incomplete': (rows) =>
    expect(of(rows, { cluster: 'east' })).toMatchObject(
      (['crio', 'general', 'memory'] as const).map((pool) => {
        const count = numbersOf(pool).length - (pool === 'general' ? 1 : 0);
        return {
          ...{ pool, nodes: `${count}` },
          streamed: (1 - (0.25 * ending(4, numbersOf(pool)).length) / count).toFixed(3),
        };
      }),
    ),
  'Which Nodes changed their kernel': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(9));
    expect(rows[0]).toMatchObject({
      ...{ kernel_before: '6.8.0-45-generic', kernel_version: '6.8.0-50-generic' },
      ...{ pool_before: 'spot', pool: 'general' },
    });
  },
  'Which alerts would have fired': (rows) => {
    expect(nodes(rows)).toEqual(ofBoth(...ending(5)));
    expect(rows[0]).toMatchObject({ max_ms: 12_000 });
  },
};

describe('docs/how-to/questions.md', () => {
  it('has one query for each question', () => {
    const questions = [...QUESTIONS, ...NODE_QUESTIONS];
    for (const { heading, sql } of questions) expect(sql, heading).toContain('SELECT');
    expect(DOCUMENTED_SQL).toHaveLength(questions.length);
  });

  it('has at least 25 questions whose answer is known here', () => {
    expect(QUESTIONS.length).toBeGreaterThanOrEqual(25);
    for (const { heading } of QUESTIONS)
      expect(
        Object.keys(ANSWERS).filter((begin) => heading.startsWith(begin)),
        heading,
      ).toHaveLength(1);
  });
});

needs('postgres')('the questions of docs/how-to/questions.md', () => {
  let server: TestServer;
  let client: Client;
  let fleet: Client;
  let agents: Client;

  beforeAll(async () => {
    server = await startServer();
    const databaseUrl = await server.database();
    const reader = await server.reader(databaseUrl);
    await writeHistory(databaseUrl, SIZE);
    agents = new Client({ connectionString: databaseUrl });
    await agents.connect();
    client = await connected(reader);
    // A reader of one cluster has no rows of another one: as if each had a database of its own.
    const groups: Record<string, string> = {};
    for (const cluster of CLUSTERS) {
      const url = await server.role(databaseUrl, cluster);
      await query(databaseUrl, 'SELECT store.grant_reader($1, $2)', [new URL(url).username, cluster]);
      groups[cluster] = url;
    }
    const fleetUrl = await emptyFleet(server);
    await federateGroups(fleetUrl, groups);
    fleet = await connected(fleetUrl);
  }, WRITTEN_WITHIN_MS);
  afterAll(async () => {
    await client?.end();
    await fleet?.end();
    await agents?.end();
    await server?.stop();
  });

  const both = QUESTIONS.flatMap((question) =>
    (['one database', 'a fleet of two'] as const).map((where) => ({ ...question, where })),
  );
  it.each(both)(
    '"$heading", asked of $where, has the known answer',
    async ({ where, heading, sql, columns }) => {
      // However long the questions before took, the agents still run.
      await agents.query('UPDATE store.epoch SET last_seen = now(), kubelet_seen_to = now()');
      await agents.query('UPDATE store.node SET last_seen = now() WHERE last_seen IS NOT NULL');
      const { rows, fields } = await (where === 'one database' ? client : fleet).query<Row>(sql);
      const names = fields.map(({ name }) => name);
      expect(names[0]).toBe('cluster');
      if (columns.length > 0) expect(names).toEqual(columns);
      ANSWERS[Object.keys(ANSWERS).find((begin) => heading.startsWith(begin)) ?? '']?.(rows);
    },
  );

  it('a column of a view that src/store/schema calls not null has no null', async () => {
    const db = drizzle(client);
    const empty: string[] = [];
    for (const [name, view] of Object.entries(views)) {
      const columns = Object.entries(getViewConfig(view).selectedFields as Record<string, PgColumn>);
      const notNull = columns.filter(([, column]) => column.notNull);
      // Some views take long for a week of 100 nodes.
      const rows = db.select().from(view).limit(ROWS_OF_A_VIEW).as('rows');
      const nulls = notNull.map(([key]) => [
        key,
        sql`count(*) FILTER (WHERE ${sql.identifier(key)} IS NULL)::int4`,
      ]);
      const [counted] = await db.select({ all: count(), ...Object.fromEntries(nulls) }).from(rows);
      const { all, ...found } = v.parse(v.record(v.string(), v.number()), counted);
      expect({ name, found }).toEqual({ name, found: Object.fromEntries(notNull.map(([key]) => [key, 0])) });
      if (all === 0) empty.push(name);
    }
    // Objects that the history has none of, and that the questions do not ask about.
    expect(empty.sort()).toEqual(['listCall', 'rejected', 'relists', 'unwrittenEnd']);
  });
});
