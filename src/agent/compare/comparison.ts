/*
 * The comparison: holds what the event stream announced against what relisting found.
 *
 * It is told of sessions, events, relists, exact times and the passing of time. Which stages each id has reached is concluded
 * from lists in relisting.ts and from events in events.ts; both enter it into the ledger, which knows what is due and what
 * becomes of it.
 *
 * No clock, no I/O, no randomness of its own: times are handed in, ids are minted by the caller, and what comes out waits
 * in {@link Comparison.take}.
 */

import type { PlegProfile } from '../../protocol/eventProfile.ts';
import type { ReceivedEvent, Relist, StatusAnswer } from '../../protocol/observation.ts';
import type { Mono } from '../../protocol/units.ts';
import type { OpenSession } from './coverage.ts';
import { Outbox, type Output } from './emitter.ts';
import { Events } from './events.ts';
import { type ComparisonCounters, type ComparisonOptions, Ledger } from './ledger.ts';
import { Relisting } from './relisting.ts';

export class Comparison {
  readonly #outbox: Outbox;
  readonly #ledger: Ledger;
  readonly #relisting: Relisting;
  readonly #events: Events;

  constructor(options: ComparisonOptions) {
    this.#outbox = new Outbox(options.epochStart, options.mintId);
    this.#ledger = new Ledger(options, this.#outbox);
    this.#relisting = new Relisting(this.#ledger, this.#outbox);
    this.#events = new Events(this.#ledger, this.#outbox);
  }

  get counters(): Readonly<ComparisonCounters> {
    return this.#ledger.counters;
  }

  /** Transitions whose event has not come and that have no verdict yet. */
  get pending(): number {
    return this.#ledger.pending;
  }

  /** Ids that are remembered: those that are there, and those that ended or were heard of less than 15 minutes ago. */
  get tracked(): number {
    return this.#ledger.lives.remembered;
  }

  /** Hands over what has come out since the last call. */
  take(): Output {
    return this.#outbox.take();
  }

  /** The runtime was replaced by another: from now on it is due what the new one announces. */
  runtimeReplaced(profile: PlegProfile): void {
    this.#ledger.profile = profile;
  }

  /** There is no subscription: one is wanted (`down`), or policy forbids it and nothing is due (`absent`). */
  unsubscribed(state: 'down' | 'absent'): void {
    this.#ledger.unsubscribed(state);
  }

  /** A new session began at `at`; `wallNs` is the wall clock at that moment. */
  subscribed(session: number, at: Mono, wallNs: bigint): void {
    this.#ledger.subscribed(session, at, wallNs);
  }

  /** Nobody watched for a while until this moment, although the session lives on. */
  streamGap(until: Mono, why: string): void {
    this.#ledger.streamGap(until, why);
  }

  /** The reader had taken everything from the socket by then. */
  drained(session: number, watermark: Mono): void {
    const { coverage } = this.#ledger;
    if (coverage.is === 'open' && coverage.session === session && watermark > coverage.watermark) {
      coverage.watermark = watermark;
    }
  }

  /** Time has passed. `wallMicros` is the wall clock at `now`. */
  tick(now: Mono, wallMicros: number): void {
    this.#ledger.tick(now, wallMicros);
  }

  /** What the evidence says of the stream; null where there is no session. */
  streamState(): 'Arming' | 'Active' | 'Silent' | null {
    const { coverage } = this.#ledger;
    if (coverage.is !== 'open') return null;
    if (coverage.silent) return 'Silent';
    return coverage.armed === null ? 'Arming' : 'Active';
  }

  /** The present session's own counters, for its record. */
  session(): Pick<OpenSession, 'armed' | 'events' | 'replayed'> | null {
    return this.#ledger.coverage.is === 'open' ? this.#ledger.coverage : null;
  }

  /** A list call failed: what lies between the lists around it is longer than a period. */
  listFailed(): void {
    this.#relisting.failed();
  }

  relisted(relist: Relist): void {
    this.#outbox.reach(relist.containers.end);
    this.#relisting.compare(relist);
    this.#ledger.relisted(relist);
  }

  received(event: ReceivedEvent): void {
    this.#events.received(event);
  }

  /** What its status said of an id that was asked about. */
  answered(answer: StatusAnswer): void {
    this.#events.answered(answer);
    if (answer.found) this.#relisting.reconsider(answer.id);
  }
}
