/*
 * The six conditions of a report, and whether the agent's last reported state is that of the present.
 *
 *   unseen    no batch of an agent was ever stored: nothing is known of the node
 *   silent    no batch of the agent was stored for three minutes, by the database's clock. Its last reported state says nothing of the
 *             present then, whatever it was
 *   behind    ingest was not up to date in those three minutes, or no controller runs: the silence may be our fault, so no agent becomes silent.
 *             An agent that was silent before, and of which nothing was stored since, stays silent
 *   policy    we chose not to subscribe (an unsafe runtime, or a setting): not a fault, but the evidence is not complete
 *   complete  no record is missing, and of the last 24 hours since the node was first seen at most a thousandth of 24 hours was not covered
 *
 * Messages contain no counts: a condition is written again whenever its message changes.
 */
import { CONSEQUENCES, type FallbackConsequence, fallbackConsequence } from '../../protocol/fallback.ts';
import type { BootRow, EvidenceRow, ListHangRow, NodeStateRow } from './evidence.ts';
import type { ReportCondition } from './status.ts';
import { cut, pascalWord, timestamp } from './text.ts';

/** An agent that is not known to have run for longer than this is silent; in the views: `store.silent_after()`. */
export const SILENT_AFTER_MS = 180_000;
/**
 * After an outage an agent that runs is heard of within this time: it waits up to 30 s for Redis, then up to 15 s for a reply. An agent that did not
 * notice the outage, and has nothing to send, gives a sign of life every 60 s at the latest.
 */
const MAX_ANSWER_MS = 90_000;

export interface SilenceOptions {
  /** Default: {@link SILENT_AFTER_MS}. */
  readonly silentAfterMs?: number;
}

export const CONDITION_TYPES = [
  'Ready',
  'AgentReporting',
  'StreamConnected',
  'RelistHealthy',
  'EvidenceComplete',
  'EventedPLEGInUse',
] as const;
export type ConditionType = (typeof CONDITION_TYPES)[number];
const AGENT_STATES = ['Reporting', 'AgentSilent', 'NeverSeen', 'IngestBehind'] as const;
export type AgentReason = (typeof AGENT_STATES)[number];
/** The reasons of the condition `AgentReporting`. `TwoAgents`: the agent reports, and so does one on another machine under the same name. */
export const AGENT_REASONS = [...AGENT_STATES, 'TwoAgents'] as const;

/** A thousandth of 24 hours. A new node has the same allowance, because its agent takes time to start. */
const MAX_UNCOVERED_S = 86.4;
const UNCOVERED = `${MAX_UNCOVERED_S} s of the last 24 hours, counted from when the node was first seen,`;

/** The part of the evidence that says how a node is now. */
export type PresentRow = Pick<
  EvidenceRow,
  'now' | 'last_seen' | 'ingest_caught_up_ms' | 'kubelet_version' | 'list_hang'
> & {
  readonly state: Pick<
    NodeStateRow,
    'stream_state' | 'relist_healthy' | 'relist_reason' | 'mode' | 'mode_reason' | 'kubelet_error'
  > | null;
  readonly conditions: readonly EvidenceRow['conditions'][number][];
};

interface ConditionState<Reason extends string = string> {
  readonly status: ReportCondition['status'];
  readonly reason: Reason;
  readonly message: string;
}

const yes = <R extends string>(reason: R, message: string): ConditionState<R> => ({
  ...{ status: 'True', reason, message },
});
const no = <R extends string>(reason: R, message: string): ConditionState<R> => ({
  ...{ status: 'False', reason, message },
});
const unknown = <R extends string>(reason: R, message: string): ConditionState<R> => ({
  ...{ status: 'Unknown', reason, message },
});

const REPORTING = yes('Reporting', 'The agent reports.');
const REPORTING_UNSIGNED = yes(
  'Reporting',
  'The agent reports, without signatures: whoever has the Redis user of agents may have sent this in its name.',
);

/** At least two boots, the first of which are named. */
function twoAgents(boots: readonly BootRow[], isUnsigned: boolean): ConditionState {
  const named = boots
    .slice(0, 2)
    .map(({ boot_id, started_at }) => `boot ${cut(boot_id, 36)} since ${timestamp(started_at)}`);
  const unsigned = isUnsigned ? ', without signatures' : '';
  return yes('TwoAgents', `Agents of two machines report under this name${unsigned}: ${named.join(', ')}.`);
}

/** The condition of an agent that reports. */
function reporting({ attributed, boots }: Pick<EvidenceRow, 'attributed' | 'boots'>): ConditionState {
  if (boots.length > 0) return twoAgents(boots, attributed === false);
  return attributed === false ? REPORTING_UNSIGNED : REPORTING;
}
const BEHIND = unknown('IngestBehind', 'Evidence may be waiting to be stored; the agent may be reporting.');
const NEVER_SEEN = no(
  'NeverSeen',
  'No agent has ever reported from this Node: check that an agent runs on it, and the log of that agent.',
);
const NEVER_OBSERVED = unknown('NeverSeen', 'No agent has ever reported from this Node.');
const NO_EVIDENCE = unknown('NoEvidence', 'The agent has not reported its state yet.');
const SILENT_STATE = unknown('AgentSilent', 'The agent is silent; its last reported state may be outdated.');

/** All six, in a fixed order. */
export function conditionsOf(row: EvidenceRow, options: SilenceOptions): ReportCondition[] {
  const { agent, stream, lists, mode } = presentStates(row, options);
  const states: [ConditionType, ConditionState][] = [
    ['Ready', ready(agent, lists)],
    ['AgentReporting', agent === REPORTING ? reporting(row) : agent],
    ['StreamConnected', stream],
    ['RelistHealthy', lists],
    ['EvidenceComplete', evidenceComplete(row, agent)],
    ['EventedPLEGInUse', mode],
  ];
  return states.map(([type, { status, reason, message }]) => {
    const before = conditionOf(row, type);
    const since = before?.status === status ? before.since : row.now;
    return { type, status, lastTransitionTime: timestamp(since), reason, message: cut(message, 256) ?? '' };
  });
}

/** AgentReporting, StreamConnected, RelistHealthy and EventedPLEGInUse. */
export function presentStates(row: PresentRow, options: SilenceOptions) {
  const agent = agentReporting(row, options);
  return {
    agent,
    stream: streamConnected(row, agent),
    lists: relistHealthy(row, agent),
    mode: eventedPlegInUse(row, agent),
  };
}

/** The condition of an object that has conditions: a status, or evidence. */
export const conditionOf = <C extends { readonly type: string }>(
  { conditions }: { readonly conditions: readonly C[] },
  type: ConditionType,
): C | undefined => conditions.find((condition) => condition.type === type);

/** Whether the agent is known to have run lately: only then is its state that of the present. */
export function isReporting(
  { now, last_seen }: Pick<EvidenceRow, 'now' | 'last_seen'>,
  { silentAfterMs = SILENT_AFTER_MS }: SilenceOptions,
): boolean {
  return last_seen !== null && Date.parse(now) - Date.parse(last_seen) <= silentAfterMs;
}

/** The columns that say whether an agent reports. */
export type AgentRow = Pick<PresentRow, 'now' | 'last_seen' | 'ingest_caught_up_ms' | 'conditions'>;

export function agentReporting(row: AgentRow, options: SilenceOptions): ConditionState<AgentReason> {
  if (isReporting(row, options)) return REPORTING;
  const isBehind =
    row.ingest_caught_up_ms < (row.last_seen === null ? 1 : maxAnswerMs(options.silentAfterMs));
  if (isBehind && !isSilentAlready(row)) return BEHIND;
  if (row.last_seen === null) return NEVER_SEEN;
  return no('AgentSilent', `The agent has not reported since ${timestamp(row.last_seen)}.`);
}

/** For how long ingest must have been up to date before an agent without a new batch counts as silent. */
export const maxAnswerMs = (silentAfterMs = SILENT_AFTER_MS): number =>
  Math.min(MAX_ANSWER_MS, silentAfterMs);

function isSilentAlready(row: AgentRow): boolean {
  const before = conditionOf(row, 'AgentReporting');
  const { last_seen } = row;
  return (
    before?.status === 'False' && (last_seen === null || Date.parse(before.since) > Date.parse(last_seen))
  );
}

function ready(agent: ConditionState, relist: ConditionState): ConditionState {
  if (agent.status !== 'True') return agent;
  return relist.status === 'True' ? yes('Recording', 'The agent reports and relists.') : relist;
}

function relistHealthy({ state, list_hang }: PresentRow, agent: ConditionState): ConditionState {
  if (agent.status !== 'True') return outdated(agent);
  if (list_hang !== null) {
    const named = list_hang.container_id === null ? '' : `${heldUpBy(list_hang)}: `;
    return no('ListHangs', `${named}${list_hang.why}.`);
  }
  if (state === null) return NO_EVIDENCE;
  return state.relist_healthy
    ? yes('Listing', 'The runtime answers list calls.')
    : no(
        'ListsFailing',
        state.relist_reason === '' ? 'The runtime does not answer list calls.' : state.relist_reason,
      );
}

/** The cause of a list that hangs. If no status holds it up, the runtime does. */
export function heldUpBy({
  verdict,
  pod_namespace,
  pod_name,
  container_name,
  container_id,
}: Omit<ListHangRow, 'list_call' | 'from_at' | 'why'>): string {
  if (verdict === 'runtime' || verdict === 'none') return 'runtime';
  if (container_id === null) return 'unknown';
  const names = [pod_namespace, pod_name, container_name].filter((name) => name !== null && name !== '');
  return names.length === 0 ? container_id : names.join('/');
}

function outdated(agent: ConditionState): ConditionState {
  if (agent.reason === BEHIND.reason) return agent;
  return agent.reason === NEVER_SEEN.reason ? NEVER_OBSERVED : SILENT_STATE;
}

const CONNECTION_BY_STATE: Readonly<Record<string, ConditionState>> = {
  Active: yes('Active', 'Events arrive.'),
  Arming: unknown(
    'Arming',
    'Subscribed; nothing proves yet that events arrive, because the runtime sends nothing before its first event.',
  ),
  Silent: no('Silent', 'Subscribed, but no events arrive although containers change.'),
  Starved: no(
    'Starved',
    'Events no longer arrive although containers change: another subscriber may not be reading, or the runtime stalls.',
  ),
  Interrupted: no('Interrupted', 'The stream broke and is being reopened.'),
  Unsupported: no('Unsupported', 'This runtime has no event stream.'),
  Disabled: no('Disabled', 'The event stream is switched off in the runtime.'),
  Unsafe: unknown('Policy', 'Not subscribed: with this runtime a subscriber could harm the node.'),
  Off: unknown('Policy', 'Not subscribed: switched off by --subscribe.'),
};

function streamConnected({ state }: PresentRow, agent: ConditionState): ConditionState {
  if (agent.status !== 'True') return outdated(agent);
  return state === null ? NO_EVIDENCE : ofStreamState(state.stream_state);
}

function ofStreamState(name: string): ConditionState {
  const reason = pascalWord(name) ?? 'NoEvidence';
  return (
    CONNECTION_BY_STATE[name] ??
    unknown(reason, 'The agent reports a state that this controller does not know.')
  );
}

/** Stream states without complete evidence, whatever was covered before. */
const WITHOUT_STREAM = new Set(['Unsafe', 'Off', 'Unsupported', 'Disabled']);

function evidenceComplete(row: EvidenceRow, agent: ConditionState): ConditionState {
  if (agent.reason === BEHIND.reason) return BEHIND;
  if (agent.reason === NEVER_SEEN.reason)
    return no('NeverSeen', 'No agent has ever reported from this Node.');
  if (agent.status !== 'True') return no('AgentSilent', 'The agent is silent.');
  if (row.state === null) return NO_EVIDENCE;
  if (WITHOUT_STREAM.has(row.state.stream_state)) {
    const { reason } = ofStreamState(row.state.stream_state);
    return no(reason, 'Without an event stream, missed events cannot be found.');
  }
  if (row.records_lost)
    return no('RecordsLost', 'Records of the last 24 hours are missing in the store; see the gaps in SQL.');
  if (row.observed_to === null) return unknown('NoEvidence', 'No minute has been reported yet.');
  return row.covered_us > 0 && uncoveredSeconds(row, row.observed_to) <= MAX_UNCOVERED_S
    ? yes('Covered', `At most ${UNCOVERED} were not covered.`)
    : no('CoverageLow', `More than ${UNCOVERED} were not covered; see observed24h, and the gaps in SQL.`);
}

/** The part of the last 24 hours that was not covered, without the time before the node was first seen. */
function uncoveredSeconds(row: EvidenceRow, to: string): number {
  return (Date.parse(to) - Date.parse(row.observed_from)) / 1000 - row.covered_us / 1e6;
}

const RUNTIME_UNSUPPORTED = no('RuntimeUnsupported', 'The gate is on, but the runtime has no event stream.');

/** By what giving up the stream means in its version. */
const FELL_BACK: Readonly<Record<FallbackConsequence, ConditionState>> = {
  wrong_until_restart: fellBack('PodsStayWrong', 'wrong_until_restart'),
  slower: fellBack('FellBack', 'slower'),
  hint_lost: fellBack('HintLost', 'hint_lost'),
  unknown: fellBack('FellBack', 'unknown'),
};

/** The reasons of a kubelet that gave up its stream, other than that the runtime has none. */
export const FELL_BACK_REASONS: ReadonlySet<string> = new Set(
  Object.values(FELL_BACK).map(({ reason }) => reason),
);

function fellBack(reason: string, consequence: FallbackConsequence): ConditionState {
  return no(reason, `The kubelet gave up the event stream. ${CONSEQUENCES[consequence]}`);
}

function eventedPlegInUse(
  { state, kubelet_version: kubeletVersion }: PresentRow,
  agent: ConditionState,
): ConditionState {
  if (agent.status !== 'True') return outdated(agent);
  if (state === null) return unknown('NoEvidence', 'The mode of the kubelet is not known yet.');
  const { mode, mode_reason: reason } = state;
  const consequence = fallbackConsequence({ mode, reason, kubeletVersion });
  if (consequence !== null)
    return reason === 'RuntimeUnsupported' ? RUNTIME_UNSUPPORTED : FELL_BACK[consequence];
  switch (state.mode) {
    case 'Evented':
      return yes('Connected', 'The kubelet uses the event stream.');
    case 'Generic':
      return no('GateDisabled', 'The kubelet relists only.');
    case 'EventedHint':
      return no('HintOnly', 'Events only trigger earlier relists.');
    default:
      return modeUnknown(state);
  }
}

function modeUnknown({
  mode_reason,
  kubelet_error,
}: Pick<NodeStateRow, 'mode_reason' | 'kubelet_error'>): ConditionState {
  const error = pascalWord(kubelet_error);
  if (error !== undefined)
    return unknown('NotObserved', `The agent cannot read the kubelet's metrics: ${error}.`);
  if (mode_reason === 'NotObserved')
    return unknown('NotObserved', "The agent has not read the kubelet's metrics for two minutes.");
  const reason = pascalWord(mode_reason) ?? 'NotReported';
  return unknown('NoEvidence', `The mode of the kubelet is unknown: ${reason}.`);
}
