/*
 * A session: one subscription to the event stream, and its record. It is told again whenever more is known of it.
 */
import { monoNow } from '../../platform/clock.ts';
import type { RecordOf } from '../../protocol/record.ts';
import type { Mono } from '../../protocol/units.ts';
import type { OpenSession } from '../compare/coverage.ts';
import { since } from '../compare/findings.ts';

export interface Session {
  readonly no: number;
  readonly opened: Mono;
  /** Whether it was told since its first event. */
  told: boolean;
}

/** When it was closed, and why; all null while it is open. */
export interface SessionEnd {
  readonly closed: Mono | null;
  readonly code: string | null;
  readonly message: string | null;
}

export function sessionRecord(
  start: Mono,
  session: Session,
  figures: Pick<OpenSession, 'armed' | 'events' | 'replayed'>,
  { closed, code, message }: SessionEnd,
): RecordOf<'stream_session'> {
  const at = (position: Mono) => since(start, position);
  return {
    type: 'stream_session',
    t: at(monoNow()),
    sessionNo: session.no,
    opened: at(session.opened),
    armed: figures.armed === null ? null : at(figures.armed),
    closed: closed === null ? null : at(closed),
    code,
    message,
    events: figures.events,
    replayed: figures.replayed,
  };
}
