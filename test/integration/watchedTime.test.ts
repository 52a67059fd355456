/*
 * The time that was watched: what the page draws of it, and the share that it names, against SQL and against what happened. Histories are committed as
 * agents write them. Times are minutes since the start of an hour, almost a day ago.
 */
import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { openStore, type Store } from '../../src/store/store.ts';
import { fleetAnswers } from '../../src/ui/answers/fleet.ts';
import { poolAnswers } from '../../src/ui/answers/pool.ts';
import { createReader, type Reader } from '../../src/ui/answers/reader.ts';
import { timelineAnswer } from '../../src/ui/answers/timeline.ts';
import { watchedPeriods } from '../../src/ui/page/timeline/watched.ts';
import {
  anyRuns,
  BEGAN,
  HOUR_MS,
  MINUTE_MS,
  type Period,
  type Run,
  writeRuns,
} from '../support/agentRuns.ts';
import { CLUSTER } from '../support/batches.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { runsOf } from '../support/runs.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_125);
const DAY_MS = 24 * HOUR_MS;
/** When an agent without a declared end is said to have ended, and how long a minute's record is. */
const BLUR_MS = 70_000;

let server: TestServer;
let databaseUrl: string;
let store: Store;
let reader: Reader;

needs('postgres')('the time that was watched', () => {
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

  const write = (node: string, runs: readonly Run[]) => writeRuns({ store, databaseUrl }, node, runs);

  const fleet = async () => (await fleetAnswers(reader)(new URLSearchParams())).nodes;

  const shareOf = async (node: string) => (await fleet()).find((each) => each.node === node)?.completeness24h;

  /** By the same clock as the answer: the share of the hours since the one 24 hours ago, or since the first evidence. */
  function shareBy(watched: readonly Period[], first: number): number {
    const now = (Date.now() - BEGAN) / MINUTE_MS;
    const since = Math.max(first, Math.floor((now - 24 * 60) / 60) * 60);
    const all = watched.reduce((sum, [from, to]) => sum + Math.max(0, to - Math.max(from, since)), 0);
    return all / (now - since);
  }

  /** It was known for days before. */
  const knownForDays = () =>
    query(databaseUrl, `UPDATE store.node SET first_seen = first_seen - interval '3 days'`);
  const DAYS = -3 * 24 * 60;

  it('counts of a silent agent what it watched before', async () => {
    const end = 21 * 60;
    await write('node-a', [{ from: 0, to: end, watched: [[1, end]], end: 'lost' }]);
    const share = await shareOf('node-a');
    expect(share).toBeCloseTo(shareBy([[1, end]], 0), 2);
    expect(share).toBeGreaterThan(0.85);
  });

  it('leaves out a gap that began before the last 24 hours and ended within them', async () => {
    const now = Math.floor((Date.now() - BEGAN) / MINUTE_MS);
    await write('node-a', [
      {
        from: 0,
        to: now,
        watched: [
          [1, 2],
          [now - 60, now],
        ],
        end: 'killed',
      },
    ]);
    await knownForDays();
    await query(
      databaseUrl,
      `UPDATE store.gap SET from_at = from_at - interval '3 days' WHERE cause = 'broken'`,
    );
    expect(await shareOf('node-a')).toBeCloseTo(shareBy([[now - 60, now]], DAYS), 2);
  });

  it('leaves out the time after an agent that left neither a spool nor a word', async () => {
    const now = Math.floor((Date.now() - BEGAN) / MINUTE_MS);
    await write('node-a', [
      { from: 0, to: now - 19 * 60, watched: [[1, now - 19 * 60]], end: 'lost' },
      { from: now - 60, to: now, watched: [[now - 59, now]], end: 'killed' },
    ]);
    const watched: Period[] = [
      [1, now - 19 * 60],
      [now - 59, now],
    ];
    expect(await shareOf('node-a')).toBeCloseTo(shareBy(watched, 0), 2);
  });

  it('begins with the present machine where one of the same name was before', async () => {
    const now = Math.floor((Date.now() - BEGAN) / MINUTE_MS);
    await write('node-a', [
      { from: 0, to: 20 * 60, watched: [[1, 2]], end: 'lost' },
      { from: now - 30, to: now, watched: [[now - 29, now]], end: 'killed' },
    ]);
    await query(databaseUrl, 'UPDATE store.node SET replaced_at = $1', [
      new Date(BEGAN + (now - 31) * MINUTE_MS),
    ]);
    expect(await shareOf('node-a')).toBeCloseTo(29 / 30, 1);
  });

  it('is all of it for a stream that was never broken, although the present minute is not recorded yet', async () => {
    const now = Math.floor((Date.now() - BEGAN) / MINUTE_MS);
    await write('node-a', [{ from: now - 20, to: now, watched: [[now - 20 + 1 / 60, now]], end: 'killed' }]);
    expect(await shareOf('node-a')).toBeGreaterThan(0.995);
  });

  it('is all of it for an agent whose calm minutes have gone on for almost ten since its last record, which is about ten as well', async () => {
    const now = (Date.now() - BEGAN) / MINUTE_MS;
    const ended = now - 9;
    await write('node-a', [
      { from: ended - 40, to: ended, watched: [[ended - 40 + 1 / 60, ended]], end: 'killed' },
    ]);
    await query(
      databaseUrl,
      `WITH lasting AS (SELECT node_id, max(ended_at) AS ended_at FROM store.relist_minute JOIN store.node USING (node_id) GROUP BY node_id),
            part AS (DELETE FROM store.relist_minute m USING lasting l WHERE m.node_id = l.node_id AND m.ended_at > l.ended_at - interval '8 minutes 30 seconds')
       UPDATE store.relist_minute m SET ended_at = l.ended_at, span_us = 600e6 FROM lasting l
       WHERE m.node_id = l.node_id AND m.ended_at > l.ended_at - interval '9 minutes 30 seconds' AND m.ended_at <= l.ended_at - interval '8 minutes 30 seconds'`,
    );
    await query(databaseUrl, 'UPDATE store.node SET last_seen = now()');
    await query(databaseUrl, 'UPDATE store.epoch SET last_seen = now()');
    const [row] = await query<{ minutes: number }>(
      databaseUrl,
      'SELECT count(*)::int4 AS minutes FROM store.relist_minute JOIN store.node USING (node_id)',
    );
    expect(row?.minutes).toBeLessThan(35);
    expect(await shareOf('node-a')).toBeGreaterThan(0.99);
    const complete = 'SELECT min(stream_share) AS share FROM plegwatch.evidence_completeness()';
    // The minute around midnight is of the day in which it began.
    const minutesOfDay = ((BEGAN + ended * MINUTE_MS) % DAY_MS) / MINUTE_MS;
    const least = minutesOfDay < 40 ? 1 - 1 / minutesOfDay : 0.99;
    expect((await query<{ share: number }>(databaseUrl, complete))[0]?.share).toBeGreaterThan(least);
    // The first minutes of a node that is new are still to come.
    await query(databaseUrl, 'UPDATE store.node SET first_seen = now()');
    await query(databaseUrl, 'DELETE FROM store.relist_hour');
    expect(await query(databaseUrl, complete)).toEqual([{ share: null }]);
  });

  it('is all of it for a Node that was deleted when its agent ended, and of no day after that', async () => {
    const end = 10;
    await write('node-a', [{ from: 0, to: end, watched: [[1 / 60, end]], end: 'lost' }]);
    const completeness = () =>
      query<{ days: number; share: number }>(
        databaseUrl,
        'SELECT count(*)::int4 AS days, min(stream_share) AS share FROM plegwatch.evidence_completeness()',
      );
    expect((await completeness())[0]?.share).toBeLessThan(0.9);
    await query(
      databaseUrl,
      `INSERT INTO store.report (node_id, cluster_id, node_deleted_at) SELECT node_id, cluster_id, $1 FROM store.node`,
      [new Date(BEGAN + end * MINUTE_MS)],
    );
    expect(await completeness()).toEqual([{ days: 1, share: expect.closeTo(1, 2) }]);
  });

  /** In milliseconds, in order. */
  const bySql = async (node: string): Promise<Period[]> => {
    const rows = await query<{ from: number; to: number }>(
      databaseUrl,
      `SELECT extract(epoch FROM lower(w)) * 1000 AS from, extract(epoch FROM upper(w)) * 1000 AS to
       FROM (
         SELECT coalesce(range_agg(tstzrange(s.armed_at, greatest(s.armed_at, least(coalesce(s.closed_at, 'infinity'), n.last_seen)))), '{}')
           - coalesce((SELECT range_agg(tstzrange(g.from_at, coalesce(g.to_at, 'infinity'))) FROM plegwatch.gaps g
                       WHERE g.node = $1 AND g.scope IN ('stream', 'agent', 'seq', 'spool') AND g.filled_at IS NULL), '{}') AS watched
         FROM plegwatch.stream_sessions s JOIN plegwatch.nodes n USING (cluster, node)
         WHERE s.node = $1 AND s.armed_at IS NOT NULL
       ) x, unnest(x.watched) AS w ORDER BY 1`,
      [node],
    );
    return rows.map(({ from, to }) => [Number(from), Number(to)]);
  };

  const drawn = async (node: string) => {
    const [from, to] = [BEGAN - HOUR_MS, Date.now()].map((at) => new Date(at).toISOString());
    const answer = await timelineAnswer(
      reader,
      new URLSearchParams({ cluster: CLUSTER, node, from: from ?? '', to: to ?? '' }),
    );
    return { answer, periods: watchedPeriods(answer).map(({ from, to }): Period => [from, to]) };
  };

  /** More gaps than an answer has, a second each, every two seconds. */
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

  /** In the first 21 hours: the share that was watched, and the hours in which its line of relists is, by what happened. */
  async function expectInPool(node: string, runs: readonly Run[]): Promise<void> {
    const end = 21 * 60;
    const [from, to] = [0, end].map((minute) => new Date(BEGAN + minute * MINUTE_MS).toISOString());
    const parameters = { by: 'cluster', cluster: CLUSTER, from: from ?? '', to: to ?? '' };
    const pool = await poolAnswers(reader)(new URLSearchParams(parameters));
    const place = pool.nodes.findIndex((each) => each.node === node);
    const first = runs[0]?.from ?? 0;
    const watched = runs.flatMap((run) => run.watched);
    const all = watched.reduce((sum, [start, stop]) => sum + Math.max(0, Math.min(stop, end) - start), 0);
    const share = pool.nodes[place]?.watched ?? null;
    if (first > end) expect(share).toBeNull();
    // A minute more or less is nothing of these.
    if (first < end - 300) expect(share).toBeCloseTo(all / (end - first), 2);
    const line = pool.lines.find((each) => each.node === place)?.longestMs ?? [];
    for (let hour = 0; hour < pool.slices; hour += 1) {
      const isSeen = isObserved(runs, [60 * hour, 60 * hour + 60]);
      if (isSeen !== undefined) expect([hour, typeof line[hour] === 'number']).toEqual([hour, isSeen]);
    }
  }

  /** Undefined where it depends on a part of a minute. */
  function isObserved(runs: readonly Run[], [start, stop]: Period): boolean | undefined {
    if (runs.some((run) => Math.min(run.to, stop) - Math.max(run.from, start) >= 2)) return true;
    return runs.every((run) => run.to <= start - 1 || run.from >= stop + 1) ? false : undefined;
  }

  const minutesOf = (periods: readonly Period[]) =>
    periods.map((period) => period.map((ms) => Math.round((ms - BEGAN) / 10) / 6_000));

  it('is drawn as SQL has it, and named as it was, for random runs, ends, silences and cuts', {
    timeout: 3_600_000,
  }, async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(anyRuns, fc.option(fc.integer({ min: 0, max: 20 * 60 })), async (runs, broken) => {
        count += 1;
        const node = `node-${count}`;
        await write(node, runs);
        if (broken !== null) await breakOften(node, broken);
        const [{ answer, periods }, sql] = [await drawn(node), await bySql(node)];
        const since = answer.gaps.cut === null ? Number.NEGATIVE_INFINITY : Date.parse(answer.gaps.cut.until);
        const complete = sql.flatMap(([from, to]): Period[] =>
          to <= since ? [] : [[Math.max(from, since), to]],
        );
        expect(minutesOf(periods)).toEqual(minutesOf(complete));
        expect(answer.gaps.cut === null).toBe(broken === null);
        if (broken !== null) return;
        const watched = runs.flatMap((run) => run.watched);
        expect(periods).toHaveLength(watched.length);
        for (const [n, [from, to]] of watched.entries()) {
          expect(Math.abs((periods[n]?.[0] ?? 0) - BEGAN - from * MINUTE_MS)).toBeLessThan(BLUR_MS);
          expect(Math.abs((periods[n]?.[1] ?? 0) - BEGAN - to * MINUTE_MS)).toBeLessThan(BLUR_MS);
        }
        expect(await shareOf(node)).toBeCloseTo(shareBy(watched, runs[0]?.from ?? 0), 2);
        await expectInPool(node, runs);
      }),
      { numRuns: runsOf(100), seed: SEED },
    );
  });
});
