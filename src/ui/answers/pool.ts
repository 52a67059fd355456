/*
 * GET /api/pool: whether a group of the fleet is safe, by the figures of its nodes, and how long their relists took.
 * GET /api/neighbours: a node beside the nodes of its pool at the same time.
 *
 * A pool may be a fleet: an answer about the same period, to the minute, is remembered for a minute.
 */
import { and, eq } from 'drizzle-orm';
import { invariant } from '../../platform/invariant.ts';
import { ordered } from '../../platform/ordered.ts';
import { oneOf } from '../../store/expressions.ts';
import { notFound } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { nodeDetail } from '../../store/schema/views.ts';
import type { RowOf } from '../../store/statement.ts';
import type { Neighbour, NeighboursAnswer, PoolAnswer, PoolKey, PoolNode } from '../api.ts';
import { nameIn, type Parameters, parametersOf, periodIn, requiredName, wordIn } from '../parameters.ts';
import { OF_A_MINUTE, remembered, toMinutes } from '../remembered.ts';
import { RequestError } from '../requestError.ts';
import { withAgentState } from './agentState.ts';
import { type PoolPeriod, poolPeriod } from './poolPeriod.ts';
import { poolVerdict } from './poolVerdict.ts';
import { partOf, type Reader } from './reader.ts';
import { readPoolClock, readPoolNodes, readPoolRelists } from './statements.ts';

const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
const MAX_DAYS = 400;
const MAX_NODES = 1_000;
const MAX_LINES = 100;
/** Beside one node. */
const MAX_NEIGHBOURS = 200;
const PERIOD = ['from', 'to', 'last'];
const NO_NODE = 'The fleet has no such node now: the pool is empty, or its nodes are gone.';

type NodeRow = RowOf<typeof readPoolNodes>;

export function poolAnswers(reader: Reader): (query: URLSearchParams) => Promise<PoolAnswer> {
  const answers = remembered<PoolAnswer>(OF_A_MINUTE);
  return async (query) => {
    const names = ['by', 'cluster', 'pool', 'runtime', 'runtimeVersion', 'kubelet', ...PERIOD];
    const parameters = parametersOf(query, names);
    const key = keyIn(parameters);
    const now = new Date();
    const minutes = toMinutes(periodIn(parameters, WEEK_MS, MAX_DAYS, now));
    return answers.ask(JSON.stringify([key, minutes]), () => poolAnswer(reader, key, parameters));
  };
}

function keyIn(parameters: Parameters): PoolKey {
  const name = (each: string) => nameIn(parameters, each) ?? null;
  const by = wordIn(parameters, 'by', ['cluster', 'pool', 'version']);
  return {
    ...{ by, cluster: by === 'cluster' ? requiredName(parameters, 'cluster') : name('cluster') },
    ...{ pool: name('pool'), runtimeName: name('runtime') },
    ...{ runtimeVersion: name('runtimeVersion'), kubeletVersion: name('kubelet') },
  };
}

async function poolAnswer(reader: Reader, key: PoolKey, parameters: Parameters): Promise<PoolAnswer> {
  const of = key.cluster === null ? reader : await partOf(reader, key.cluster);
  const parts = await of.parts();
  const [asked, ...others] = await Promise.all(
    parts.map((part) => part.read((runner) => periodOf(runner, parameters, WEEK_MS))),
  );
  invariant(asked !== undefined, 'a fleet has a group');
  // The slices of all are the same.
  const { now, period } = others.find((each) => each.period.isByHour) ?? asked;
  const lines = parts.length === 1 ? MAX_LINES : MAX_NODES;
  const read = await Promise.all(
    parts.map((part) => part.read((runner) => readPart(runner, part.clusters, { key, period, lines }))),
  );
  const nodes = ordered(
    read.map((part) => part.nodes),
    ({ row }) => row.cluster,
    ({ row }) => row.node,
  ).slice(0, MAX_NODES);
  const rows = nodes.map(({ row }) => row);
  const leftOut = sum(read, (part) => part.nodes[0]?.row.of ?? 0) - rows.length;
  const listed = nodes.flatMap(({ row: { maxMs }, line }, place) =>
    maxMs === null ? [] : [{ maxMs, line, place }],
  );
  const drawn = listed.toSorted((a, b) => b.maxMs - a.maxMs).slice(0, MAX_LINES);
  const inSlices = (figure: (slice: number) => number | null | undefined) =>
    Array.from({ length: period.slices }, (_, n) => figure(n) ?? null);
  const medians = parts.length === 1 ? read[0]?.medians : undefined;
  const possible = sum(rows, ({ possibleMs }) => possibleMs);
  return {
    ...timesOf(now, period),
    ...poolVerdict(rows, leftOut),
    watched: possible === 0 ? null : sum(rows, ({ coveredMs }) => coveredMs) / possible,
    nodes: rows.map((row) => shownOf(row, now)),
    leftOut: leftOut > 0 ? leftOut : null,
    ...{ sliceSeconds: period.sliceSeconds, slices: period.slices },
    medianMs: inSlices((n) => (medians === undefined ? medianOf(nodes, n) : medians.get(n)?.maxMs)),
    lines: drawn
      .toSorted((a, b) => a.place - b.place)
      .map(({ line, place }) => ({ node: place, longestMs: inSlices((n) => line?.get(n)?.maxMs) })),
    linesLeftOut: listed.length - drawn.length,
    empty: rows.length === 0 ? NO_NODE : null,
  };
}

export async function neighboursAnswer(reader: Reader, query: URLSearchParams): Promise<NeighboursAnswer> {
  const parameters = parametersOf(query, ['cluster', 'node', ...PERIOD]);
  const [cluster, node] = [requiredName(parameters, 'cluster'), requiredName(parameters, 'node')];
  periodIn(parameters, HOUR_MS, MAX_DAYS, new Date());
  const { clusters, read } = await partOf(reader, cluster);
  return read(async (runner) => {
    const [found] = await runner.query((db) =>
      db
        .select({ pool: nodeDetail.pool })
        .from(nodeDetail)
        .where(
          and(
            eq(nodeDetail.cluster, cluster),
            eq(nodeDetail.node, node),
            oneOf(nodeDetail.cluster, clusters),
          ),
        ),
    );
    if (found === undefined) {
      const { message } = notFound('node', node, []);
      throw new RequestError('NOT_FOUND', message, 'Search for it, or choose it in the fleet.');
    }
    const versions = { runtimeName: null, runtimeVersion: null, kubeletVersion: null };
    const pool: PoolKey = { by: 'pool', cluster, pool: found.pool, ...versions };
    const { now, period } = await periodOf(runner, parameters, HOUR_MS);
    const asked = { key: pool, period, max: MAX_NEIGHBOURS + 1, around: node };
    const rows = await nodesOf(runner, clusters, asked);
    const whole = (period.to.getTime() - period.from.getTime()) / 1000;
    const slices = await slicesOf(runner, { all: rows, shown: rows }, period, {
      seconds: whole,
      withP99: true,
    });
    const leftOut = (rows[0]?.of ?? 0) - rows.length;
    return {
      ...timesOf(now, period),
      pool,
      nodes: rows.map(
        (row): Neighbour => ({ ...shownOf(row, now), p99Ms: slices.get(row.nodeId)?.get(0)?.p99Ms ?? null }),
      ),
      leftOut: leftOut > 0 ? leftOut : null,
      empty: !rows.some((each) => each.node === node)
        ? 'This Node is gone: it is in no pool now.'
        : rows.length === 1
          ? 'This node is the only one of its pool.'
          : null,
    };
  });
}

/** By the clock of the database. */
async function periodOf(runner: SqlRunner, parameters: Parameters, defaultMs: number) {
  const { from } = periodIn(parameters, defaultMs, MAX_DAYS, new Date());
  const { rows } = await runner.run(readPoolClock, [from]);
  const [clock] = rows;
  invariant(clock !== undefined, 'a SELECT without FROM has a row');
  const now = new Date(clock.now);
  return { now, period: poolPeriod(periodIn(parameters, defaultMs, MAX_DAYS, now), now, clock.hasMinutes) };
}

/** The end of a period that lasts is the present. */
const timesOf = (now: Date, { from, to }: PoolPeriod) => ({
  ...{ now: now.toISOString(), from: from.toISOString() },
  to: (to < now ? to : now).toISOString(),
});

interface AskedNodes {
  readonly key: PoolKey;
  readonly period: PoolPeriod;
  readonly max: number;
  /** The node that is among them, with those nearest to it by name; null for the first ones. */
  readonly around: string | null;
}

async function nodesOf(
  runner: SqlRunner,
  clusters: readonly string[] | null,
  { key, period: { from, to }, max, around }: AskedNodes,
): Promise<readonly NodeRow[]> {
  const { by, cluster, pool, runtimeName, runtimeVersion, kubeletVersion } = key;
  const names = [by, cluster, pool, runtimeName, runtimeVersion, kubeletVersion];
  return (await runner.run(readPoolNodes, [clusters, ...names, from, to, max, around])).rows;
}

type Slice = RowOf<typeof readPoolRelists>;
type Line = ReadonlyMap<number, Slice>;

interface NodeLine {
  readonly row: NodeRow;
  /** Undefined unless the node is among those with the longest relists. */
  readonly line: Line | undefined;
}

async function readPart(
  runner: SqlRunner,
  clusters: readonly string[] | null,
  { key, period, lines }: { readonly key: PoolKey; readonly period: PoolPeriod; readonly lines: number },
): Promise<{ readonly nodes: readonly NodeLine[]; readonly medians: Line | undefined }> {
  const rows = await nodesOf(runner, clusters, { key, period, max: MAX_NODES, around: null });
  const shown = rows
    .flatMap(({ nodeId, maxMs }) => (maxMs === null ? [] : [{ nodeId, maxMs }]))
    .sort((a, b) => b.maxMs - a.maxMs)
    .slice(0, lines);
  const slices = await slicesOf(runner, { all: rows, shown }, period, {
    seconds: period.sliceSeconds,
    withP99: false,
  });
  return { nodes: rows.map((row) => ({ row, line: slices.get(row.nodeId) })), medians: slices.get(null) };
}

/** As the database makes it of the nodes of one part. */
function medianOf(nodes: readonly NodeLine[], slice: number): number | null {
  const micros = nodes.flatMap(
    ({ line }) => Math.round((line?.get(slice)?.maxMs ?? Number.NaN) * 1000) || [],
  );
  if (micros.length < 3) return null;
  micros.sort((a, b) => a - b);
  const [low = 0, high = 0] = [(micros.length - 1) >> 1, micros.length >> 1].map((at) => micros[at]);
  return (low + high) / 2 / 1000;
}

/** By node, the slices that have a relist; those of null are the medians of all nodes. Of `shown` only: all of them need not be drawn. */
async function slicesOf(
  runner: SqlRunner,
  { all, shown }: { readonly all: readonly OfNode[]; readonly shown: readonly OfNode[] },
  { from, to, isByHour }: PoolPeriod,
  { seconds, withP99 }: { readonly seconds: number; readonly withP99: boolean },
): Promise<ReadonlyMap<number | null, Line>> {
  const [ids, shownIds] = [all, shown].map((nodes) => nodes.map(({ nodeId }) => nodeId));
  const { rows } = await runner.run(readPoolRelists, [ids, from, to, seconds, isByHour, withP99, shownIds]);
  const lines = new Map<number | null, Map<number, Slice>>();
  for (const row of rows) {
    const line = lines.get(row.nodeId) ?? new Map<number, Slice>();
    lines.set(row.nodeId, line.set(row.slice, row));
  }
  return lines;
}

interface OfNode {
  readonly nodeId: number;
}

function shownOf(row: NodeRow, now: Date): PoolNode {
  const { nodeId, of, coveredMs, possibleMs, highPerMillion, lastSeen, ...shown } = withAgentState(
    now.toISOString(),
    row,
  );
  return shown;
}

const sum = <T>(rows: readonly T[], figure: (row: T) => number): number =>
  rows.reduce((total, row) => total + figure(row), 0);
