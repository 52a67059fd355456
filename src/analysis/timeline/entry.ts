/*
 * A node, and an entry of its timeline, as the function plegwatch.timeline has it. Times are in UTC, to the microsecond. Nobody has checked its texts.
 */
import { int4, text, timestamptz, uuid } from '../../store/schema/columns.ts';
import type { nodes } from '../../store/schema/views.ts';
import { nullable, type RowOf, rowOf, statement } from '../../store/statement.ts';
import readTimelineSql from './sql/readTimeline.sql';

export const timelineRow = rowOf({
  ...{ at: timestamptz, until: nullable(timestamptz), kind: text, what: text },
  /** namespace/name */
  pod: nullable(text),
  ...{ container: nullable(text), container_id: nullable(text), detail: nullable(text) },
  ...{ epoch: nullable(uuid), seq: nullable(int4) },
});
export const readTimeline = statement(readTimelineSql, timelineRow);
export type TimelineEntry = RowOf<typeof readTimeline>;

/** When there was evidence of a node; null if it never had an agent. */
export type NodeRow = Readonly<
  Pick<typeof nodes.$inferSelect, 'cluster' | 'node' | 'first_seen' | 'last_seen'>
>;

/** Entries that every pod causes when it starts or ends. */
export const isRoutine = ({ kind }: TimelineEntry): boolean => kind === 'event' || kind === 'change';
