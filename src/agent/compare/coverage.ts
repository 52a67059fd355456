/*
 * Coverage: where an event that did not come can be held against the runtime.
 *
 *   absent ──────────────────── policy: there is no subscription and nothing is due
 *   down ── opened ──► arming ── first event ──► armed ── first list begun after that ──► covered
 *    ▲                    │                        │                                        │
 *    └────── closed ──────┴────────────────────────┴────────────────────────────────────────┘
 *
 * The protocol never confirms a subscription; the first event does (a replayed one counts). What the baseline list shows
 * may have happened before, so it is waived. A hole inside a session (our own pause, an overflow) moves `since` to its end.
 */
import type { Mono } from '../../protocol/units.ts';

export type Coverage =
  | { readonly is: 'absent' }
  | { readonly is: 'down' }
  | {
      readonly is: 'open';
      readonly session: number;
      readonly opened: Mono;
      /** Wall-clock nanoseconds of the subscription: an event built before it was replayed. */
      readonly openedNs: bigint;
      armed: Mono | null;
      /** True once a list that began after the session was armed has been compared. */
      baseline: boolean;
      /** Start of the stretch without a hole. */
      since: Mono;
      /** True until an event comes that was built after the subscription. */
      replaying: boolean;
      events: number;
      replayed: number;
      /** Transitions that lists proved in this session, while no event at all came. */
      unheard: number;
      silent: boolean;
      /** Up to here the reader has drained everything. */
      watermark: Mono;
    };

export type OpenSession = Extract<Coverage, { is: 'open' }>;

export const ABSENT: Coverage = { is: 'absent' };
export const DOWN: Coverage = { is: 'down' };

export function openSession(session: number, opened: Mono, openedNs: bigint): OpenSession {
  return {
    is: 'open',
    session,
    opened,
    openedNs,
    armed: null,
    baseline: false,
    since: opened,
    replaying: true,
    events: 0,
    replayed: 0,
    unheard: 0,
    silent: false,
    watermark: opened,
  };
}

/** Whether everything from a moment until now was watched. */
export function covers(coverage: Coverage, from: Mono): boolean {
  return (
    coverage.is === 'open' &&
    coverage.baseline &&
    coverage.armed !== null &&
    from >= coverage.armed &&
    from >= coverage.since
  );
}

/** Whether the present moment is covered. */
export const isCovered = (coverage: Coverage): boolean =>
  coverage.is === 'open' && coverage.baseline && coverage.armed !== null;
