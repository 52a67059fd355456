/*
 * The verdict on a list that hangs: what holds it up, as far as the statuses prove it that were asked for meanwhile.
 *
 * containerd reads the status of every container for a list (internal/cri/server/container_list.go). While it changes a container's resources it
 * holds the lock of that status until the shim answers (container_update_resources.go), so a shim that hangs makes every list hang, and the
 * status of its container. All other statuses are answered in milliseconds.
 *
 *   container, pod   its status does not answer, while that of another container or sandbox, asked for later, does
 *   runtime          none of several answers, nor any that was asked for later; or most are slow
 *   none             all were asked for and answered
 */
import type { HangVerdict, ListCallName } from '../../protocol/record.ts';

/** This many statuses may be unanswered at a time: each leaves a blocked call in the runtime until the hang ends. */
export const MAX_UNANSWERED = 3;

/** A status that does not answer. */
export interface Unanswered {
  readonly isSandbox: boolean;
  /** Statuses that were asked for later and answered within a second: of all kinds, and of its own kind. */
  readonly othersSince: number;
  readonly alikeSince: number;
  /** No other of its kind is listed. */
  readonly isOnly: boolean;
}

export interface HangEvidence<U extends Unanswered> {
  readonly call: ListCallName;
  readonly listed: number;
  readonly asked: number;
  readonly quick: number;
  /** In the order in which they were asked for. */
  readonly unanswered: readonly U[];
  /** Listed, and not asked for during this hang or not answered since. */
  readonly left: number;
}

export interface Conclusion<U extends Unanswered> {
  readonly verdict: HangVerdict;
  /** The container or pod that the verdict names. */
  readonly named: U | null;
}

export function conclude<U extends Unanswered>(evidence: HangEvidence<U>): Conclusion<U> {
  const named = culpritOf(evidence);
  if (named !== null) return { verdict: named.isSandbox ? 'pod' : 'container', named };
  return { verdict: withoutCulprit(evidence), named };
}

function culpritOf<U extends Unanswered>({
  call,
  asked,
  quick,
  unanswered,
  left,
}: HangEvidence<U>): U | null {
  // Where most statuses are slow, one that does not answer is one of many.
  if (asked - quick - unanswered.length >= quick) return null;
  const proven = unanswered.filter(
    ({ alikeSince, isOnly, othersSince }) => alikeSince > 0 || (isOnly && othersSince > 0),
  );
  // A list waits for what it lists. Anything else is named only if all of that was answered.
  const listed = proven.find(({ isSandbox }) => isSandbox === (call === 'ListPodSandbox'));
  return listed ?? (left === 0 ? (proven[0] ?? null) : null);
}

function withoutCulprit({ listed, asked, quick, unanswered, left }: HangEvidence<Unanswered>): HangVerdict {
  const slow = asked - quick - unanswered.length;
  if (unanswered.length > 0) {
    const isNoneAnswered = unanswered.every(({ othersSince }) => othersSince === 0);
    return isNoneAnswered && unanswered.length >= Math.min(MAX_UNANSWERED, listed) ? 'runtime' : 'unknown';
  }
  if (slow >= MAX_UNANSWERED && slow >= quick) return 'runtime';
  return left === 0 && quick > slow ? 'none' : 'unknown';
}
