/*
 * A session: one subscription to the event stream, and its record, which is sent again whenever more is known.
 */
import { monoNow } from '../../platform/clock.ts';
import type { RecordOf } from '../../protocol/record.ts';
import { type Mono, since } from '../../protocol/units.ts';
import type { OpenSession } from '../compare/coverage.ts';

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
