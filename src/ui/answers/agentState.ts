/*
 * Whether the agent of a node reports, by the rules of its report.
 */
import { agentStateOf } from '../../controller/reports/unobserved.ts';
import { float8 } from '../../store/schema/columns.ts';
import { reportCondition } from '../../store/schema/tables.ts';
import { nodeDetail } from '../../store/schema/views.ts';
import { nullable } from '../../store/statement.ts';
import type { AgentState } from '../api.ts';

/** In a row of a statement. */
export const AGENT_COLUMNS = {
  ...{ caughtUpMs: float8, agentStatus: nullable(reportCondition.status) },
  ...{ agentSince: nullable(reportCondition.since), relistHealthy: nodeDetail.relist_healthy },
};

interface Row {
  readonly lastSeen: string | null;
  readonly caughtUpMs: number;
  /** Status of the condition AgentReporting of its report. */
  readonly agentStatus: string | null;
  readonly agentSince: string | null;
  /** Null until the agent has said what it observes. */
  readonly relistHealthy: boolean | null;
}

/** As the reports name these columns. */
export const agentRow = (now: string, { lastSeen, caughtUpMs, agentStatus, agentSince }: Row) => ({
  ...{ now, last_seen: lastSeen, ingest_caught_up_ms: caughtUpMs },
  conditions:
    agentStatus === null || agentSince === null
      ? []
      : [{ type: 'AgentReporting', status: agentStatus, since: agentSince }],
});

/** The row with the state instead of the columns from which it follows. */
export function withAgentState<R extends Row>(now: string, row: R) {
  const { caughtUpMs: _, agentStatus: __, agentSince: ___, relistHealthy, ...rest } = row;
  const agent: AgentState = agentStateOf({ ...agentRow(now, row), hasState: relistHealthy !== null });
  return { ...rest, agent };
}
