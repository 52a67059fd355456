/*
 * Why an open stream is in its state, in a sentence for the report.
 */
import { between, type Mono, shift, type Wall } from '../../protocol/units.ts';
import type { ProvenStreamState } from '../compare/comparison.ts';
import type { StarvedStream } from '../compare/starvation.ts';

/** Both clocks, read at once. */
interface ClockReading {
  readonly now: Mono;
  readonly wall: Wall;
}

/** `policy` says why the agent subscribed. */
export function streamReason(
  state: ProvenStreamState,
  policy: string,
  starved: StarvedStream | null,
  clocks: ClockReading,
): string {
  // Neither containerd nor CRI-O nor iSulad sends response headers before the first event.
  if (state === 'Arming')
    return 'subscribed, but the runtime sends nothing before its first event: nothing proves yet that events arrive';
  if (state === 'Silent') return 'no event since the subscription, although lists proved changes';
  if (starved === null) return policy;
  const { changes, relists } = starved;
  const since = timestamp(starved.since, clocks);
  return `no event of any id since ${since} while ${relists} lists proved ${changes} changes: another subscriber may not be reading, or the runtime stalls`;
}

function timestamp(at: Mono, { now, wall }: ClockReading): string {
  const micros = shift(wall, -between(at, now));
  return `${new Date(micros / 1000).toISOString().slice(0, 19)}Z`;
}
