/*
 * A finding in sentences, for people who do not know plegwatch.
 */

import { type FanOut, profileOf, verificationOf } from '../../cri/profiles.ts';

import { CONSEQUENCES, fallbackConsequence } from '../../protocol/fallback.ts';

import type { FindingKind } from '../../protocol/record.ts';
import type { EvidenceLine, FindingRow } from './finding.ts';

/** docs/explanation/missed-events.md has the rules. */
const KINDS: Readonly<Record<FindingKind, string>> = {
  missed:
    'This event was due and was not delivered to the subscription of plegwatch, which was watched without a break from before the change until the verdict.',
  late: 'The event was received long after what it announces, or after it was reported as missed.',
  out_of_order: 'An event of an earlier stage followed one of a later stage.',
  stale: 'The event was created before a list that showed a later stage, and received long after it.',
  duplicate: 'An event of this type was received again for the same container.',
  spurious: 'Two lists that began after the event contradict it.',
  unannounced: 'This runtime never announces this transition with an event: a blind spot, not a miss.',
  short_life:
    'The life, run or end of the container lies between two successive lists: only the stream could show it.',
  duplicate_container: 'Two containers of one pod and name were running at once.',
  regression: 'A list showed the container running after an earlier one had shown it exited.',
  silent_stream: 'Lists prove transitions while no event of any container arrived.',
  kubelet_late:
    "The kubelet's own status did not show this change when the kubelet was asked for it, long after the runtime had made it.",
  unobservable: 'An event was due, and it cannot be known whether it was sent: this accuses nobody.',
};
const RESOLVED_MISS =
  'This event had not been delivered to the subscription of plegwatch when it was judged. That no longer counts: the event was received since, or what it announces turned out not to have happened.';
const FAILED_START =
  'The container failed to start, and this runtime announces no STOPPED of a start that failed: a blind spot, not a miss.';

const isResolvedMiss = ({ kind, resolved_at }: Pick<FindingRow, 'kind' | 'resolved_at'>): boolean =>
  kind === 'missed' && resolved_at !== null;

/** The meaning of the kind of the finding; empty for one of a later version. */
export function meaningOf(finding: Pick<FindingRow, 'kind' | 'cause' | 'resolved_at'>): string {
  if (isResolvedMiss(finding)) return RESOLVED_MISS;
  if (finding.kind === 'unannounced' && finding.cause === 'failed_start') return FAILED_START;
  return KINDS[finding.kind as FindingKind] ?? '';
}

/** Why the event of a miss was due, by its cause. */
const PROOFS: Readonly<Record<string, string>> = {
  unannounced_by_list:
    'A list of the runtime, or its own status, showed that this had happened. The runtime announces that with an event.',
  sequence:
    'An event that was received shows that this had happened before. The runtime announces that with an event of its own.',
  runtime_state_late:
    "The time in the runtime's own status says when this happened. Lists went on showing the state before it for longer than an event may take, and the event did not come then either. The runtime announces that with an event.",
};

/** The proof of a miss, in a sentence; empty for other findings, of which the cause says something else. */
export const provenBy = ({ kind, cause }: Pick<FindingRow, 'kind' | 'cause'>): string =>
  kind === 'missed' ? (PROOFS[cause ?? ''] ?? '') : '';

export function titleOf(finding: Pick<FindingRow, 'kind' | 'event_type' | 'resolved_at'>): string {
  const { kind, event_type } = finding;
  if (isResolvedMiss(finding)) return `overdue ${event_type ?? 'event'}, resolved`;
  return event_type === null ? kind : `${kind} ${event_type}`;
}

/** The name of the container that the finding is about. */
export const containerNameOf = ({
  container_name,
  is_sandbox,
}: Pick<FindingRow, 'container_name' | 'is_sandbox'>): string =>
  container_name ?? (is_sandbox === true ? '(sandbox)' : '(name unknown)');

/** Between which moments it happened, and when its event came. */
export function timesOf(finding: FindingRow): string {
  const { window_from, window_to, occurred_at, detected_at, resolved_at, event_type } = finding;
  const parts = [
    window_from !== null && window_to !== null ? `It happened between ${window_from} and ${window_to}.` : '',
    occurred_at === null ? '' : `By the runtime's own times it happened at ${occurred_at}.`,
    delayOf(finding),
    `The verdict was reached at ${detected_at}.`,
    finding.kind === 'missed' ? arrivalOf(event_type, resolved_at) : '',
    finding.kind === 'kubelet_late' ? shownOf(finding) : '',
  ];
  return parts.filter((part) => part !== '').join(' ');
}

const arrivalOf = (eventType: string | null, resolvedAt: string | null): string =>
  resolvedAt === null
    ? `No ${eventType ?? 'such'} event of it was received since.`
    : `It was resolved at ${resolvedAt}.`;

function shownOf({ resolved_at, kubelet_at_most_ms }: FindingRow): string {
  if (resolved_at === null) return 'The status was not seen to show it since.';
  // Then it says nothing of how long the status did not show it.
  if (kubelet_at_most_ms === null)
    return `The runtime took back what its lists had shown, at ${resolved_at}.`;
  return `The status showed it, the pod had ended, or another container had replaced this one, at ${resolved_at}.`;
}

/** Whose delay it is, by the cause of a late event. */
const DELAYS: Readonly<Record<string, string>> = {
  built_late: 'Most of the delay is before that: the runtime built the event late.',
  delivered_late:
    'Most of the delay is after that, and this agent read the socket all the time: the runtime, or another subscriber that does not read, held the event back.',
};

/** When an event that came was built and received. */
function delayOf({ kind, cause, occurred_at, lateness_ms, delivery_ms }: FindingRow): string {
  // It is about no event.
  if (kind === 'kubelet_late') return '';
  const received = delivery_ms === null ? '' : `received ${milliseconds(delivery_ms)} after that`;
  if (occurred_at === null || lateness_ms === null)
    return delivery_ms === null
      ? ''
      : `The event was received ${milliseconds(delivery_ms)} after the runtime had built it.`;
  const arrived = momentAfter(occurred_at, lateness_ms);
  if (delivery_ms === null)
    return `The event was received ${milliseconds(lateness_ms)} later, at ${arrived}.`;
  const built = momentAfter(occurred_at, lateness_ms - delivery_ms);
  const whose = kind === 'late' ? ` ${DELAYS[cause ?? ''] ?? ''}` : '';
  return `The runtime built the event ${milliseconds(Math.max(0, lateness_ms - delivery_ms))} later, at ${built}; it was ${received}, at ${arrived}.${whose}`.trim();
}

const momentAfter = (at: string, ms: number): string => new Date(Date.parse(at) + ms).toISOString();

/** Modes in which a kubelet subscribes to no events. */
const UNSUBSCRIBED: ReadonlySet<string> = new Set(['Generic', 'Fallback', 'HintDisabled']);

/** The consequence of a lost event for the kubelet's own subscription, by how the runtime serves several subscribers. */
const OF_KUBELET: Readonly<Record<FanOut, string>> = {
  own_queues:
    'This runtime has a queue for each subscriber, so this does not show whether the kubelet received the event. An event that the runtime never made reached nobody.',
  shared_queue:
    'This runtime sends one queue to all subscribers: an event that it never made, or dropped from that queue, reached nobody, the kubelet neither. One that it lost on the way to a single subscriber was lost to that one only.',
  one_subscriber: 'This runtime gives each event to one subscriber only: another one may have received it.',
  unknown:
    'It is not known how this runtime serves several subscribers, so this says nothing of the kubelet.',
};

/** Why it is not known whether the kubelet's own status showed a change. */
const NOT_OBSERVED: Readonly<Record<string, string>> = {
  no_pods_api: 'this kubelet does not offer its status, or it is not watched',
  before_watch: 'its status was not watched yet',
  watch_gap: 'the watch of its status was broken meanwhile',
  pod_unknown: 'its status of this pod was not known all the time',
  pod_ended: 'the pod had ended in its status',
  pod_terminating: 'the pod was being deleted',
  superseded: 'its status may have named a later container of the same name',
  state_unknown: 'the runtime itself did not know the state',
  container_gone: 'the runtime had removed the container',
  start_failed: 'the container failed to start',
  no_lower_bound: 'nothing says since when it can have happened',
  not_asked: 'the kubelet was not asked in time',
};

export const whyNotObserved = (why: string | null): string =>
  NOT_OBSERVED[why ?? ''] ?? why ?? 'no reason is given';

/** The kubelet's own status of a missed change, as far as it was observed. */
function knewOf({ kubelet_knew, kubelet_why, kubelet_at_least_ms, kubelet_at_most_ms }: FindingRow): string {
  const atLeast = kubelet_at_least_ms === null ? '' : milliseconds(kubelet_at_least_ms);
  if (kubelet_knew === 'shown') {
    const from = kubelet_at_least_ms === 0 ? '' : `at least ${atLeast} and `;
    return `The kubelet noticed: its own status showed the change ${from}at most ${milliseconds(kubelet_at_most_ms ?? 0)} after it.`;
  }
  if (kubelet_knew === 'not_shown')
    return `The kubelet was asked, and its own status did not show the change at least ${atLeast} after it.`;
  if (kubelet_knew !== 'not_observed') return '';
  return `Whether the kubelet's own status showed the change was not observed: ${whyNotObserved(kubelet_why)}.`;
}

/** The meaning of kubelet_late, and its limits. */
function latenessOf({ kubelet_at_least_ms, kubelet_at_most_ms }: FindingRow): string {
  const atLeast = milliseconds(kubelet_at_least_ms ?? 0);
  const atMost = kubelet_at_most_ms === null ? '' : `, and for at most ${milliseconds(kubelet_at_most_ms)}`;
  return `Its own status of the pod did not show the change for at least ${atLeast}${atMost}: it was asked for the pod then, and its status was watched without a gap from before the change. This does not show why. Its PLEG may not have noticed the change, or the pod's worker was busy: it holds the status up while it pulls an image or kills another container of the pod.`;
}

/** The consequence of a miss or a late status for the kubelet; empty for other findings, and for a miss once it is resolved. */
export function kubeletOf(finding: FindingRow): string {
  const { kind, resolved_at } = finding;
  if (kind === 'kubelet_late') return latenessOf(finding);
  if (kind !== 'missed' || resolved_at !== null) return '';
  return [knewOf(finding), receiptOf(finding)].filter((text) => text !== '').join(' ');
}

/** The consequence of a miss for the events that the kubelet receives. */
function receiptOf({ mode, runtime_name, runtime_version }: FindingRow): string {
  if (UNSUBSCRIBED.has(mode))
    return `The kubelet was in the mode ${mode}: it subscribes to no events and learns of changes from its own lists.`;
  const { fanOut } = profileOf({ name: runtime_name ?? '', version: runtime_version ?? '' });
  return OF_KUBELET[fanOut];
}

/** With which real runtimes the rules were checked that judged this; empty where the runtime is not known. */
export const rulesOf = ({
  runtime_name: name,
  runtime_version: version,
}: Pick<FindingRow, 'runtime_name' | 'runtime_version'>): string =>
  name === null || version === null ? '' : verificationOf({ name, version });

/** Why it is not known how long the published status was wrong. */
const UNKNOWN_LAG: Readonly<Record<string, string>> = {
  superseded: 'a later run of the container was published first',
  pod_deleted: 'the pod was deleted before the API server showed the change',
  uid_differs: 'the API server has another pod of this name',
  no_api_object: 'the API server has no pod for it',
  no_pod: 'the runtime reports no valid name, namespace and uid of the pod',
  timed_out: 'the API server did not show the change for as long as it was asked',
  not_read: 'the API server did not answer in time',
  shed: 'too many other transitions were being watched',
};

export const whyLagUnknown = (reason: string): string =>
  UNKNOWN_LAG[reason] === undefined ? reason : `${UNKNOWN_LAG[reason]} (${reason})`;

/** For how long the pod's published status was wrong, and what the kubelet did if it had given up its event stream. */
export function lagOf(finding: FindingRow): string {
  const { mode, mode_reason: reason, kubelet_version: kubeletVersion } = finding;
  const consequence = fallbackConsequence({ mode, reason, kubeletVersion });
  if (consequence === null) return measuredLagOf(finding);
  return `${measuredLagOf(finding)} The kubelet had given up the event stream. ${CONSEQUENCES[consequence]}`;
}

function measuredLagOf(finding: FindingRow): string {
  const { lag_min_ms, lag_max_ms, lag_anomalous, lag_reason } = finding;
  if (lag_min_ms === null && lag_max_ms === null) {
    if (lag_reason === null) return 'It was not measured.';
    return `It is not known: ${whyLagUnknown(lag_reason)}.`;
  }
  const atLeast = lag_min_ms === null ? '' : `at least ${milliseconds(lag_min_ms)}`;
  const atMost = lag_max_ms === null ? '' : `at most ${milliseconds(lag_max_ms)}`;
  const bounds = [atLeast, atMost].filter((bound) => bound !== '').join(' and ');
  const usual =
    lag_anomalous === null ? '' : `, which is ${lag_anomalous ? 'longer than usual' : 'usual'} on this node`;
  return `The API server showed the change after ${bounds}${usual}.${publishingOf(finding)}`;
}

/** How long it took from the kubelet's own status to the API server. */
function publishingOf({ publishing_min_ms, publishing_max_ms }: FindingRow): string {
  if (publishing_min_ms === null || publishing_max_ms === null) return '';
  return ` Of that, publishing what the kubelet knew took at least ${milliseconds(publishing_min_ms)} and at most ${milliseconds(publishing_max_ms)}.`;
}

const milliseconds = (ms: number): string =>
  ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;

/** The evidence in the order in which one checks it, by the tens of `line`. */
const SECTIONS: readonly (readonly [from: number, title: string])[] = [
  [10, 'What was due, and between which moments'],
  [40, 'What lists and the stream showed of it'],
  [60, 'What the runtime answered'],
  [70, 'Why nothing else explains it'],
  [90, 'Versions and limits'],
  [95, 'What became known later'],
];

export interface EvidenceSection {
  readonly title: string;
  readonly lines: readonly EvidenceLine[];
}

export function sectionsOf(evidence: readonly EvidenceLine[]): EvidenceSection[] {
  const sectionOf = (line: number) => SECTIONS.findLastIndex(([from]) => from <= line);
  return SECTIONS.map(([, title], at) => ({
    title,
    lines: evidence.filter(({ line }) => sectionOf(line) === at),
  })).filter(({ lines }) => lines.length > 0);
}

export const periodOf = ({ at, until }: EvidenceLine): string =>
  [at ?? '', until === null ? '' : ` to ${until}`].join('');
