/*
 * A node, and an entry of its timeline, as the function plegwatch.timeline has it. Times are in UTC, to the microsecond. Nobody has checked its texts.
 */

export interface TimelineEntry {
  readonly at: string;
  readonly until: string | null;
  readonly kind: string;
  readonly what: string;
  /** namespace/name */
  readonly pod: string | null;
  readonly container: string | null;
  readonly container_id: string | null;
  readonly detail: string | null;
  readonly epoch: string | null;
  readonly seq: number | null;
}

/** When there was evidence of a node; null if it never had an agent. */
export interface NodeRow {
  readonly cluster: string;
  readonly node: string;
  readonly first_seen: string | null;
  readonly last_seen: string | null;
}

/** What every pod causes when it starts or ends. */
export const isRoutine = ({ kind }: TimelineEntry): boolean => kind === 'event' || kind === 'change';
