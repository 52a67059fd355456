/*
 * The unobserved parts of a node now, and why: by the conditions of its report, in their words. A node of which everything is observed has none.
 */
import {
  type AgentReason,
  type AgentRow,
  agentReporting,
  type PresentRow,
  presentStates,
} from './conditions.ts';
import { cut, pascalWord } from './text.ts';

export interface Unobserved {
  /** With everything, nothing else is said of a node: no agent reports, or its agent has not said yet what it observes. */
  readonly what: 'everything' | 'events' | 'lists' | 'mode';
  /** The reason of the condition. */
  readonly reason: string;
  /** The cause that kept the agent from the kubelet's metrics, such as Forbidden; null for all else. */
  readonly cause: string | null;
  readonly message: string;
  /** Null if it never was observed, or nobody knows since when it is not. */
  readonly since: string | null;
}

export type ObservationRow = PresentRow & {
  readonly stream_since: string | null;
  readonly mode_since: string | null;
};

/** The reason of `AgentReporting`, and of an agent that has started only that it has not said yet what it observes. */
export function agentStateOf(row: AgentRow & { readonly hasState: boolean }): AgentReason | 'NotReportedYet' {
  const { reason } = agentReporting(row, {});
  return reason === 'Reporting' && !row.hasState ? 'NotReportedYet' : reason;
}

export function unobservedOf(row: ObservationRow): Unobserved[] {
  const { agent, stream, lists, mode } = presentStates(row, {});
  const found = (what: Unobserved['what'], state: typeof stream, since: string | null): Unobserved => {
    const cause = what === 'mode' ? (pascalWord(row.state?.kubelet_error ?? null) ?? null) : null;
    return { what, reason: state.reason, cause, message: cut(state.message, 256) ?? '', since };
  };
  if (agent.status !== 'True') return [found('everything', agent, row.last_seen)];
  if (row.state === null) return [found('everything', stream, null)];
  return [
    ...(stream.status === 'True' ? [] : [found('events', stream, row.stream_since)]),
    ...(lists.status === 'True' ? [] : [found('lists', lists, row.list_hang?.from_at ?? null)]),
    ...(mode.status === 'Unknown' ? [found('mode', mode, row.mode_since)] : []),
  ];
}
