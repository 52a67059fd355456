/*
 * GET /api/timeline: what is known of one node in a period. Each kind of row is bounded: the latest ones of the period are answered, and until
 * when some are missing, so that a busy node can be followed.
 */
import { and, between, desc, eq, gte, isNull, lte, max, min, or, type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { oneOf, typed } from '../../store/expressions.ts';
import { notFound } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { bool, int4Array, text, timestamptz } from '../../store/schema/columns.ts';
import { cluster, finding, findingUpdate, node } from '../../store/schema/tables.ts';
import {
  containerEvents,
  gaps,
  modeTransition,
  relistChanges,
  streamSessions,
} from '../../store/schema/views.ts';
import { nullable } from '../../store/statement.ts';
import type {
  Condition,
  Container,
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
import type { Reader } from './reader.ts';
import { readConditions, readRelists } from './statements.ts';

const HOUR_MS = 3_600_000;
/** As long as findings are kept by default. */
const MAX_DAYS = 400;
const MAX_EVENTS = 10_000;
/** Of everything else. */
const MAX_ROWS = 2_000;
const MAX_SLICES = 1_440;

/** What is read. */
interface Shown {
  readonly nodeId: number;
  readonly cluster: string;
  readonly node: string;
  readonly from: Time;
  readonly to: Time;
}

export async function timelineAnswer(
  { clusters, read }: Reader,
  query: URLSearchParams,
): Promise<TimelineAnswer> {
  const parameters = parametersOf(query, ['cluster', 'node', 'from', 'to']);
  const named = { cluster: requiredName(parameters, 'cluster'), node: requiredName(parameters, 'node') };
  const period = periodIn(parameters, HOUR_MS, MAX_DAYS);
  const [from, to] = [period.from.toISOString(), period.to.toISOString()];
  return read(async (runner) => {
    const { nodeId, ...found } = await findNode(runner, clusters, named);
    const shown = { nodeId, ...named, from, to };
    const containers = new ContainerList();
    const answer = {
      ...{ ...named, from, to },
      ...found,
      sessions: await sessionsOf(runner, shown),
      gaps: await gapsOf(runner, shown),
      modes: await modesOf(runner, shown),
      conditions: await conditionsOf(runner, shown),
      relists: await relistsOf(runner, shown),
      events: containers.place(await eventsOf(runner, shown)),
      changes: containers.place(await changesOf(runner, shown)),
      findings: containers.place(await findingsOf(runner, shown)),
      containers: containers.list,
    };
    return { ...answer, empty: whyEmpty(answer) };
  });
}

async function findNode(
  runner: SqlRunner,
  clusters: readonly string[] | null,
  named: Pick<Shown, 'cluster' | 'node'>,
) {
  const [found] = await runner.query((db) =>
    db
      .select({
        nodeId: node.node_id,
        firstSeen: node.first_seen,
        lastSeen: node.last_seen,
        now: typed(timestamptz, sql`now()`),
        histBoundsMs: typed(int4Array, sql`store.hist_bounds()`),
      })
      .from(node)
      .innerJoin(cluster, eq(cluster.cluster_id, node.cluster_id))
      .where(and(eq(cluster.name, named.cluster), eq(node.name, named.node), oneOf(cluster.name, clusters))),
  );
  if (found !== undefined) return found;
  const { message } = notFound('node', named.node, []);
  throw new RequestError('NOT_FOUND', message, 'Search for it, or choose it in the fleet.');
}

/** Of rows of which the latest one is first, and of which one more than `most` was asked for. */
function latest<R>(rows: R[], timeOf: (row: R) => Time, most = MAX_ROWS): Rows<R> {
  const next = rows[most];
  return {
    rows: rows.slice(0, most).reverse(),
    cut: next === undefined ? null : { until: timeOf(next) },
  };
}

/** Whether something that began at the one and ended at the other time, or lasts, was within the period. */
const lasted = ({ from, to }: Shown, began: AnyPgColumn, ended: AnyPgColumn): SQL | undefined =>
  and(lte(began, to), or(isNull(ended), gte(ended, from)));

/** The days whose partitions can have rows of the period. */
const dayOf = (at: Time): string => at.slice(0, 10);

/** The subscriptions that lasted within the period. */
async function sessionsOf(runner: SqlRunner, shown: Shown): Promise<Rows<Session>> {
  const { opened_at, armed_at, closed_at, code, message, events, replayed } = streamSessions;
  const rows = await runner.query((db) =>
    db
      .select({
        ...{ openedAt: opened_at, armedAt: armed_at, closedAt: closed_at },
        ...{ code, message, events, replayed },
      })
      .from(streamSessions)
      .where(and(ofNode(streamSessions, shown), lasted(shown, opened_at, closed_at)))
      .orderBy(desc(opened_at))
      .limit(MAX_ROWS + 1),
  );
  return latest(rows, ({ openedAt }) => openedAt);
}

/** The gaps that lasted within the period. */
async function gapsOf(runner: SqlRunner, shown: Shown): Promise<Rows<Gap>> {
  const { scope, cause, from_at, to_at, filled_at } = gaps;
  const rows = await runner.query((db) =>
    db
      .select({ scope, cause, from: from_at, to: to_at, filledAt: filled_at })
      .from(gaps)
      .where(and(ofNode(gaps, shown), lasted(shown, from_at, to_at)))
      .orderBy(desc(from_at))
      .limit(MAX_ROWS + 1),
  );
  return latest(rows, (gap) => gap.from);
}

/** The changes of the kubelet's mode, and the one before them. */
async function modesOf(runner: SqlRunner, { nodeId, from, to }: Shown): Promise<Rows<Mode>> {
  const { node_id, at, not_before, from_mode, to_mode, reason, seq } = modeTransition;
  const rows = await runner.query((db) => {
    const before = db
      .select({ at: max(at) })
      .from(modeTransition)
      .where(and(eq(node_id, nodeId), lte(at, from)));
    return db
      .select({
        ...{ at, notBefore: not_before, fromMode: from_mode, toMode: to_mode },
        reason: typed(nullable(text), sql`nullif(${reason}, '')`),
      })
      .from(modeTransition)
      .where(and(eq(node_id, nodeId), lte(at, to), gte(at, sql`coalesce(${before}, '-infinity')`)))
      .orderBy(desc(at), sql`${seq} DESC NULLS LAST`)
      .limit(MAX_ROWS + 1);
  });
  return latest(rows, (mode) => mode.at);
}

async function conditionsOf(runner: SqlRunner, { nodeId, from, to }: Shown): Promise<Rows<Condition>> {
  const { rows } = await runner.run(readConditions, [nodeId, from, to, MAX_ROWS + 1]);
  return latest(rows, ({ at }) => at);
}

/** In slices of a minute, or so long that there are few enough. */
async function relistsOf(runner: SqlRunner, { nodeId, from, to }: Shown): Promise<Rows<RelistSlice>> {
  const minutes = (Date.parse(to) - Date.parse(from)) / 60_000;
  const seconds = 60 * Math.max(1, Math.ceil(minutes / MAX_SLICES));
  const { rows } = await runner.run(readRelists, [nodeId, from, to, seconds]);
  return { rows, cut: null };
}

async function eventsOf(runner: SqlRunner, shown: Shown): Promise<Rows<Named<ContainerEvent>>> {
  const { received_at, created_at, event_type, replayed, exit_code, exit_reason, seq, day } = containerEvents;
  const rows = await runner.query((db) =>
    db
      .select({
        ...{ at: received_at, createdAt: created_at, type: event_type, replayed },
        exit: typed(
          nullable(text),
          sql`'exit ' || coalesce(${exit_code}::text, '?') || ' ' || ${exit_reason}`,
        ),
        container: containerOf(containerEvents),
      })
      .from(containerEvents)
      .where(
        and(
          ofNode(containerEvents, shown),
          between(day, dayOf(shown.from), dayOf(shown.to)),
          between(received_at, shown.from, shown.to),
        ),
      )
      .orderBy(desc(received_at), desc(seq))
      .limit(MAX_EVENTS + 1),
  );
  return latest(rows, ({ at }) => at, MAX_EVENTS);
}

/** The changes that lists showed. The day of their partition is that of one of the lists. */
async function changesOf(runner: SqlRunner, shown: Shown): Promise<Rows<Named<ListChange>>> {
  const { window_from, window_to, old_state, new_state, seq, day } = relistChanges;
  const rows = await runner.query((db) =>
    db
      .select({
        ...{ from: window_from, to: window_to, oldState: old_state, newState: new_state },
        container: containerOf(relistChanges),
      })
      .from(relistChanges)
      .where(
        and(
          ofNode(relistChanges, shown),
          between(day, sql`${dayOf(shown.from)}::date - 1`, sql`${dayOf(shown.to)}::date + 1`),
          between(window_to, shown.from, shown.to),
        ),
      )
      .orderBy(desc(window_to), desc(seq))
      .limit(MAX_EVENTS + 1),
  );
  return latest(rows, (change) => change.to, MAX_EVENTS);
}

async function findingsOf(
  runner: SqlRunner,
  { nodeId, from, to }: Shown,
): Promise<Rows<Named<TimelineFinding>>> {
  const { finding_id, kind, event_type, cause, window_from, window_to, occurred_at, detected_at } = finding;
  const at = typed(timestamptz, sql`coalesce(${occurred_at}, ${window_to}, ${detected_at})`);
  const rows = await runner.query((db) => {
    const resolved = db
      .select({ at: min(findingUpdate.at) })
      .from(findingUpdate)
      .where(
        and(
          eq(findingUpdate.node_id, finding.node_id),
          eq(findingUpdate.finding_id, finding_id),
          eq(findingUpdate.what, 'resolved'),
        ),
      );
    return db
      .select({
        ...{ id: finding_id, kind, eventType: event_type, at, from: window_from, to: window_to },
        cause: typed(nullable(text), sql`nullif(${cause}, '')`),
        ...{ occurredAt: occurred_at, detectedAt: detected_at },
        resolvedAt: typed(nullable(timestamptz), sql`${resolved}`),
        container: {
          id: finding.container_id,
          isSandbox: typed(bool, sql`coalesce(${finding.container_name}, '') = ''`),
          podUid: finding.pod_uid,
          podNamespace: finding.pod_namespace,
          podName: finding.pod_name,
          name: typed(nullable(text), sql`nullif(${finding.container_name}, '')`),
        },
      })
      .from(finding)
      .where(
        and(
          eq(finding.node_id, nodeId),
          gte(finding.day, dayOf(from)),
          gte(detected_at, from),
          between(at, from, to),
        ),
      )
      .orderBy(desc(at), desc(finding_id))
      .limit(MAX_ROWS + 1);
  });
  return latest(rows, (each) => each.at);
}

const ofNode = (
  view: { readonly cluster: AnyPgColumn; readonly node: AnyPgColumn },
  shown: Shown,
): SQL | undefined => and(eq(view.cluster, shown.cluster), eq(view.node, shown.node));

const containerOf = (view: typeof containerEvents | typeof relistChanges) => ({
  ...{ id: view.container_id, isSandbox: view.is_sandbox, podUid: view.pod_uid },
  ...{ podNamespace: view.pod_namespace, podName: view.pod_name, name: view.container_name },
});

/** A row with what it says of its container, whose id may not be known. */
type Named<T extends { readonly container: number | null }> = Omit<T, 'container'> & {
  readonly container: Omit<Container, 'id'> & { readonly id: string | null };
};

/** The containers that rows name, each once. */
class ContainerList {
  readonly #places = new Map<string, number>();
  readonly list: Container[] = [];

  place<R extends Named<{ readonly container: null }>>({ rows, cut }: Rows<R>) {
    return { rows: rows.map((row) => ({ ...row, container: this.#placeOf(row.container) })), cut };
  }

  /** What one row does not know of a container, another one may. */
  #placeOf({ id, ...container }: Named<{ readonly container: null }>['container']): number | null {
    if (id === null) return null;
    const known = this.#places.get(id);
    if (known === undefined) {
      this.#places.set(id, this.list.length);
      return this.list.push({ id, ...container }) - 1;
    }
    if (this.list[known]?.podName === null) this.list[known] = { id, ...container };
    return known;
  }
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
