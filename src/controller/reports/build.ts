/*
 * Builds the status of a report from the evidence of its node. Pure: the time comes with the row, from the database's clock.
 */
import { createHash } from 'node:crypto';
import { HEAD_BYTES, unpackHead } from '../../protocol/recordChain.ts';
import {
  conditionOf,
  conditionsOf,
  heldUpBy,
  isReporting,
  SILENT_AFTER_MS,
  type SilenceOptions,
} from './conditions.ts';
import type { EvidenceRow, ListHangRow, MissedEventRow, ModeChangeRow, NodeStateRow } from './evidence.ts';
import type { ReportedMiss, ReportedModeChange, ReportStatus } from './status.ts';
import { bytesOf, cut, pascalWord, present, snakeWord, timestamp, upperWord } from './text.ts';

/** Without managedFields. */
export const MAX_REPORT_BYTES = 4096;
/** Room for apiVersion, kind and metadata, without the two occurrences of the node's name. */
const FRAME_BYTES = 512;
export interface BuildOptions extends SilenceOptions {
  /** The labels that the report will have. */
  readonly labels?: Readonly<Record<string, string>>;
}

const MAX_HISTORY = 5;
const MAX_KINDS = 32;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export function buildStatus(row: EvidenceRow, options: BuildOptions = {}): ReportStatus {
  const reporting = isReporting(row, options);
  const state = reporting ? row.state : null;
  const status: ReportStatus = present({
    observedAt: timestamp(row.now),
    completeThrough: timeOf(row.complete_through),
    agent: present({
      version: cut(row.agent_version, 128),
      epoch: row.epoch ?? undefined,
      signedHead: signedHeadOf(row),
      lastSeen: reporting ? undefined : timeOf(row.last_seen),
    }),
    runtime: present({ name: cut(row.runtime_name, 128), version: cut(row.runtime_version, 128) }),
    kubelet: kubeletOf(row, state),
    mode: modeOf(state),
    modeSince: modeSinceOf(row, state),
    stream: reporting ? streamOf(state) : present({ state: 'Unknown', since: timeOf(row.last_seen) }),
    relist: relistOf(row),
    listHang: reporting ? listHangOf(row.list_hang) : undefined,
    observed24h: observedOf(row),
    missed: missedOf(row),
    findings24h: row.findings.filter(({ kind }) => snakeWord(kind) !== undefined).slice(0, MAX_KINDS),
    missedEvents: row.missed_events.slice(0, MAX_HISTORY).map(missedEventOf),
    modeHistory: row.mode_history.slice(0, MAX_HISTORY).map(modeChangeOf),
    conditions: conditionsOf(row, options),
  });
  return fitInto(
    status,
    MAX_REPORT_BYTES - FRAME_BYTES - 2 * row.node.length - bytesOf(options.labels ?? {}),
  );
}

/** After this many stream errors a kubelet falls back to generic PLEG (kubelet pkg/kubelet/kubelet.go, eventedPlegMaxStreamRetries). */
const MAX_STREAM_ERRORS = 5;
/** A kubelet that relists less often relies on events, or hangs. */
const RARE_RELIST_MS = 10_000;
/** A slow relist of the agent. */
const SLOW_RELIST_MS = 1_000;
/** Slow changes are noticed within this time. */
const RECHECK_MS = HOUR_MS / 2;
/** Soon after a mode change, until the kubelet's relist period is known. */
const RELIST_PERIOD_RECHECK_MS = 30_000;

/**
 * A digest of what a reader cares about: a status with the same digest as the last one is not written. Excludes times and counts that
 * change continually; of relists it only includes whether they are known, rare or slow.
 */
export function digestOf(status: ReportStatus): string {
  const { agent, runtime, kubelet, mode, modeSince, stream, missed, missedEvents, modeHistory, conditions } =
    status;
  const relevant = [
    [agent.version, agent.epoch, runtime, kubelet.version, kubelet.identity, kubelet.model],
    [
      Math.min(MAX_STREAM_ERRORS, kubelet.streamErrors ?? -1),
      isOver(kubelet.relistPeriodMilliseconds, RARE_RELIST_MS),
      isOver(status.relist?.p99Milliseconds, SLOW_RELIST_MS),
    ],
    [mode, modeSince, stream, missed, missedEvents, modeHistory, status.listHang],
    conditions.map(({ type, status: value, reason }) => [type, value, reason]),
    // Why the mode is unknown, and whether what an agent sends is signed. Other messages may be different at each failure.
    conditionOf(status, 'EventedPLEGInUse')?.message,
    conditionOf(status, 'AgentReporting')?.message,
  ];
  return createHash('sha256').update(JSON.stringify(relevant)).digest('hex');
}

const isOver = (value: number | undefined, limit: number): boolean | null =>
  value === undefined ? null : value >= limit;

/** Reasons for which evidence is not complete that minutes alone can end; all others end with a change of the agent's state. */
const COMPLETED_BY_TIME = new Set(['RecordsLost', 'CoverageLow', 'NoEvidence']);

/** How long until the report can change without new evidence, in milliseconds. */
export function recheckAfter(row: EvidenceRow, status: ReportStatus, refreshMs: number): number {
  const agent = conditionOf(status, 'AgentReporting')?.status;
  const oldestMiss = row.missed_oldest24h;
  const waits = [
    refreshMs,
    RECHECK_MS,
    agent === 'True' ? relistPeriodRecheck(row) : RECHECK_MS,
    oldestMiss === null ? refreshMs : Date.parse(oldestMiss) + DAY_MS - Date.parse(row.now),
    COMPLETED_BY_TIME.has(conditionOf(status, 'EvidenceComplete')?.reason ?? '')
      ? completenessRecheck(row)
      : refreshMs,
    agent === 'Unknown' ? SILENT_AFTER_MS / 6 : refreshMs,
  ];
  return Math.max(1_000, Math.min(...waits));
}

/** The relist period is known two relists after a mode change: with Evented PLEG, after minutes. */
function relistPeriodRecheck({ now, state, kubelet_relist_period_ms }: EvidenceRow): number {
  if (state === null || state.mode === 'Unknown' || kubelet_relist_period_ms !== null) return RECHECK_MS;
  const age = Date.parse(now) - Date.parse(state.mode_since);
  return age < RECHECK_MS ? RELIST_PERIOD_RECHECK_MS : RECHECK_MS;
}

/** The evidence of a new node can be complete soon, that of an old one only when a gap is 24 hours old. */
function completenessRecheck({ now, first_seen }: EvidenceRow): number {
  if (first_seen === null) return HOUR_MS / 6;
  return Math.min(HOUR_MS / 6, Math.max(15_000, (Date.parse(now) - Date.parse(first_seen)) / 4));
}

const modeOf = (state: NodeStateRow | null): string => pascalWord(state?.mode ?? null) ?? 'Unknown';

function signedHeadOf({ head, head_seq, head_from }: EvidenceRow): ReportStatus['agent']['signedHead'] {
  if (head?.length !== HEAD_BYTES || head_seq === null || head_from === null) return undefined;
  const { events, findings } = unpackHead(head);
  return { seq: head_seq, from: head_from, events, findings };
}

/** An unknown mode has lasted since the kubelet was last scraped. */
function modeSinceOf({ kubelet_seen_to }: EvidenceRow, state: NodeStateRow | null): string | undefined {
  if (state !== null) return timestamp(state.mode_since);
  return timeOf(kubelet_seen_to);
}

const timeOf = (at: string | null): string | undefined => (at === null ? undefined : timestamp(at));

/** Its figures are those of the present, which nobody knows without a state. */
function kubeletOf(row: EvidenceRow, state: NodeStateRow | null): ReportStatus['kubelet'] {
  const { kubelet_relist_period_ms: period, kubelet_stream_errors: errors } = row;
  return present({
    version: cut(row.kubelet_version, 128),
    identity: pascalWord(state?.kubelet_identity ?? null),
    model: pascalWord(state?.model ?? 'Unknown'),
    streamErrors: state === null ? undefined : (errors ?? undefined),
    relistPeriodMilliseconds: state === null || period === null ? undefined : Math.round(period),
  });
}

function streamOf(state: NodeStateRow | null): ReportStatus['stream'] {
  if (state === null) return undefined;
  return present({
    state: pascalWord(state.stream_state) ?? 'Unknown',
    since: timestamp(state.stream_since),
    reason: cut(state.stream_reason, 256),
    lastError: cut(state.stream_error, 256),
  });
}

function relistOf({ p50_ms, p99_ms, relist_errors }: EvidenceRow): ReportStatus['relist'] {
  if (relist_errors === null) return undefined;
  const rounded = (ms: number | null) => (ms === null ? undefined : Math.ceil(ms));
  return present({
    p50Milliseconds: rounded(p50_ms),
    p99Milliseconds: rounded(p99_ms),
    errors: relist_errors,
  });
}

function listHangOf(hang: ListHangRow | null): ReportStatus['listHang'] {
  if (hang === null) return undefined;
  return present({
    call: pascalWord(hang.list_call) ?? 'Unknown',
    since: timestamp(hang.from_at),
    verdict: pascalWord(capitalized(hang.verdict)) ?? 'Unknown',
    heldUpBy: cut(heldUpBy(hang), 400) ?? 'unknown',
    containerID: cut(hang.container_id, 256),
  });
}

const capitalized = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;

function observedOf(row: EvidenceRow): ReportStatus['observed24h'] {
  return {
    expected: row.expected,
    matched: row.matched,
    unobservable: row.unobservable,
    coveredSeconds: Math.min(86_400, Math.floor(row.covered_us / 1e6)),
  };
}

/** Absent if nothing could be observed: an unsafe runtime must not look like a faultless one. */
function missedOf(row: EvidenceRow): ReportStatus['missed'] {
  const found = row.missed_last24h + row.missed_resolved24h;
  if (row.covered_us === 0 && found === 0) return undefined;
  return present({
    total: row.missed_total,
    last24h: row.missed_last24h,
    resolved24h: row.missed_resolved24h,
    lastAt: timeOf(row.missed_last_at),
  });
}

function missedEventOf(event: MissedEventRow): ReportedMiss {
  return present({
    findingID: event.finding_id,
    at: timestamp(event.at),
    eventType: upperWord(event.event_type),
    namespace: cut(event.pod_namespace, 63),
    pod: cut(event.pod_name, 253),
    container: cut(event.container_name, 63),
    cause: snakeWord(event.cause),
    statusLagMilliseconds: event.lag_ms === null ? undefined : Math.max(0, Math.round(event.lag_ms)),
  });
}

function modeChangeOf(change: ModeChangeRow): ReportedModeChange {
  return present({
    at: timestamp(change.at),
    from: pascalWord(change.from_mode) ?? 'Unknown',
    to: pascalWord(change.to_mode) ?? 'Unknown',
    reason: pascalWord(change.reason),
  });
}

/** Drops the oldest entries, then the head, then the free texts, until the status fits. */
function fitInto(status: ReportStatus, maxBytes: number): ReportStatus {
  let fitting = status;
  while (bytesOf(fitting) > maxBytes) {
    const reduced = shorter(fitting);
    if (reduced === null) break;
    fitting = reduced;
  }
  return fitting;
}

function shorter(status: ReportStatus): ReportStatus | null {
  const { missedEvents, modeHistory, stream } = status;
  if (missedEvents.length > 0 && bytesOf(missedEvents) >= bytesOf(modeHistory)) {
    return { ...status, missedEvents: missedEvents.slice(0, -1) };
  }
  if (modeHistory.length > 0) return { ...status, modeHistory: modeHistory.slice(0, -1) };
  const { signedHead, ...agent } = status.agent;
  if (signedHead !== undefined) return { ...status, agent };
  if (stream?.reason !== undefined || stream?.lastError !== undefined) {
    return { ...status, stream: present({ state: stream.state, since: stream.since }) };
  }
  if (status.conditions.some(({ message }) => message.length > 0)) {
    return { ...status, conditions: status.conditions.map((condition) => ({ ...condition, message: '' })) };
  }
  return null;
}
