/*
 * Starvation: lists go on proving changes, and no event of any id arrives.
 *
 *   flowing ── a miss, and with it enough changes since the last event ──► starved ── an event, or the end of the session ──► flowing
 *
 * A lossy stream lacks some events while those of other ids arrive. A starved one lacks all of them: another subscriber that does
 * not read holds them back (CRI-O sends to one subscriber after the other, containerd 2 waits for the slowest), or the runtime
 * stalls. That is proven, not guessed: only changes count that began after the last event, that nothing excuses, and whose
 * events the reader would have taken by now; and something must already be missed, so a short freeze accuses nobody.
 *
 * A miss stays one until its event arrives, but it carries a hint: only the next event shows whether the others waited or were dropped.
 * The period is a finding, not a gap, which would excuse what is due.
 */
import { type Micros, type Mono, shift, since } from '../../protocol/units.ts';
import type { Coverage } from './coverage.ts';
import type { Emitter } from './emitter.ts';
import type { Expectation } from './expectation.ts';
import type { Expectations } from './expectations.ts';
import { plainFinding } from './findings.ts';
import type { Stage } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';
import { unobservableReason } from './unobservableReason.ts';

/** As many changes, ids and relists without any event prove it. The loss of all events of one pod start does not. */
const MIN_CHANGES = 5;
const MIN_IDS = 2;
const MIN_RELISTS = 2;

/** In the proof of a finding: the stream was starved, so look at the other subscribers before the runtime's events. */
const HINT = { hint: 'stream_starved' } as const;

export interface StarvedStream {
  /** The finding that reports it. */
  readonly findingId: string;
  readonly since: Mono;
  /** The changes that had been proven when it was reported, and the relists that found them. */
  readonly changes: number;
  readonly relists: number;
}

export interface StarvationParts {
  readonly coverage: Coverage;
  readonly emitter: Emitter;
  readonly expectations: Expectations;
}

export class Starvation {
  readonly #parts: StarvationParts;
  readonly #overdueAfter: Micros;
  /** The changes that are missed although nothing has arrived since it began. */
  #missed = new Changes();
  #present: StarvedStream | null = null;
  /** The last starvation of this session that an event ended, and when. */
  #past: { readonly from: Mono; readonly to: Mono } | null = null;
  /** When open expectations were last counted: once a tick is enough. */
  #countedAt: Mono | null = null;

  constructor(parts: StarvationParts, overdueAfter: Micros) {
    this.#parts = parts;
    this.#overdueAfter = overdueAfter;
  }

  /** Null while events arrive, or while nothing proves that they should. */
  get present(): StarvedStream | null {
    return this.#present;
  }

  eventReceived(at: Mono): void {
    if (this.#present !== null) this.#past = { from: this.#present.since, to: at };
    this.#end(at);
  }

  sessionEnded(): void {
    this.#end(this.#parts.emitter.now);
    this.#past = null;
  }

  /** An expectation is about to be reported as missed. Returns the hint for its proof. */
  missed(container: TrackedContainer, expectation: Expectation): Partial<typeof HINT> {
    if (!this.#beganSince(expectation)) return {};
    this.#prove();
    // More of what is proven already would only take memory, for as long as the starvation lasts.
    if (this.#present !== null) return HINT;
    this.#missed.add(container, expectation);
    return {};
  }

  /** The hint for an event that came late, if it was built while the stream was starved. */
  hintForDelay(built: Mono | null): Partial<typeof HINT> {
    const { from, to } = this.#past ?? {};
    const heldBack = built !== null && from !== undefined && to !== undefined && built > from && built <= to;
    return heldBack ? HINT : {};
  }

  /** Whether a window began after the last event: had anything arrived since, it would be the loss of one event. */
  #beganSince({ proof: { from } }: Expectation): boolean {
    const lastEvent = this.#parts.coverage.session?.lastEvent ?? null;
    return lastEvent !== null && from !== null && from > lastEvent;
  }

  #prove(): void {
    const { coverage, emitter } = this.#parts;
    const { session } = coverage;
    if (this.#present !== null || this.#countedAt === emitter.now || session === null) return;
    this.#countedAt = emitter.now;
    const changes = this.#unannounced(this.#missed.copy());
    if (session.lastEvent === null || !changes.prove) return;
    const { epochStart } = emitter;
    const judgement = emitter.judgement('silent_stream', 'starved', {
      ...changes.counts,
      session: session.session,
      lastEvent: since(epochStart, session.lastEvent),
      drainedTo: since(epochStart, session.watermark),
    });
    const window = { from: since(epochStart, session.lastEvent), to: since(epochStart, session.watermark) };
    emitter.emit(null, { ...plainFinding(judgement, null), window });
    this.#present = { findingId: judgement.findingId, since: session.lastEvent, ...changes.counts };
  }

  /** Adds the changes whose events are overdue, although the reader has read past that moment. */
  #unannounced(changes: Changes): Changes {
    const { coverage, expectations } = this.#parts;
    const { session } = coverage;
    if (session === null) return changes;
    const judgedBy = { coverage, session, profile: expectations.profile };
    expectations.forEachOpen((container: TrackedContainer, stage: Stage, expectation: Expectation) => {
      const overdue = session.watermark >= shift(expectation.proof.to, this.#overdueAfter);
      if (!overdue || !this.#beganSince(expectation)) return;
      const reason = unobservableReason(container, stage, expectation, judgedBy);
      if (reason === null) changes.add(container, expectation);
    });
    return changes;
  }

  #end(at: Mono): void {
    if (this.#present !== null) this.#parts.emitter.resolve(null, this.#present.findingId, at);
    this.#present = null;
    this.#missed = new Changes();
  }
}

class Changes {
  #changes = 0;
  #ids = new Set<string>();
  #relists = new Set<number>();

  add({ id }: TrackedContainer, { relist }: Expectation): void {
    this.#changes += 1;
    if (this.#ids.size < MIN_IDS) this.#ids.add(id);
    this.#relists.add(relist);
  }

  copy(): Changes {
    const copy = new Changes();
    copy.#changes = this.#changes;
    copy.#ids = new Set(this.#ids);
    copy.#relists = new Set(this.#relists);
    return copy;
  }

  get counts(): { readonly changes: number; readonly relists: number } {
    return { changes: this.#changes, relists: this.#relists.size };
  }

  get prove(): boolean {
    return this.#changes >= MIN_CHANGES && this.#ids.size >= MIN_IDS && this.#relists.size >= MIN_RELISTS;
  }
}
