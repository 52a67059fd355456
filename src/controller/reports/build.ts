/*
 * From what SQL says of a node to the status of its report. Pure: the time comes with the row, from the database's clock.
 */
import { createHash } from 'node:crypto';
import { conditionsOf, SILENT_AFTER_MS } from './conditions.ts';
import type { EvidenceRow, MissedEventRow, ModeChangeRow, StateRow } from './evidence.ts';
import type { MissedEvent, ModeChange, ReportStatus } from './status.ts';
import { bytesOf, cut, pascalWord, present, snakeWord, timestamp, upperWord } from './text.ts';

export interface BuildOptions {
  /** Ingest could hear everybody for as long as makes an agent silent. */
  readonly ingestUpToDate: boolean;
  /** Whether pods and containers are named. */
  readonly podNames: boolean;
}

/** A report without managedFields is never larger. */
export const MAX_REPORT_BYTES = 4096;
/** Room for everything around the status: versions, UIDs and times; the node's name stands in it twice. */
const FRAME_BYTES = 512;
const MAX_HISTORY = 5;
const MAX_KINDS = 32;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export function buildStatus(row: EvidenceRow, { ingestUpToDate, podNames }: BuildOptions): ReportStatus {
  const status: ReportStatus = present({
    observedAt: timestamp(row.now),
    completeThrough: row.complete_through === null ? undefined : timestamp(row.complete_through),
    agent: present({
      version: cut(row.agent_version, 128),
      epoch: row.epoch ?? undefined,
      lastSeen: timestamp(row.last_seen),
    }),
    runtime: present({ name: cut(row.runtime_name, 128), version: cut(row.runtime_version, 128) }),
    kubelet: kubeletOf(row),
    mode: modeOf(row.state),
    modeSince: row.state === null ? undefined : timestamp(row.state.mode_since),
    stream: streamOf(row.state),
    relist: relistOf(row),
    observed24h: observedOf(row),
    missed: missedOf(row),
    findings24h: row.findings.filter(({ kind }) => snakeWord(kind) !== undefined).slice(0, MAX_KINDS),
    missedEvents: row.missed_events.slice(0, MAX_HISTORY).map((event) => missedEventOf(event, podNames)),
    modeHistory: row.mode_history.slice(0, MAX_HISTORY).map(modeChangeOf),
    conditions: conditionsOf(row, ingestUpToDate),
  });
  return squeeze(status, MAX_REPORT_BYTES - FRAME_BYTES - 2 * row.node.length);
}

/** How many errors of its own stream a kubelet forgives before it gives it up (kubelet pkg/kubelet/kubelet.go, eventedPlegMaxStreamRetries). */
const FORGIVEN_ERRORS = 5;
/** Relists that are further apart are those of a kubelet that relies on events, or that hangs. */
const SELDOM_MS = 10_000;
/** The agent's relists are slow from here on. */
const SLOW_MS = 1_000;
/** Slow changes of figures are noticed within this time, and a period that is not known yet soon after its mode began. */
const LOOK_AGAIN_MS = HOUR_MS / 2;
const PERIOD_LOOK_MS = 30_000;

/**
 * A digest of what a reader cares about: two statuses with the same digest need no second write. Left out are times and
 * figures that move by themselves; of relists only whether they are known, seldom or slow.
 */
export function digestOf(status: ReportStatus): string {
  const { agent, runtime, kubelet, mode, modeSince, stream, missed, missedEvents, modeHistory, conditions } =
    status;
  const shown = [
    [agent.version, agent.epoch, runtime, kubelet.version, kubelet.model],
    [
      Math.min(FORGIVEN_ERRORS, kubelet.streamErrors ?? -1),
      isOver(kubelet.relistPeriodMilliseconds, SELDOM_MS),
      isOver(status.relist?.p99Milliseconds, SLOW_MS),
    ],
    [mode, modeSince, stream, missed, missedEvents, modeHistory],
    conditions.map(({ type, status: value, reason }) => [type, value, reason]),
  ];
  return createHash('sha256').update(JSON.stringify(shown)).digest('hex');
}

const isOver = (figure: number | undefined, limit: number): boolean | null =>
  figure === undefined ? null : figure >= limit;

/** How long until the report may change without a new record, in milliseconds. */
export function recheckAfter(row: EvidenceRow, status: ReportStatus, refreshMs: number): number {
  const oldest = row.missed_oldest24h;
  const missLeaves = oldest === null ? refreshMs : oldest.getTime() + DAY_MS - row.now.getTime();
  const of = (type: string) => status.conditions.find((condition) => condition.type === type);
  const incomplete = of('EvidenceComplete')?.status === 'True' ? refreshMs : lookAgain(row);
  const behind = of('AgentReporting')?.status === 'Unknown' ? SILENT_AFTER_MS / 6 : refreshMs;
  return Math.max(1_000, Math.min(refreshMs, LOOK_AGAIN_MS, missLeaves, incomplete, behind, periodDue(row)));
}

/** A kubelet that has just changed its mode tells how often it relists after two relists: minutes, with Evented PLEG. */
function periodDue({ now, state, kubelet_relist_period_ms }: EvidenceRow): number {
  if (state === null || state.mode === 'Unknown' || kubelet_relist_period_ms !== null) return LOOK_AGAIN_MS;
  const age = now.getTime() - Date.parse(state.mode_since);
  return age < LOOK_AGAIN_MS ? PERIOD_LOOK_MS : LOOK_AGAIN_MS;
}

/** Evidence of a young node completes soon, that of an old one only as a gap leaves the day. */
function lookAgain({ now, first_seen }: EvidenceRow): number {
  return Math.min(HOUR_MS / 6, Math.max(15_000, (now.getTime() - first_seen.getTime()) / 4));
}

const modeOf = (state: StateRow | null): string => pascalWord(state?.mode ?? null) ?? 'Unknown';

function kubeletOf(row: EvidenceRow): ReportStatus['kubelet'] {
  return present({
    version: cut(row.kubelet_version, 128),
    model: pascalWord(row.state?.model ?? null),
    streamErrors: row.kubelet_stream_errors ?? undefined,
    relistPeriodMilliseconds:
      row.kubelet_relist_period_ms === null ? undefined : Math.round(row.kubelet_relist_period_ms),
  });
}

function streamOf(state: StateRow | null): ReportStatus['stream'] {
  if (state === null) return undefined;
  return present({
    state: pascalWord(state.stream_state) ?? 'Unknown',
    since: timestamp(state.stream_since),
    reason: cut(state.stream_reason, 256),
    lastError: cut(state.stream_error, 256),
  });
}

function relistOf({ p50_ms, p99_ms, relist_errors }: EvidenceRow): ReportStatus['relist'] {
  if (p50_ms === null || p99_ms === null) return undefined;
  return {
    p50Milliseconds: Math.ceil(p50_ms),
    p99Milliseconds: Math.ceil(p99_ms),
    errors: relist_errors ?? 0,
  };
}

function observedOf(row: EvidenceRow): ReportStatus['observed24h'] {
  return {
    expected: row.expected,
    matched: row.matched,
    unobservable: row.unobservable,
    coveredSeconds: Math.min(86_400, Math.floor(row.covered_us / 1e6)),
  };
}

/** Absent where nothing could be observed: an unsafe runtime must never look like a clean one. */
function missedOf(row: EvidenceRow): ReportStatus['missed'] {
  const found = row.missed_last24h + row.missed_resolved24h;
  if (row.covered_us === 0 && found === 0) return undefined;
  return present({
    total: row.missed_total,
    last24h: row.missed_last24h,
    resolved24h: row.missed_resolved24h,
    lastAt: row.missed_last_at === null ? undefined : timestamp(row.missed_last_at),
  });
}

function missedEventOf(event: MissedEventRow, podNames: boolean): MissedEvent {
  const name = (text: string | null, max: number) => (podNames ? cut(text, max) : undefined);
  return present({
    findingID: event.finding_id,
    at: timestamp(event.at),
    eventType: upperWord(event.event_type),
    namespace: name(event.pod_namespace, 63),
    pod: name(event.pod_name, 253),
    container: name(event.container_name, 63),
    cause: snakeWord(event.cause),
    statusLagMilliseconds: event.lag_ms === null ? undefined : Math.max(0, Math.round(event.lag_ms)),
  });
}

function modeChangeOf(change: ModeChangeRow): ModeChange {
  return present({
    at: timestamp(change.at),
    from: pascalWord(change.from_mode) ?? 'Unknown',
    to: pascalWord(change.to_mode) ?? 'Unknown',
    reason: pascalWord(change.reason),
  });
}

/** Cuts the oldest entries, then the free texts, until the status has at most so many bytes. */
function squeeze(status: ReportStatus, maxBytes: number): ReportStatus {
  let fitting = status;
  for (let less: ReportStatus | null = status; less !== null && bytesOf(less) > maxBytes; ) {
    less = shorter(less);
    fitting = less ?? fitting;
  }
  return fitting;
}

function shorter(status: ReportStatus): ReportStatus | null {
  const { missedEvents, modeHistory, stream } = status;
  if (missedEvents.length > 0 && bytesOf(missedEvents) >= bytesOf(modeHistory)) {
    return { ...status, missedEvents: missedEvents.slice(0, -1) };
  }
  if (modeHistory.length > 0) return { ...status, modeHistory: modeHistory.slice(0, -1) };
  if (stream?.reason !== undefined || stream?.lastError !== undefined) {
    return { ...status, stream: { state: stream.state, since: stream.since } };
  }
  if (status.conditions.some(({ message }) => message.length > 0)) {
    return { ...status, conditions: status.conditions.map((condition) => ({ ...condition, message: '' })) };
  }
  return null;
}
