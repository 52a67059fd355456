/*
 * Which changes of a Node's Ready condition are recorded: those by which trouble with PLEG begins or ends.
 *
 *   well ── not Ready, and the message speaks of PLEG ──► ill ── Ready, or PLEG is no longer in the message ──► well
 *
 * While a node is ill its kubelet writes the message anew again and again, with another "seen ago": that is no transition. But
 * a transition time that has moved on although it is still ill tells that it was well in between.
 */
import type { ReadyCondition } from '../kube/projection.ts';
import { type PlegTrouble, plegTrouble } from './plegTrouble.ts';

/** What was recorded of a node last. */
export interface Recorded {
  readonly ill: boolean;
  readonly status: string;
  /** In microseconds since 1970. */
  readonly at: number;
}

export interface Transition extends Recorded, PlegTrouble {
  readonly reason: string;
  readonly message: string;
}

/** `before` is null where nothing was ever recorded; `now` stands in where the condition has no times. */
export function transitionOf(before: Recorded | null, ready: ReadyCondition, now: number): Transition | null {
  const trouble = ready.status === 'True' ? null : plegTrouble(ready.message);
  const ill = trouble !== null;
  const { transitionAt } = ready;
  const again = ill && before?.ill === true && transitionAt !== null && transitionAt > before.at;
  if (ill === (before?.ill ?? false) && !again) return null;
  const { status, reason, message } = ready;
  const { seenAgoMs, thresholdMs } = trouble ?? NOTHING;
  return {
    ill,
    at: plausible(atOf(before, ready, trouble, now), now),
    status,
    reason,
    message,
    seenAgoMs,
    thresholdMs,
  };
}

/** Whoever may write a Node may write any time into it: there is a partition for each, so it must be one of these days. */
const OLDEST_US = 400 * 86_400_000_000;
const NEWEST_US = 86_400_000_000;
const plausible = (at: number, now: number): number =>
  at > now - OLDEST_US && at < now + NEWEST_US ? at : now;

const NOTHING: PlegTrouble = { seenAgoMs: null, thresholdMs: null };

/**
 * Where only the message became another, the status is older: the heartbeat that brought the message is the moment. And PLEG
 * cannot have been ill before it had been silent for its threshold, however long the node was not ready for something else.
 */
function atOf(
  before: Recorded | null,
  ready: ReadyCondition,
  trouble: PlegTrouble | null,
  now: number,
): number {
  const { status, transitionAt, heartbeatAt } = ready;
  const flipped = before === null || before.status !== status || (transitionAt ?? 0) > before.at;
  const at = (flipped ? transitionAt : heartbeatAt) ?? heartbeatAt ?? now;
  if (heartbeatAt === null || trouble === null || trouble.seenAgoMs === null || trouble.thresholdMs === null)
    return at;
  const overMs = Math.max(0, trouble.seenAgoMs - trouble.thresholdMs);
  return Math.max(at, heartbeatAt - overMs * 1000);
}
