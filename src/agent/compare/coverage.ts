/*
 * Coverage: when an event that did not come can be held against the runtime. SPEC.md has the table of its transitions.
 *
 *   absent ──────────────────── policy: there is no subscription and nothing is due
 *   down ── opened ──► arming ── first event ──► armed ── first list begun after that ──► covered
 *    ▲                    │                        │                                        │
 *    └────── closed ──────┴────────────────────────┴────────────────────────────────────────┘
 *
 * The protocol never confirms a subscription; the first event does (a replayed one counts). The baseline list shows stages from before too, so they
 * are waived. A stream gap within a session (a stall of ours, an overflow) moves `since` to its end.
 */
import type { ReceivedEvent } from '../../protocol/observation.ts';
import type { Mono } from '../../protocol/units.ts';

/** This many transitions without a single event make a stream silent. */
const SILENT_AFTER = 10;

export interface OpenSession {
  readonly session: number;
  readonly opened: Mono;
  /** Wall-clock nanoseconds of the subscription: an event built before it was replayed. */
  readonly openedNs: bigint;
  readonly armed: Mono | null;
  /** True once a list that began after the session was armed has been compared. */
  readonly baseline: boolean;
  /** Start of the stretch without a stream gap. */
  readonly since: Mono;
  /** When the last event of any id came; null before the first. */
  readonly lastEvent: Mono | null;
  readonly events: number;
  readonly replayed: number;
  /** Transitions that lists proved in this session, while no event at all came. */
  readonly unannounced: number;
  readonly silent: boolean;
  /** The reader has drained everything up to here. */
  readonly watermark: Mono;
}

type SessionState = { -readonly [K in keyof OpenSession]: OpenSession[K] } & {
  /** True until an event comes that was built after the subscription. */
  replaying: boolean;
};

export class Coverage {
  #session: SessionState | null = null;
  /** Whether policy forbids a subscription. */
  #absent = true;
  #coveredTime = 0;
  #lastTick: Mono;

  constructor(start: Mono) {
    this.#lastTick = start;
  }

  /** The present session; null where there is none. */
  get session(): OpenSession | null {
    return this.#session;
  }

  get isAbsent(): boolean {
    return this.#absent;
  }

  get isCovered(): boolean {
    return this.#session?.baseline === true && this.#session.armed !== null;
  }

  get coveredTime(): number {
    return this.#coveredTime;
  }

  /** Whether everything from a moment until now is covered. */
  covers(from: Mono): boolean {
    const session = this.#session;
    return (
      session?.baseline === true && session.armed !== null && from >= session.armed && from >= session.since
    );
  }

  open(session: number, opened: Mono, openedNs: bigint): void {
    this.#absent = false;
    this.#session = {
      session,
      opened,
      openedNs,
      armed: null,
      baseline: false,
      since: opened,
      replaying: true,
      lastEvent: null,
      events: 0,
      replayed: 0,
      unannounced: 0,
      silent: false,
      watermark: opened,
    };
  }

  close(state: 'down' | 'absent'): void {
    this.#session = null;
    this.#absent = state === 'absent';
  }

  streamGap(until: Mono): void {
    if (this.#session !== null && until > this.#session.since) this.#session.since = until;
  }

  /** Something came that could not be read as an event: it proves no subscription, but the stream flows. */
  eventLost(at: Mono): void {
    if (this.#session !== null && this.#session.lastEvent !== null) this.#session.lastEvent = at;
  }

  drained(session: number, watermark: Mono): void {
    const current = this.#session;
    if (current?.session === session && watermark > current.watermark) current.watermark = watermark;
  }

  /** Lists were compared of which the earlier call began at `first`. */
  relisted(first: Mono): void {
    const session = this.#session;
    if (session !== null && session.armed !== null && first > session.armed) session.baseline = true;
  }

  /** Counts an event. Returns whether it was replayed, or null where it is of another session. */
  received(event: ReceivedEvent): boolean | null {
    const session = this.#session;
    if (session?.session !== event.session) return null;
    session.armed ??= event.received;
    session.lastEvent = event.received;
    session.silent = false;
    session.events += 1;
    if (event.createdNs >= session.openedNs) session.replaying = false;
    if (session.replaying) session.replayed += 1;
    return session.replaying;
  }

  /**
   * Counts a transition whose event had time to come and did not: the first event of a stream may be slow. Returns true when
   * that makes the stream silent.
   */
  countUnannounced(from: Mono | null): boolean {
    const session = this.#session;
    if (session === null || session.events > 0 || session.silent) return false;
    if (from === null || from < session.opened) return false;
    session.unannounced += 1;
    session.silent = session.unannounced >= SILENT_AFTER;
    return session.silent;
  }

  /** Adds the time since the last tick that was covered, where it counts. */
  tick(now: Mono, counts: boolean): void {
    const since = this.#session !== null && this.isCovered ? this.#session.since : now;
    if (counts) this.#coveredTime += Math.max(0, now - Math.max(this.#lastTick, since));
    this.#lastTick = now;
  }
}
