/*
 * The conditions of a scenario that decide which findings can be asked for.
 */

/** The short times of the test system (support/system.ts), in milliseconds. */
export const MISSED_AFTER = 4_000;
export const LATE_AFTER = 1_000;
export const OVERDUE_AFTER = 3_000;

export interface OracleConditions {
  /** How many transitions happen before the agent starts. */
  readonly before?: number;
  /** Lists are slow, fail or hang, so that only missed and unobservable findings can be expected. */
  readonly blind?: boolean;
  /** Lists hang for good: some findings are still open at the end. */
  readonly hangs?: boolean;
  /** The agent's --overdue-after, in milliseconds. Default 3000. */
  readonly overdueAfterMs?: number;
  /** The runtime announces nothing that the removal of a sandbox ends. No pod of a scenario shares a PID namespace. */
  readonly removesSilently?: boolean;
  /** The runtime announces neither the creation nor the start of what it restores. No pod of a scenario is restored. */
  readonly restoresSilently?: boolean;
}
