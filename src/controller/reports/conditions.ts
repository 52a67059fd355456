/*
 * The six conditions of a report.
 *
 *   silent    nothing of the agent was stored for three minutes, by the database's clock
 *   behind    ingest could not hear everybody for those three minutes: silence may be ours, so nobody is called silent. Who was
 *             called so, and was not heard since, stays silent
 *   policy    we chose not to subscribe (an unsafe runtime, or a setting): never a fault, never complete either
 *   complete  at most a thousandth of the last 24 hours was not covered since the node was first seen, no record is missing
 *
 * Messages carry no figures: a condition whose words change is written again.
 */
import type { EvidenceRow } from './evidence.ts';
import type { Condition } from './status.ts';
import { cut, pascalWord, timestamp } from './text.ts';

/** An agent that was not heard for longer is silent, in milliseconds. */
export const SILENT_AFTER_MS = 180_000;
/** A thousandth of 24 hours. A node that was just added has the same allowance, for the start of its agent. */
const MOST_UNCOVERED_S = 86.4;

interface Verdict {
  readonly status: Condition['status'];
  readonly reason: string;
  readonly message: string;
}

const yes = (reason: string, message: string): Verdict => ({ status: 'True', reason, message });
const no = (reason: string, message: string): Verdict => ({ status: 'False', reason, message });
const unknown = (reason: string, message: string): Verdict => ({ status: 'Unknown', reason, message });

const BEHIND = unknown(
  'IngestBehind',
  'Evidence is waiting to be stored; until it is, nobody is called silent.',
);
const NOTHING = unknown('NoEvidence', 'The agent has not told its state yet.');
const SILENT_STATE = unknown('AgentSilent', 'The agent is silent; what it last told is not known to hold.');

/** All six, in a fixed order. `ingestUpToDate`: what was not stored in {@link SILENT_AFTER_MS} was not sent. */
export function conditionsOf(row: EvidenceRow, ingestUpToDate: boolean): Condition[] {
  const agentReporting = agentVerdict(row, ingestUpToDate);
  const relistHealthy = relistVerdict(row, agentReporting);
  const verdicts: [string, Verdict][] = [
    ['Ready', readyVerdict(agentReporting, relistHealthy)],
    ['AgentReporting', agentReporting],
    ['StreamConnected', streamVerdict(row, agentReporting)],
    ['RelistHealthy', relistHealthy],
    ['EvidenceComplete', completeVerdict(row, agentReporting)],
    ['EventedPLEGInUse', eventedVerdict(row)],
  ];
  return verdicts.map(([type, { status, reason, message }]) => {
    const before = row.conditions.find((condition) => condition.type === type);
    const since = before?.status === status ? before.since : row.now;
    return { type, status, lastTransitionTime: timestamp(since), reason, message: cut(message, 256) ?? '' };
  });
}

function agentVerdict(row: EvidenceRow, ingestUpToDate: boolean): Verdict {
  if (row.now.getTime() - row.last_seen.getTime() <= SILENT_AFTER_MS)
    return yes('Reporting', 'The agent reports.');
  if (!ingestUpToDate && !isSilentAlready(row)) return BEHIND;
  return no('AgentSilent', `Nothing of the agent was stored since ${timestamp(row.last_seen)}.`);
}

function isSilentAlready({ conditions, last_seen }: EvidenceRow): boolean {
  const before = conditions.find(({ type }) => type === 'AgentReporting');
  return before?.status === 'False' && Date.parse(before.since) > last_seen.getTime();
}

function readyVerdict(agent: Verdict, relist: Verdict): Verdict {
  if (agent.status !== 'True') return agent;
  return relist.status === 'True' ? yes('Recording', 'The agent reports and relists.') : relist;
}

function relistVerdict({ state }: EvidenceRow, agent: Verdict): Verdict {
  if (agent.status !== 'True') return lapsed(agent);
  if (state === null) return NOTHING;
  return state.relist_healthy
    ? yes('Listing', 'The runtime answers the lists.')
    : no(
        'ListsFailing',
        state.relist_reason === '' ? 'The runtime does not answer the lists.' : state.relist_reason,
      );
}

const lapsed = (agent: Verdict): Verdict => (agent.reason === BEHIND.reason ? agent : SILENT_STATE);

const STREAM: Readonly<Record<string, Verdict>> = {
  Active: yes('Active', 'Events arrive.'),
  Arming: unknown('Arming', 'Subscribed; the first event, which proves it, has not come yet.'),
  Silent: no('Silent', 'Subscribed, but changes happen without any event.'),
  Interrupted: no('Interrupted', 'The stream broke and is being opened again.'),
  Unsupported: no('Unsupported', 'This runtime has no event stream.'),
  Disabled: no('Disabled', 'The event stream is switched off in the runtime.'),
  Unsafe: unknown('Policy', 'Not subscribed: with this runtime an observer would harm the node.'),
  Off: unknown('Policy', 'Not subscribed: switched off by --subscribe.'),
};

function streamVerdict({ state }: EvidenceRow, agent: Verdict): Verdict {
  if (state === null) return NOTHING;
  const verdict = streamOf(state.stream_state);
  if (verdict.reason === 'Policy' || agent.status === 'True') return verdict;
  return lapsed(agent);
}

function streamOf(name: string): Verdict {
  const reason = pascalWord(name) ?? 'NoEvidence';
  return STREAM[name] ?? unknown(reason, 'The agent tells a state that this controller does not know.');
}

/** Streams that cannot give complete evidence, whatever was covered before. */
const WITHOUT_STREAM = new Set(['Unsafe', 'Off', 'Unsupported', 'Disabled']);

function completeVerdict(row: EvidenceRow, agent: Verdict): Verdict {
  if (agent.reason === BEHIND.reason) return BEHIND;
  if (agent.status !== 'True') return no('AgentSilent', 'The agent is silent.');
  if (row.state === null) return NOTHING;
  if (WITHOUT_STREAM.has(row.state.stream_state)) {
    const { reason } = streamOf(row.state.stream_state);
    return no(reason, 'There is no event stream to compare with; missed events cannot be known.');
  }
  if (row.records_lost)
    return no('RecordsLost', 'Records of the last 24 hours are not in the store; see the gaps.');
  if (row.observed_to === null) return unknown('NoEvidence', 'No minute has been told yet.');
  return row.covered_us > 0 && uncoveredSeconds(row, row.observed_to) <= MOST_UNCOVERED_S
    ? yes('Covered', 'At least 99.9 % of the last 24 hours was covered since the node was first seen.')
    : no('CoverageLow', 'Less than 99.9 % of the last 24 hours was covered; see observed24h and the gaps.');
}

/** What was not covered of the last 24 hours; what was before the node was first seen does not count against it. */
function uncoveredSeconds(row: EvidenceRow, to: Date): number {
  return (to.getTime() - row.observed_from.getTime()) / 1000 - row.covered_us / 1e6;
}

const NO_STREAM_AT_ALL = no('RuntimeUnsupported', 'The gate is on, and the runtime has no event stream.');

function eventedVerdict({ state }: EvidenceRow): Verdict {
  if (state === null) return unknown('NoEvidence', 'The kubelet has not told its mode.');
  switch (state.mode) {
    case 'Evented':
      return yes('Connected', 'The kubelet uses the event stream.');
    case 'Fallback':
      return state.mode_reason === 'RuntimeUnsupported'
        ? NO_STREAM_AT_ALL
        : no('FellBack', 'The kubelet gave the event stream up until it is restarted.');
    case 'Generic':
      return no('GateDisabled', 'The kubelet relists only.');
    case 'EventedHint':
      return no('HintOnly', 'Events only ask for earlier relists.');
    case 'HintDisabled':
      if (state.mode_reason === 'RuntimeUnsupported') return NO_STREAM_AT_ALL;
      return no('FellBack', 'The kubelet gave the hints of the event stream up until it is restarted.');
    default:
      return unknown(
        'NoEvidence',
        `It is not known what the kubelet does: ${pascalWord(state.mode_reason) ?? 'NotTold'}.`,
      );
  }
}
