/*
 * How a container ended, from the status that its event carries. No status says it of a sandbox. A queried status is not used: it is not what the
 * event said.
 */
import type { ExactTimes } from '../../protocol/observation.ts';
import { type ContainerExit, EXIT_REASONS } from '../../protocol/record.ts';

const MAX_CODE = 255;

/** Null where the event carries no status of its own container, or one that knows of no end. */
export function exitOf(times: ExactTimes | null): ContainerExit | null {
  if (times === null || times.finishedNs <= 0n) return null;
  const { exitCode, reason } = times;
  return {
    code: exitCode >= 0 && exitCode <= MAX_CODE ? exitCode : null,
    reason: EXIT_REASONS.find((each) => each === reason) ?? 'Other',
  };
}
