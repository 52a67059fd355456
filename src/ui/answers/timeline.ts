/*
 * GET /api/timeline: what is known of one node in a period. Each kind of row is bounded: the latest ones of the period are answered, and until
 * when some are missing, so that a busy node can be followed.
 */
import { notFound } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type {
  Condition,
  ContainerEvent,
  Gap,
  ListChange,
  Mode,
  RelistSlice,
  Rows,
  Session,
  Time,
  TimelineAnswer,
  TimelineFinding,
} from '../api.ts';
import { parametersOf, periodIn, requiredName } from '../parameters.ts';
import { RequestError } from '../requestError.ts';
import { type ContainerColumns, ContainerList } from './containers.ts';
import type { Reader } from './reader.ts';
import findTimelineNodeSql from './sql/findTimelineNode.sql';
import readChangesSql from './sql/readChanges.sql';
import readConditionsSql from './sql/readConditions.sql';
import readEventsSql from './sql/readEvents.sql';
import readFindingsSql from './sql/readFindings.sql';
import readGapsSql from './sql/readGaps.sql';
import readHistBoundsSql from './sql/readHistBounds.sql';
import readModesSql from './sql/readModes.sql';
import readRelistsSql from './sql/readRelists.sql';
import readSessionsSql from './sql/readSessions.sql';

const HOUR_MS = 3_600_000;
/** As long as findings are kept by default. */
const MAX_DAYS = 400;
const MAX_EVENTS = 10_000;
/** Of everything else. */
const MAX_ROWS = 2_000;
const MAX_SLICES = 1_440;

interface NodeRow {
  readonly nodeId: number;
  readonly firstSeen: Time | null;
  readonly lastSeen: Time | null;
  readonly now: Time;
}

export async function timelineAnswer(
  { clusters, read }: Reader,
  query: URLSearchParams,
): Promise<TimelineAnswer> {
  const parameters = parametersOf(query, ['cluster', 'node', 'from', 'to']);
  const [cluster, node] = ['cluster', 'node'].map((name) => requiredName(parameters, name)) as [
    string,
    string,
  ];
  const { from, to } = periodIn(parameters, HOUR_MS, MAX_DAYS);
  return read(async (sql) => {
    const found = await findNode(sql, clusters, cluster, node);
    const named = [cluster, node, from, to];
    const numbered = [found.nodeId, from, to];
    const containers = new ContainerList();
    const placed = <R extends ContainerColumns>(rows: Rows<R>) => ({
      ...rows,
      rows: rows.rows.map((row) => withPlace(row, containers)),
    });
    const bounded = <R>(text: string, values: readonly unknown[], timeOf: (row: R) => Time, max = MAX_ROWS) =>
      boundedRows<R>(sql, text, values, timeOf, max);

    const sessions = await bounded<Session>(readSessionsSql, named, ({ openedAt }) => openedAt);
    const gaps = await bounded<Gap>(readGapsSql, named, (gap) => gap.from);
    const modes = await bounded<Mode>(readModesSql, numbered, ({ at }) => at);
    const conditions = await bounded<Condition>(readConditionsSql, numbered, ({ at }) => at);
    const relists = await readRelists(sql, found.nodeId, from, to);
    const events = await bounded<Placed<ContainerEvent>>(readEventsSql, named, ({ at }) => at, MAX_EVENTS);
    const changes = await bounded<Placed<ListChange>>(
      readChangesSql,
      named,
      (change) => change.to,
      MAX_EVENTS,
    );
    const findings = await bounded<Placed<TimelineFinding>>(readFindingsSql, numbered, ({ at }) => at);
    const bounds = await sql.run<{ bounds: number[] }>({ text: readHistBoundsSql });
    const answer = {
      ...{ cluster, node, now: found.now, from: from.toISOString(), to: to.toISOString() },
      ...{ firstSeen: found.firstSeen, lastSeen: found.lastSeen },
      containers: containers.list,
      ...{ sessions, gaps, modes, conditions, relists },
      histBoundsMs: bounds.rows[0]?.bounds ?? [],
      ...{ events: placed(events), changes: placed(changes), findings: placed(findings) },
    };
    return { ...answer, empty: whyEmpty(answer) };
  });
}

/** A row before its container has a place. */
type Placed<T extends { readonly container: number | null }> = Omit<T, 'container'> & ContainerColumns;

function withPlace<R extends ContainerColumns>(row: R, containers: ContainerList) {
  const {
    containerId: _,
    isSandbox: _s,
    podUid: _u,
    podNamespace: _n,
    podName: _p,
    containerName: _c,
    ...rest
  } = row;
  return { ...rest, container: containers.placeOf(row) };
}

async function findNode(
  sql: SqlRunner,
  clusters: readonly string[] | null,
  cluster: string,
  node: string,
): Promise<NodeRow> {
  const isHidden = clusters !== null && !clusters.includes(cluster);
  const { rows } = await sql.run<NodeRow>({ text: findTimelineNodeSql }, [cluster, node]);
  const [found] = rows;
  if (found !== undefined && !isHidden) return found;
  const { message } = notFound('node', node, []);
  throw new RequestError('NOT_FOUND', message, 'Search for it, or choose it in the fleet.');
}

/** `text` has the latest row first. */
async function boundedRows<R>(
  sql: SqlRunner,
  text: string,
  values: readonly unknown[],
  timeOf: (row: R) => Time,
  max: number,
): Promise<Rows<R>> {
  const { rows } = await sql.run<R & Record<string, unknown>>({ text }, [...values, max + 1]);
  const next = rows[max];
  const latest = rows.slice(0, max).reverse();
  return { rows: latest, cut: next === undefined ? null : { until: timeOf(next) } };
}

/** In slices of a minute, or so long that there are few enough. */
async function readRelists(sql: SqlRunner, nodeId: number, from: Date, to: Date): Promise<Rows<RelistSlice>> {
  const minutes = (to.getTime() - from.getTime()) / 60_000;
  const seconds = 60 * Math.max(1, Math.ceil(minutes / MAX_SLICES));
  const { rows } = await sql.run<RelistSlice & Record<string, unknown>>({ text: readRelistsSql }, [
    ...[nodeId, from, to, seconds],
  ]);
  return { rows, cut: null };
}

function whyEmpty({ firstSeen, lastSeen, from, to, ...parts }: Omit<TimelineAnswer, 'empty'>): string | null {
  const { sessions, gaps, relists, events, changes, findings, conditions } = parts;
  const all: readonly Rows<unknown>[] = [sessions, gaps, relists, events, changes, findings];
  if (all.some(({ rows }) => rows.length > 0)) return null;
  // The first one may be that before the period.
  if (conditions.rows.some(({ at }) => Date.parse(at) >= Date.parse(from))) return null;
  if (firstSeen === null || lastSeen === null) return 'This node never had an agent: nothing was observed.';
  if (firstSeen > to) return `The first agent reported at ${firstSeen}, after this period.`;
  if (lastSeen < from) return `No agent reported after ${lastSeen}: this period was not observed.`;
  return 'Nothing is stored of this period: events and relists are deleted after event_retention_days.';
}
