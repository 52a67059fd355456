/*
 * A session: one subscription to the event stream; its record, which is sent again whenever more is known; and why its stream is in its
 * state.
 */
import { monoNow } from '../../platform/clock.ts';
import type { RecordOf } from '../../protocol/record.ts';
import { between, type Mono, shift, since, type Wall } from '../../protocol/units.ts';
import type { ProvenStreamState } from '../compare/comparison.ts';
import type { OpenSession } from '../compare/coverage.ts';
import type { StarvedStream } from '../compare/starvation.ts';

export interface StreamSession {
  readonly no: number;
  readonly opened: Mono;
}

export interface SessionEnd {
  readonly closed: Mono;
  readonly code: string;
  readonly message: string;
}

/** `end` is null while the session is open. */
export function sessionRecord(
  epochStart: Mono,
  session: StreamSession,
  counters: Pick<OpenSession, 'armed' | 'events' | 'replayed'>,
  end: SessionEnd | null,
): RecordOf<'stream_session'> {
  const at = (position: Mono) => since(epochStart, position);
  return {
    type: 'stream_session',
    t: at(monoNow()),
    sessionNo: session.no,
    opened: at(session.opened),
    armed: counters.armed === null ? null : at(counters.armed),
    closed: end === null ? null : at(end.closed),
    code: end?.code ?? null,
    message: end?.message ?? null,
    events: counters.events,
    replayed: counters.replayed,
  };
}

interface ClockReading {
  readonly now: Mono;
  readonly wall: Wall;
}

/** Why an open stream is in its state, in a sentence for the report. `policy` says why the agent subscribed. */
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
  return `no event of any id since ${timestamp(starved.since, clocks)} while ${relists} lists proved ${changes} changes: another subscriber may not be reading, or the runtime stalls`;
}

function timestamp(at: Mono, { now, wall }: ClockReading): string {
  const micros = shift(wall, -between(at, now));
  return `${new Date(micros / 1000).toISOString().slice(0, 19)}Z`;
}
