/*
 * The states that the kubelet and the API server showed after starts and stops, and the whole lives of the pods that were concerned: of these a
 * timeline shows more than its period.
 */
import { and, desc, inArray, lt } from 'drizzle-orm';
import { whyLagUnknown, whyNotObserved } from '../../analysis/finding/sentences.ts';
import type { SqlRunner } from '../../store/runner.ts';
import * as views from '../../store/schema/views.ts';
import type { Cut, Rows, Time } from '../api.ts';
import { readLags } from './statements.ts';
import { containerOf, eventFields, latest, ofNode, type Shown } from './timelineRows.ts';

/** Findings, and starts and stops after a fallback, each. */
const MAX_LAGS = 500;
const MAX_PODS = 50;
/** Events, and changes of lists, each. */
const MAX_EARLIER = 1_000;

export async function lagsOf(sql: SqlRunner, { nodeId, from, to }: Shown) {
  const { rows } = await sql.run(readLags, [nodeId, from, to, MAX_LAGS + 1]);
  return latest(
    rows.map(({ id, name, podUid, podNamespace, podName, kubeletWhy, lagReason, ...row }) => ({
      ...row,
      kubeletWhy: row.kubeletKnew === 'not_observed' ? whyNotObserved(kubeletWhy) : null,
      lagReason: lagReason === null ? null : whyLagUnknown(lagReason),
      container: { id, name, podUid, podNamespace, podName, isSandbox: false },
    })),
    'at',
    MAX_LAGS,
  );
}

type NamedRows = Rows<{ readonly container: { readonly podName: string | null } }>;

/** The events and changes of the pods of `lags` from before those that the answer has anyway. */
export async function earlierOf(
  runner: SqlRunner,
  shown: Shown,
  lags: NamedRows,
  cuts: { readonly events: Cut | null; readonly changes: Cut | null },
) {
  const names = new Set(lags.rows.toReversed().flatMap(({ container: { podName } }) => podName ?? []));
  const of = { ...shown, pods: [...names].slice(0, MAX_PODS) };
  if (of.pods.length === 0) return { events: [], changes: [] };
  return {
    events: await eventsBefore(runner, of, cuts.events?.until ?? shown.from),
    changes: await changesBefore(runner, of, cuts.changes?.until ?? shown.from),
  };
}

type OfPods = Shown & { readonly pods: readonly string[] };

function eventsBefore(runner: SqlRunner, { pods, ...shown }: OfPods, before: Time) {
  const view = views.containerEvents;
  return runner.query((db) =>
    db
      .select(eventFields())
      .from(view)
      .where(and(ofNode(view, shown), inArray(view.pod_name, [...pods]), lt(view.received_at, before)))
      .orderBy(desc(view.received_at), desc(view.seq))
      .limit(MAX_EARLIER),
  );
}

function changesBefore(runner: SqlRunner, { pods, ...shown }: OfPods, before: Time) {
  const view = views.relistChanges;
  return runner.query((db) =>
    db
      .select({
        ...{ from: view.window_from, to: view.window_to },
        ...{ oldState: view.old_state, newState: view.new_state, container: containerOf(view) },
      })
      .from(view)
      .where(and(ofNode(view, shown), inArray(view.pod_name, [...pods]), lt(view.window_to, before)))
      .orderBy(desc(view.window_to), desc(view.seq))
      .limit(MAX_EARLIER),
  );
}
