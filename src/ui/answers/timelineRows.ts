/*
 * The rows of the timeline of one node in a period. Each kind is bounded: the latest ones are read, and until when some are missing.
 */
import { and, between, desc, eq, gte, isNull, lte, max, min, or, type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { typed } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { bool, text, timestamptz } from '../../store/schema/columns.ts';
import { context, finding, findingUpdate } from '../../store/schema/tables.ts';
import * as views from '../../store/schema/views.ts';
import { nullable } from '../../store/statement.ts';
import type { Queries } from '../../store/typedQueries.ts';
import type { RelistSlice, Rows, Time } from '../api.ts';
import { readConditions, readRelists } from './statements.ts';

const MAX_EVENTS = 10_000;
/** Rows of everything else. */
const MAX_ROWS = 2_000;
const MAX_SLICES = 1_440;

/** The rows that are read. */
export interface Shown {
  readonly nodeId: number;
  readonly cluster: string;
  readonly node: string;
  readonly from: Time;
  readonly to: Time;
}

/** The subscriptions that lasted within the period. */
export function sessionsOf(sql: SqlRunner, shown: Shown) {
  const { opened_at, armed_at, closed_at, code, message, events, replayed } = views.streamSessions;
  const times = { openedAt: opened_at, armedAt: armed_at, closedAt: closed_at };
  return lastEnded(sql, shown, ['openedAt', 'closedAt'], (db) =>
    db
      .select({ ...times, code, message, events, replayed })
      .from(views.streamSessions)
      .where(and(ofNode(views.streamSessions, shown), lasted(shown, opened_at, closed_at)))
      .orderBy(endOf(closed_at), desc(opened_at)),
  );
}

/** The gaps that lasted within the period. */
export function gapsOf(sql: SqlRunner, shown: Shown) {
  const { scope, cause, from_at, to_at, filled_at } = views.gaps;
  return lastEnded(sql, shown, ['from', 'to'], (db) =>
    db
      .select({ scope, cause, from: from_at, to: to_at, filledAt: filled_at })
      .from(views.gaps)
      .where(and(ofNode(views.gaps, shown), lasted(shown, from_at, to_at)))
      .orderBy(endOf(to_at), desc(from_at)),
  );
}

/** The lists that hung within the period. */
export function hangsOf(runner: SqlRunner, shown: Shown) {
  const view = views.listHang;
  return lastEnded(runner, shown, ['from', 'to'], (db) =>
    db
      .select({
        ...{ from: view.from_at, to: view.to_at, why: view.why },
        container: {
          ...{ id: view.container_id, podUid: view.pod_uid, podNamespace: view.pod_namespace },
          ...{ podName: view.pod_name, name: view.container_name },
          isSandbox: typed(bool, sql`${view.verdict} = 'pod'`),
        },
      })
      .from(view)
      .where(and(eq(view.node_id, shown.nodeId), lasted(shown, view.from_at, view.to_at)))
      .orderBy(endOf(view.to_at), desc(view.from_at)),
  );
}

/** The changes of the kubelet's mode, and the one before them. */
export function modesOf(runner: SqlRunner, { nodeId, from, to }: Shown) {
  const { node_id, at, not_before, from_mode, to_mode, seq } = views.modeTransition;
  const reason = textOf(views.modeTransition.reason);
  const kubeletVersion = textOf(context.kubelet_version);
  const ofNode = eq(node_id, nodeId);
  return latestOf(runner, 'at', MAX_ROWS, (db) => {
    const before = db
      .select({ at: max(at) })
      .from(views.modeTransition)
      .where(and(ofNode, lte(at, from)));
    return db
      .select({ at, notBefore: not_before, fromMode: from_mode, toMode: to_mode, reason, kubeletVersion })
      .from(views.modeTransition)
      .leftJoin(context, eq(context.context_id, views.modeTransition.context_id))
      .where(and(ofNode, lte(at, to), gte(at, sql`coalesce(${before}, '-infinity')`)))
      .orderBy(desc(at), sql`${seq} DESC NULLS LAST`);
  });
}

export async function conditionsOf(sql: SqlRunner, { nodeId, from, to }: Shown) {
  const { rows } = await sql.run(readConditions, [nodeId, from, to, MAX_ROWS + 1]);
  return latest(rows, 'at', MAX_ROWS);
}

/** In slices of a minute, or so long that there are few enough. */
export async function relistsOf(sql: SqlRunner, { nodeId, from, to }: Shown): Promise<Rows<RelistSlice>> {
  const minutes = (Date.parse(to) - Date.parse(from)) / 60_000;
  const seconds = 60 * Math.max(1, Math.ceil(minutes / MAX_SLICES));
  const { rows } = await sql.run(readRelists, [nodeId, from, to, seconds]);
  return { rows, cut: null };
}

export function eventsOf(runner: SqlRunner, shown: Shown) {
  const view = views.containerEvents;
  const isOfDay = between(view.day, dayOf(shown.from), dayOf(shown.to));
  return latestOf(runner, 'at', MAX_EVENTS, (db) =>
    db
      .select(eventFields())
      .from(view)
      .where(and(ofNode(view, shown), isOfDay, between(view.received_at, shown.from, shown.to)))
      .orderBy(desc(view.received_at), desc(view.seq)),
  );
}

export function eventFields() {
  const view = views.containerEvents;
  const exit = sql`'exit ' || coalesce(${view.exit_code}::text, '?') || ' ' || ${view.exit_reason}`;
  return {
    ...{ at: view.received_at, createdAt: view.created_at, type: view.event_type },
    ...{ replayed: view.replayed, exit: typed(nullable(text), exit), container: containerOf(view) },
  };
}

/** The changes that lists showed. The day of their partition may differ by one. */
export function changesOf(runner: SqlRunner, shown: Shown) {
  const view = views.relistChanges;
  const [first, last] = [sql`${dayOf(shown.from)}::date - 1`, sql`${dayOf(shown.to)}::date + 1`];
  return latestOf(runner, 'to', MAX_EVENTS, (db) =>
    db
      .select({
        ...{ from: view.window_from, to: view.window_to },
        ...{ oldState: view.old_state, newState: view.new_state, container: containerOf(view) },
      })
      .from(view)
      .where(
        and(
          ofNode(view, shown),
          between(view.day, first, last),
          between(view.window_to, shown.from, shown.to),
        ),
      )
      .orderBy(desc(view.window_to), desc(view.seq)),
  );
}

export function findingsOf(runner: SqlRunner, { nodeId, from, to }: Shown) {
  const { node_id, finding_id, kind, event_type, window_from, window_to, occurred_at, detected_at } = finding;
  // A clock that is wrong may say that it happened after it was found.
  const at = typed(timestamptz, sql`least(coalesce(${occurred_at}, ${window_to}), ${detected_at})`);
  const ofFinding = and(eq(findingUpdate.node_id, node_id), eq(findingUpdate.finding_id, finding_id));
  const isRecent = and(gte(finding.day, dayOf(from)), gte(detected_at, from));
  return latestOf(runner, 'at', MAX_ROWS, (db) => {
    const resolved = db
      .select({ at: min(findingUpdate.at) })
      .from(findingUpdate)
      .where(and(ofFinding, eq(findingUpdate.what, 'resolved')));
    return db
      .select({
        ...{ id: finding_id, kind, eventType: event_type, cause: textOf(finding.cause), at },
        ...{ from: window_from, to: window_to, occurredAt: occurred_at, detectedAt: detected_at },
        resolvedAt: typed(nullable(timestamptz), sql`${resolved}`),
        container: {
          ...{ id: finding.container_id, podUid: finding.pod_uid },
          ...{ podNamespace: finding.pod_namespace, podName: finding.pod_name },
          name: textOf(finding.container_name),
          isSandbox: typed(bool, sql`coalesce(${finding.container_name} = '', false)`),
        },
      })
      .from(finding)
      .where(and(eq(node_id, nodeId), isRecent, between(at, from, to)))
      .orderBy(desc(at), desc(finding_id));
  });
}

/** The rows of a query that has the latest one first. `time` is the field that says when a row was. */
async function latestOf<K extends string, R extends Readonly<Record<K, Time>>>(
  sql: SqlRunner,
  time: K,
  most: number,
  query: (db: Queries) => { limit(count: number): PromiseLike<R[]> },
): Promise<Rows<R>> {
  return latest(await sql.query((db) => query(db).limit(most + 1)), time, most);
}

/** `rows`: the latest first, and one more than are answered. */
export function latest<K extends string, R extends Readonly<Record<K, Time>>>(
  rows: readonly R[],
  time: K,
  most: number,
) {
  const next = rows[most];
  return { rows: rows.slice(0, most).reverse(), cut: next === undefined ? null : { until: next[time] } };
}

/**
 * Rows with a duration: the rows of a query that has those first that last, and then the one that ended last. `began` and `ended` are the fields that
 * say so.
 */
export async function lastEnded<
  B extends string,
  E extends string,
  R extends Readonly<Record<B, Time> & Record<E, Time | null>>,
>(
  sql: SqlRunner,
  { to }: Pick<Shown, 'to'>,
  [began, ended]: readonly [B, E],
  query: (db: Queries) => { limit(count: number): PromiseLike<R[]> },
): Promise<Rows<R>> {
  const rows = await sql.query((db) => query(db).limit(MAX_ROWS + 1));
  const next = rows[MAX_ROWS];
  const inOrder = rows.slice(0, MAX_ROWS).sort((a, b) => (a[began] < b[began] ? -1 : 1));
  // Rows that ended later are among them.
  return { rows: inOrder, cut: next === undefined ? null : { until: next[ended] ?? to } };
}

export const endOf = (ended: AnyPgColumn): SQL => sql`coalesce(${ended}, 'infinity') DESC`;

/** Whether something that began at the one and ended at the other time, or lasts, was within the period. */
const lasted = ({ from, to }: Shown, began: AnyPgColumn, ended: AnyPgColumn): SQL | undefined =>
  and(lte(began, to), or(isNull(ended), gte(ended, from)));

const dayOf = (at: Time): string => at.slice(0, 10);

/** Null where it is empty. */
const textOf = (column: AnyPgColumn) => typed(nullable(text), sql`nullif(${column}, '')`);

export const ofNode = (view: { cluster: AnyPgColumn; node: AnyPgColumn }, { cluster, node }: Shown) =>
  and(eq(view.cluster, cluster), eq(view.node, node));

export const containerOf = (view: typeof views.containerEvents | typeof views.relistChanges) => ({
  ...{ id: view.container_id, isSandbox: view.is_sandbox, podUid: view.pod_uid },
  ...{ podNamespace: view.pod_namespace, podName: view.pod_name, name: view.container_name },
});
