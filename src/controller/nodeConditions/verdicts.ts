/*
 * The statements of a report, as conditions of its Node for programs that act on them. Pure.
 *
 *   verdict   a condition in the convention of node-problem-detector: True is the problem, False is none, Unknown is not known
 *   withheld  no verdict: evidence waits to be stored, which says nothing of any node, so the Nodes keep the conditions that they have
 *
 *   PLEGKubeletFallback      EventedPLEGInUse: the kubelet stopped using the event stream, which it had used
 *   PLEGListsFailing         RelistHealthy: the runtime's lists hang or fail
 *   PLEGEvidenceIncomplete   EvidenceComplete
 *
 * Reasons and messages are those of the report, which bounds them and escapes what a terminal would obey.
 */
import { PUBLISHED_TYPES, type PublishedCondition, type PublishedType } from '../../kube/projection.ts';
import { type AgentReason, type ConditionType, FELL_BACK_REASONS } from '../reports/conditions.ts';
import type { ReportCondition } from '../reports/status.ts';

/** A condition of a report, as it was built or as it is stored. */
export type ReportedCondition = Readonly<Record<'type' | 'status' | 'reason' | 'message', string>>;

export interface Verdict extends Pick<PublishedCondition, 'type' | 'reason' | 'message'> {
  readonly status: ReportCondition['status'];
}

interface Source {
  /** The condition of the report that it follows from. */
  readonly of: ConditionType;
  readonly isProblem: (condition: ReportedCondition) => boolean;
}

const isFalse = ({ status }: ReportedCondition): boolean => status === 'False';

/** A kubelet whose runtime has no event stream never used one: a restart would not help it. */
const SOURCES: Readonly<Record<PublishedType, Source>> = {
  PLEGKubeletFallback: { of: 'EventedPLEGInUse', isProblem: ({ reason }) => FELL_BACK_REASONS.has(reason) },
  PLEGListsFailing: { of: 'RelistHealthy', isProblem: isFalse },
  PLEGEvidenceIncomplete: { of: 'EvidenceComplete', isProblem: isFalse },
};

const WITHHELD: AgentReason = 'IngestBehind';

/** The conditions of a report that {@link verdictsOf} needs. */
export const SOURCE_TYPES: readonly string[] = PUBLISHED_TYPES.map((type) => SOURCES[type].of);

/** In the order of {@link PUBLISHED_TYPES}, without those that are withheld. */
export const verdictsOf = (conditions: readonly ReportedCondition[]): readonly Verdict[] =>
  PUBLISHED_TYPES.flatMap((type) => {
    const { of, isProblem } = SOURCES[type];
    const condition = conditions.find((each) => each.type === of);
    if (condition === undefined || condition.reason === WITHHELD) return [];
    const { reason, message } = condition;
    return [{ type, status: statusOf(condition, isProblem(condition)), reason, message }];
  });

function statusOf({ status }: ReportedCondition, isProblem: boolean): Verdict['status'] {
  if (status !== 'True' && status !== 'False') return 'Unknown';
  return isProblem ? 'True' : 'False';
}

/**
 * All conditions that the Node is to have from `at` on (RFC 3339), or null if they say what it has already. Where there is no verdict, what
 * it has stays. Only another status is a transition.
 */
export function conditionsAfter(
  present: readonly PublishedCondition[],
  verdicts: readonly Verdict[],
  at: string,
): readonly PublishedCondition[] | null {
  const before = (type: PublishedType) => present.find((condition) => condition.type === type);
  if (verdicts.every((verdict) => says(before(verdict.type), verdict))) return null;
  return PUBLISHED_TYPES.flatMap((type) => {
    const condition = before(type);
    const verdict = verdicts.find((each) => each.type === type);
    if (verdict === undefined) return condition === undefined ? [] : [condition];
    const since = condition?.status === verdict.status ? condition.lastTransitionTime : null;
    return [{ ...verdict, lastTransitionTime: since ?? at, lastHeartbeatTime: at }];
  });
}

/** The message of a problem counts too: it may name the container by now. Other messages may be different at each failure. */
const says = (condition: PublishedCondition | undefined, { status, reason, message }: Verdict): boolean =>
  condition?.status === status &&
  condition.reason === reason &&
  (status !== 'True' || condition.message === message);
