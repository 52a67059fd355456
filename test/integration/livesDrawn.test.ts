/*
 * The lives of containers that the page draws, and how long they looked alive after their end, against SQL and against what happened: for random
 * histories with agents that are silent, restarted or do not list, and with answers that are cut.
 */
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { ContainerIdentity, EvidenceRecord, PlegState } from '../../src/protocol/record.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createReader, type Reader } from '../../src/ui/answers/reader.ts';
import { timelineAnswer } from '../../src/ui/answers/timeline.ts';
import type { Ghost } from '../../src/ui/page/timeline/ghosts.ts';
import type { LifePart } from '../../src/ui/page/timeline/lives.ts';
import { podLives } from '../../src/ui/page/timeline/podLives.ts';
import {
  anyRuns,
  BEGAN,
  gap,
  HOUR_MS,
  HOURS,
  MINUTE,
  MINUTE_MS,
  type More,
  type Period,
  type Run,
  SECOND,
  writeRuns,
} from '../support/agentRuns.ts';
import { CLUSTER } from '../support/batches.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { STATUS_LAG } from '../support/ghostEvidence.ts';
import { needs } from '../support/needs.ts';
import { event, hexId, missedFinding } from '../support/records.ts';
import { runsOf } from '../support/runs.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_126);
/** Between two lists, in minutes. */
const LIST = 1 / 12;
/** The clocks of an epoch are placed to within this. */
const BLUR_MS = 1_000;
const ROOM = { mattering: 1_000, others: 1_000 };

/** The true life of a container. */
interface Happened {
  readonly n: number;
  /** In minutes: CREATED, STARTED, STOPPED and DELETED; those that are still to come are infinite. */
  readonly at: readonly [created: number, started: number, stopped: number, deleted: number];
  /** Its STOPPED is lost. */
  readonly isLost: boolean;
  /** For how long after its stop each showed it running, in milliseconds. */
  readonly shown: { readonly kubelet: number; readonly api: number };
  /** Somebody watched the kubelet's own status. */
  readonly isKubeletWatched: boolean;
}

/** The actions of an agent in a run, besides watching the stream. */
interface History {
  readonly runs: readonly Run[];
  readonly containers: readonly Happened[];
  /** When no list was answered. */
  readonly unlisted: readonly Period[];
  /** More gaps than an answer has, from here on. */
  readonly broken: number | null;
}

const STATES: readonly PlegState[] = ['non-existent', 'unknown', 'running', 'exited', 'non-existent'];
const identityOf = (n: number): ContainerIdentity => ({
  ...{ id: hexId(n), pod: `pod-${n}`, sandbox: hexId(0xa00 + n), isSandbox: false },
  ...{ podUid: `uid-${n}`, namespace: 'shop', container: 'app', attempt: 0 },
});

/** The last list before and the first one after a moment: in a run, and not while none was answered. */
function listsAround(at: number, run: Run, unlisted: readonly Period[]): Period | undefined {
  const isAnswered = (list: number) => !unlisted.some(([from, to]) => list > from && list < to);
  const place = Math.floor((at - run.from) / LIST);
  let [before, after] = [place, place + 1];
  while (before >= 0 && !isAnswered(run.from + before * LIST)) before -= 1;
  while (run.from + after * LIST <= run.to && !isAnswered(run.from + after * LIST)) after += 1;
  const period: Period = [run.from + before * LIST, run.from + after * LIST];
  return before < 0 || period[1] > run.to ? undefined : period;
}

/** The agent's other records of the containers in a run. */
function moreOf(run: Run, { containers, unlisted }: History): More {
  const failed = unlisted
    .filter(([from, to]) => from < run.to && to > run.from)
    .map(([from, to]) => {
      const end = to >= run.to ? null : inRun(run, to);
      return gap('list', inRun(run, Math.max(from, run.from)), end, 'failed');
    });
  const objects = containers.map(({ n }) => identityOf(n));
  return { records: [...failed, ...containers.flatMap((each) => recordsOf(each, run, unlisted))], objects };
}

const inRun = (run: Run, minute: number): number => Math.round((minute - run.from) * MINUTE);

function recordsOf(container: Happened, run: Run, unlisted: readonly Period[]): EvidenceRecord[] {
  const { n, at, isLost } = container;
  const told = { containerId: hexId(n), isSandbox: false };
  const seen: { readonly stage: number; readonly lists: Period }[] = [];
  const records: EvidenceRecord[] = [];
  for (const [stage, moment] of at.entries()) {
    if (moment < run.from || moment > run.to) continue;
    const lists = listsAround(moment, run, unlisted);
    const isWatched = run.watched.some(([from, to]) => moment > from && moment < to - LIST);
    const isMissed = isWatched && isLost && stage === 2;
    if (isWatched && !isMissed) {
      const createdNs = String(BigInt(Math.round(BEGAN * 1000 + moment * MINUTE)) * 1000n);
      records.push(event(1, { ...told, eventType: stage, t: inRun(run, moment) + 2_000, createdNs }));
    }
    if (lists === undefined) continue;
    if (isMissed) records.push(...missOf(container, run, lists));
    seen.push({ stage, lists });
  }
  // Changes between two lists are one change, or none that they see.
  const changes = Map.groupBy(seen, ({ lists }) => lists.join());
  return [...records, ...[...changes.values()].flatMap((stages) => changeOf(hexId(n), run, stages))];
}

function changeOf(
  containerId: string,
  run: Run,
  stages: readonly { readonly stage: number; readonly lists: Period }[],
): EvidenceRecord[] {
  const [first, last] = [stages[0], stages.at(-1)];
  if (first === undefined || last === undefined) return [];
  const [oldState, newState] = [STATES[first.stage], STATES[last.stage + 1]];
  if (oldState === undefined || newState === undefined || oldState === newState) return [];
  const window = { from: inRun(run, first.lists[0]), to: inRun(run, first.lists[1]) };
  const told = { containerId, isSandbox: false };
  return [{ type: 'relist_change', ...told, t: window.to, window, oldState, newState }];
}

/** The finding about a STOPPED that was lost, unless its agent ended before the verdict. */
function missOf({ n, at, shown, isKubeletWatched }: Happened, run: Run, lists: Period): EvidenceRecord[] {
  const [from, to] = lists.map((list) => inRun(run, list));
  const found = (to ?? 0) + 30 * SECOND;
  if (found > inRun(run, run.to)) return [];
  const kubelet = isKubeletWatched
    ? {
        ...{ is: 'shown', atLeast: Math.max(0, shown.kubelet - 2_000) * 1000 },
        atMost: (shown.kubelet + 500) * 1000,
      }
    : { is: 'not_observed', why: 'watch_gap' };
  return [
    missedFinding({
      ...{ t: found, findingId: randomUUID(), containerId: hexId(n), proof: { v: 1, kubelet } },
      ...{ window: { from: from ?? 0, to: to ?? 0 }, occurred: inRun(run, at[2]) },
    }),
  ];
}

let server: TestServer;
let databaseUrl: string;
let store: Store;
let reader: Reader;

needs('postgres')('the lives that are drawn', () => {
  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
    store = await openStore({ databaseUrl, log: silent });
    reader = createReader(store, undefined, 1)(new AbortController().signal);
  });
  beforeEach(() => query(databaseUrl, 'TRUNCATE store.node CASCADE'));
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  /** The controller's reads of the API server, for each missed event. */
  const measureLags = async (node: string, containers: readonly Happened[]) => {
    const found = await query<{ finding_id: string; pod_name: string }>(
      databaseUrl,
      'SELECT finding_id, pod_name FROM plegwatch.findings WHERE node = $1',
      [node],
    );
    for (const { finding_id, pod_name } of found) {
      const api = containers.find(({ n }) => pod_name === `pod-${n}`)?.shown.api ?? 0;
      // Nobody saw the end of some.
      await query(databaseUrl, STATUS_LAG, [
        finding_id,
        Math.max(0, api - 3_000),
        api % 2 === 0 ? api : null,
      ]);
    }
  };

  /** Gaps of lists, a second each. */
  const breakOften = (node: string, from: number) =>
    query(
      databaseUrl,
      `INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at)
       SELECT gen_random_uuid(), n.node_id, n.cluster_id, e.epoch, 'stream', 'broken', g.at, g.at + interval '1 second'
       FROM store.node n JOIN store.epoch e ON e.node_id = n.node_id AND e.incarnation = 1,
            LATERAL (SELECT $2::timestamptz + i * interval '2 seconds' AS at FROM generate_series(0, 2100) AS i) g
       WHERE n.name = $1`,
      [node, new Date(BEGAN + from * MINUTE_MS)],
    );

  interface Bounds extends Record<string, unknown> {
    readonly pod_name: string;
    readonly finding_id: string;
    readonly kubelet: readonly (number | null)[];
    readonly api: readonly (number | null)[];
  }

  const boundsBySql = (node: string) =>
    query<Bounds>(
      databaseUrl,
      `SELECT pod_name, finding_id, json_build_array(kubelet_at_least_ms, kubelet_at_most_ms) AS kubelet, json_build_array(lag_min_ms, lag_max_ms) AS api
       FROM plegwatch.findings WHERE node = $1 AND kind = 'missed'`,
      [node],
    );

  const drawn = async (node: string) => {
    const range = { from: BEGAN - HOUR_MS, to: Date.now() };
    const [from, to] = [range.from, range.to].map((at) => new Date(at).toISOString());
    const parameters = { cluster: CLUSTER, node, from: from ?? '', to: to ?? '' };
    const { shown } = podLives(
      await timelineAnswer(reader, new URLSearchParams(parameters)),
      range,
      '',
      ROOM,
    );
    return shown.map(({ rows }) => {
      const [pod, life] = rows;
      return {
        name: pod?.name.replace('shop/', '') ?? '',
        parts: life?.parts ?? [],
        ghosts: life?.ghosts ?? [],
      };
    });
  };

  const minuteOf = (ms: number) => (ms - BEGAN) / MINUTE_MS;
  const BLUR = BLUR_MS / MINUTE_MS;

  /** Undefined if what is drawn is what happened. */
  function falseOf({ state, from: began, to: ended }: LifePart, { at }: Happened): string | undefined {
    const [from, to] = [minuteOf(began), minuteOf(ended)];
    const [created, started, stopped, deleted] = at;
    const isWithin = (first: number, last: number) => from >= first - BLUR && to <= last + BLUR;
    const isTrue = {
      created: () => isWithin(created, started),
      running: () => isWithin(started, stopped),
      exited: () => isWithin(stopped, deleted),
      changing: () => at.some((edge) => edge >= from - BLUR && edge <= to + BLUR),
      turning: () => [started, stopped].some((edge) => edge >= from - BLUR && edge <= to + BLUR),
      unobserved: () => true,
    };
    return isTrue[state]() ? undefined : `${state} from ${from} to ${to}, and it was ${at}`;
  }

  /** For how long it is proven to have run, in minutes, where an agent listed all the time from before its start until after its end. */
  function expectWhole(parts: readonly LifePart[], { at }: Happened, { runs, unlisted }: History): boolean {
    const [created, started, stopped] = at;
    const isListed = runs.some(({ from, to }) => from + 1 < created && to - 1 > stopped);
    if (!isListed || unlisted.some(([from, to]) => from < stopped + 1 && to > created - 1)) return false;
    const ran = parts.filter(({ state }) => state === 'running');
    const long = ran.reduce((sum, { from, to }) => sum + to - from, 0) / MINUTE_MS;
    expect(long).toBeGreaterThan(stopped - started - 2 * LIST - 2 * BLUR);
    return true;
  }

  /** They begin at the stop, and their bounds are those of SQL and enclose what happened. */
  function expectGhosts(ghosts: readonly Ghost[], { at, shown }: Happened, stored: readonly Bounds[]): void {
    expect(ghosts.map(({ findingId }) => findingId)).toEqual(stored.map(({ finding_id }) => finding_id));
    for (const [n, { from, trails }] of ghosts.entries()) {
      expect(Math.abs(minuteOf(from) - at[2])).toBeLessThan(BLUR);
      for (const [trail, bounds, after] of [
        [trails.kubelet, stored[n]?.kubelet, shown.kubelet],
        [trails['API server'], stored[n]?.api, shown.api],
      ] as const) {
        const [least, most] = [trail?.atLeast ?? null, trail?.atMost ?? null];
        expect([least, most]).toEqual(bounds);
        expect(after).toBeGreaterThanOrEqual(least ?? 0);
        expect(after).toBeLessThanOrEqual(most ?? after);
      }
    }
  }

  it('say nothing that did not happen and nothing of what nobody looked at, and their ghosts are as long as SQL says', {
    timeout: 3_600_000,
  }, async () => {
    let count = 0;
    const seen = { parts: 0, ghosts: 0, whole: 0 };
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        count += 1;
        const node = `node-${count}`;
        const { runs, containers, broken } = history;
        await writeRuns({ store, databaseUrl }, node, runs, (run) => moreOf(run, history));
        await measureLags(node, containers);
        if (broken !== null) await breakOften(node, broken);
        const [pods, bounds] = [await drawn(node), await boundsBySql(node)];
        for (const { name, parts, ghosts } of pods) {
          const happened = containers.find(({ n }) => name === `pod-${n}`);
          if (happened === undefined) throw new Error(`${name} is drawn, and was not there`);
          expect(parts.flatMap((part) => falseOf(part, happened) ?? [])).toEqual([]);
          if (broken === null && expectWhole(parts, happened, history)) seen.whole += 1;
          expectGhosts(
            ghosts,
            happened,
            bounds.filter(({ pod_name }) => pod_name === name),
          );
          seen.parts += parts.length;
          seen.ghosts += ghosts.length;
        }
        // Each finding of SQL has its ghost.
        const names = new Set(pods.map(({ name }) => name));
        expect(bounds.filter(({ pod_name }) => !names.has(pod_name))).toEqual([]);
      }),
      { numRuns: runsOf(100), seed: SEED },
    );
    for (const n of Object.values(seen)) expect(n).toBeGreaterThan(count / 20);
  });
});

const END = HOURS * 60 - 10;
/** Evenly spread. */
const minutes = (min: number, max: number) =>
  fc.integer({ min: Math.round(min * 1_000), max: max * 1_000 }).map((n) => n / 1_000);
const anyContainers = fc
  .array(
    fc.record({
      from: minutes(0, END),
      created: minutes(0.01, 0.2),
      long: fc.oneof(minutes(0.02, 0.5), minutes(1, 600)),
      kept: minutes(0.02, 30),
      ends: fc.constantFrom(2, 3, 3, 3, 4),
      isLost: fc.boolean(),
      isKubeletWatched: fc.boolean(),
      kubelet: fc.integer({ min: 0, max: 120_000 }),
      api: fc.integer({ min: 0, max: 120_000 }),
    }),
    { minLength: 6, maxLength: 12 },
  )
  .map((all) =>
    all.map(({ from, created, long, kept, ends, isLost, isKubeletWatched, kubelet, api }, n): Happened => {
      const times = [from, from + created, from + created + long, from + created + long + kept];
      const [a = 0, b = 0, c = 0, d = 0] = times.map((at, stage) =>
        stage < ends && at < END ? at : Number.POSITIVE_INFINITY,
      );
      return { n: n + 1, at: [a, b, c, d], isLost, isKubeletWatched, shown: { kubelet, api } };
    }),
  );

const anyUnlisted = fc
  .array(fc.tuple(fc.integer({ min: 5, max: 400 }), fc.integer({ min: 1, max: 120 })), { maxLength: 3 })
  .map((all) => {
    let at = 0;
    return all.map(([wait, long]): Period => {
      const from = at + wait;
      at = from + long;
      return [from, at];
    });
  });

const anyHistory: fc.Arbitrary<History> = fc.record({
  runs: anyRuns,
  containers: anyContainers,
  unlisted: anyUnlisted,
  broken: fc.option(fc.integer({ min: 0, max: 20 * 60 }), { freq: 1 }),
});
