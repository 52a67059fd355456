/*
 * The rows of the timeline of one node in a period. Each kind is bounded: the latest ones are read, and until when some are missing.
 */
import { and, between, desc, eq, gte, isNull, lte, max, min, or, type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { typed } from '../../store/expressions.ts';
import type { Queries, SqlRunner } from '../../store/runner.ts';
import { bool, text, timestamptz } from '../../store/schema/columns.ts';
import { finding, findingUpdate } from '../../store/schema/tables.ts';
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
  TimelineFinding,
} from '../api.ts';
import { readConditions, readRelists } from './statements.ts';

const MAX_EVENTS = 10_000;
/** Of everything else. */
const MAX_ROWS = 2_000;
const MAX_SLICES = 1_440;

/** What is read. */
export interface Shown {
  readonly nodeId: number;
  readonly cluster: string;
  readonly node: string;
  readonly from: Time;
  readonly to: Time;
}

/** A row with what it says of its container, whose id may not be known. */
export type Named<T extends { readonly container: number | null }> = Omit<T, 'container'> & {
  readonly container: Omit<Container, 'id'> & { readonly id: string | null };
};

/** The subscriptions that lasted within the period. */
export async function sessionsOf(runner: SqlRunner, shown: Shown): Promise<Rows<Session>> {
  const { opened_at, armed_at, closed_at, code, message, events, replayed } = streamSessions;
  return latestOf(runner, 'openedAt', MAX_ROWS, (db) =>
    db
      .select({
        ...{ openedAt: opened_at, armedAt: armed_at, closedAt: closed_at },
        ...{ code, message, events, replayed },
      })
      .from(streamSessions)
      .where(and(ofNode(streamSessions, shown), lasted(shown, opened_at, closed_at)))
      .orderBy(desc(opened_at)),
  );
}

/** The gaps that lasted within the period. */
export async function gapsOf(runner: SqlRunner, shown: Shown): Promise<Rows<Gap>> {
  const { scope, cause, from_at, to_at, filled_at } = gaps;
  return latestOf(runner, 'from', MAX_ROWS, (db) =>
    db
      .select({ scope, cause, from: from_at, to: to_at, filledAt: filled_at })
      .from(gaps)
      .where(and(ofNode(gaps, shown), lasted(shown, from_at, to_at)))
      .orderBy(desc(from_at)),
  );
}

/** The changes of the kubelet's mode, and the one before them. */
export async function modesOf(runner: SqlRunner, { nodeId, from, to }: Shown): Promise<Rows<Mode>> {
  const { node_id, at, not_before, from_mode, to_mode, reason, seq } = modeTransition;
  return latestOf(runner, 'at', MAX_ROWS, (db) => {
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
      .orderBy(desc(at), sql`${seq} DESC NULLS LAST`);
  });
}

export async function conditionsOf(runner: SqlRunner, { nodeId, from, to }: Shown): Promise<Rows<Condition>> {
  const { rows } = await runner.run(readConditions, [nodeId, from, to, MAX_ROWS + 1]);
  return latest(rows, 'at', MAX_ROWS);
}

/** In slices of a minute, or so long that there are few enough. */
export async function relistsOf(runner: SqlRunner, { nodeId, from, to }: Shown): Promise<Rows<RelistSlice>> {
  const minutes = (Date.parse(to) - Date.parse(from)) / 60_000;
  const seconds = 60 * Math.max(1, Math.ceil(minutes / MAX_SLICES));
  const { rows } = await runner.run(readRelists, [nodeId, from, to, seconds]);
  return { rows, cut: null };
}

export async function eventsOf(runner: SqlRunner, shown: Shown): Promise<Rows<Named<ContainerEvent>>> {
  const { received_at, created_at, event_type, replayed, exit_code, exit_reason, seq, day } = containerEvents;
  return latestOf(runner, 'at', MAX_EVENTS, (db) =>
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
      .orderBy(desc(received_at), desc(seq)),
  );
}

/** The changes that lists showed. The day of their partition is that of one of the lists. */
export async function changesOf(runner: SqlRunner, shown: Shown): Promise<Rows<Named<ListChange>>> {
  const { window_from, window_to, old_state, new_state, seq, day } = relistChanges;
  return latestOf(runner, 'to', MAX_EVENTS, (db) =>
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
      .orderBy(desc(window_to), desc(seq)),
  );
}

export async function findingsOf(
  runner: SqlRunner,
  { nodeId, from, to }: Shown,
): Promise<Rows<Named<TimelineFinding>>> {
  const { finding_id, kind, event_type, cause, window_from, window_to, occurred_at, detected_at } = finding;
  const at = typed(timestamptz, sql`coalesce(${occurred_at}, ${window_to}, ${detected_at})`);
  return latestOf(runner, 'at', MAX_ROWS, (db) => {
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
      .orderBy(desc(at), desc(finding_id));
  });
}

/** The rows of a query that has the latest one first. `time` is the field that says when a row was. */
async function latestOf<K extends string, R extends Readonly<Record<K, Time>>>(
  runner: SqlRunner,
  time: K,
  most: number,
  query: (db: Queries) => { limit(count: number): PromiseLike<R[]> },
): Promise<Rows<R>> {
  return latest(await runner.query((db) => query(db).limit(most + 1)), time, most);
}

/** `rows`: the latest first, and one more than are answered. */
function latest<K extends string, R extends Readonly<Record<K, Time>>>(
  rows: R[],
  time: K,
  most: number,
): Rows<R> {
  const next = rows[most];
  return { rows: rows.slice(0, most).reverse(), cut: next === undefined ? null : { until: next[time] } };
}

/** Whether something that began at the one and ended at the other time, or lasts, was within the period. */
const lasted = ({ from, to }: Shown, began: AnyPgColumn, ended: AnyPgColumn): SQL | undefined =>
  and(lte(began, to), or(isNull(ended), gte(ended, from)));

/** The days whose partitions can have rows of the period. */
const dayOf = (at: Time): string => at.slice(0, 10);

const ofNode = (
  view: { readonly cluster: AnyPgColumn; readonly node: AnyPgColumn },
  shown: Shown,
): SQL | undefined => and(eq(view.cluster, shown.cluster), eq(view.node, shown.node));

const containerOf = (view: typeof containerEvents | typeof relistChanges) => ({
  ...{ id: view.container_id, isSandbox: view.is_sandbox, podUid: view.pod_uid },
  ...{ podNamespace: view.pod_namespace, podName: view.pod_name, name: view.container_name },
});
