/*
 * Holds the findings that are stored against those that the readings make.
 *
 * A stored finding that no reading makes is wrong; one that all readings make and that is not stored is missing. One that only some readings make
 * cannot be decided.
 */
import * as v from 'valibot';
import type { RecordOf } from '../protocol/record.ts';
import { type Micros, type Mono, millis, mono, shift } from '../protocol/units.ts';
import type { Difference } from './difference.ts';
import { MAX_BEHIND, TICK } from './reading.ts';
import type { RecentRecords } from './recentRecords.ts';
import type { Resolutions } from './resolutions.ts';
import type { StoredFinding } from './storedEpoch.ts';

type Made = RecordOf<'finding'>;

/** All findings on one event of one id, or on one id as a whole. */
interface Subject {
  readonly stored: StoredFinding[];
  /** By reading. */
  readonly made: Made[][];
  last: Mono;
}

/** A subject is judged when nothing was found on it for this long: verdicts may wait for lists for some minutes. */
export const SETTLED_AFTER: Micros = millis(20 * 60_000);
/** A wall-clock time may be off by this much. */
const CLOCK_ERROR = millis(1_000);
/** The part of a proof that says when the event was received, and which list had passed it. */
const StaleProof = v.object({ received: v.number(), list: v.object({ from: v.number() }) });
/** An event is not confirmed or contradicted after this. */
const RESTS_ON = millis(5 * 60_000);
/** A reader that is stalled for longer is killed. */
const MAX_STALL = millis(20_000);

/** Why what is stored, or was made, of a stretch of time cannot be judged; null where it can. `seq` is null where nothing is stored. */
export type WhyUndecided = (from: Mono, to: Mono, id: string | null, seq: number | null) => string | null;

export class FindingMatch {
  readonly #readings: number;
  readonly #recent: RecentRecords;
  readonly #resolutions: Resolutions;
  readonly #whyUndecided: WhyUndecided;
  readonly #subjects = new Map<string, Subject>();
  readonly #undecided = new Map<string, number>();
  #confirmed = 0;

  constructor(readings: number, recent: RecentRecords, resolutions: Resolutions, whyUndecided: WhyUndecided) {
    this.#recent = recent;
    this.#resolutions = resolutions;
    this.#readings = readings;
    this.#whyUndecided = whyUndecided;
  }

  /** Stored findings that the rules make too. */
  get confirmed(): number {
    return this.#confirmed;
  }

  /** Findings of which the records do not say whether the rules make them, by reason. */
  get undecided(): ReadonlyMap<string, number> {
    return this.#undecided;
  }

  stored(finding: StoredFinding): void {
    this.#subjectOf(finding.id, finding.eventType, finding.proof, finding.at).stored.push(finding);
  }

  made(reading: number, finding: Made): void {
    const subject = this.#subjectOf(finding.containerId, finding.eventType, finding.proof, finding.t as Mono);
    subject.made[reading]?.push(finding);
  }

  /** Judges what has been settled by then; everything without a time. */
  settle(now?: Mono): Difference[] {
    const differences: Difference[] = [];
    for (const [key, subject] of this.#subjects) {
      if (now !== undefined && shift(subject.last, SETTLED_AFTER) > now) continue;
      this.#subjects.delete(key);
      differences.push(...this.#judge(subject));
    }
    return differences;
  }

  #subjectOf(
    id: string | null,
    eventType: string | null,
    proof: Readonly<Record<string, unknown>>,
    at: Mono,
  ): Subject {
    // A pair of containers may be named either way round.
    const other = proof['other'];
    const ids = typeof other === 'string' ? [id ?? '', other].sort().join(' ') : id;
    const key = `${ids} ${eventType}`;
    const known = this.#subjects.get(key);
    const subject = known ?? { stored: [], made: Array.from({ length: this.#readings }, () => []), last: at };
    if (known === undefined) this.#subjects.set(key, subject);
    if (at > subject.last) subject.last = at;
    return subject;
  }

  #judge({ stored, made }: Subject): Difference[] {
    const left = made.map((each) => [...each]);
    const wrong = stored.filter((finding) => !this.#isConfirmed(finding, left));
    const missing = (left[0] ?? []).filter((one) =>
      left.every((each) => each.some(({ kind }) => kind === one.kind)),
    );
    const differences = missing.map((one) => this.#inPlaceOf(one, wrong));
    const unmade = wrong.map((finding): Difference => {
      const instead = left.flat().find(({ kind }) => kind !== finding.kind) ?? null;
      const same = left.flat().find(({ kind }) => kind === finding.kind);
      return same === undefined
        ? { is: 'wrong_finding', stored: finding, instead }
        : { is: 'changed_finding', stored: finding, made: same };
    });
    return [...differences, ...unmade].filter((difference) => this.#isDecided(difference));
  }

  /** Takes what confirms the finding from what the readings make. */
  #isConfirmed(finding: StoredFinding, left: readonly Made[][]): boolean {
    const fits = left.map((each) => each.findIndex((one) => agree(finding, one, this.#recent)));
    if (fits.every((at) => at === -1)) return false;
    this.#confirmed += 1;
    const made = left.flatMap((each, reading) => {
      // The other readings make it too, though perhaps a little differently.
      const fit = fits[reading] ?? -1;
      const at = fit === -1 ? each.findIndex(({ kind }) => kind === finding.kind) : fit;
      const taken = at === -1 ? [] : each.splice(at, 1);
      return taken.map(({ findingId }) => ({ reading, findingId }));
    });
    if (finding.kind === 'missed') this.#resolutions.confirmed({ stored: finding, made });
    return true;
  }

  /** A finding that all readings make is missing, or something else is stored in its place, which is taken from `wrong`. */
  #inPlaceOf(made: Made, wrong: StoredFinding[]): Difference {
    const same = wrong.findIndex(({ kind }) => kind === made.kind);
    const [stored] = wrong.splice(Math.max(0, same), 1);
    if (stored === undefined) return { is: 'missing_finding', made };
    return { is: stored.kind === made.kind ? 'changed_finding' : 'changed_kind', stored, made };
  }

  #isDecided(difference: Difference): boolean {
    const stored = 'stored' in difference ? difference.stored : null;
    const made = 'made' in difference ? difference.made : null;
    const reason = this.#reason(stored, made);
    if (reason === null) return true;
    if (stored !== null) this.#undecided.set(reason, (this.#undecided.get(reason) ?? 0) + 1);
    return false;
  }

  #reason(stored: StoredFinding | null, made: Made | null): string | null {
    const id = stored?.id ?? made?.containerId ?? null;
    // A stage that a gap made unobservable was judged then; the order of the two is no question.
    const madeAt = stored !== null || made?.kind === 'unobservable' ? null : made?.t;
    const ordered = numbers([stored?.to, stored?.at, made?.window?.to, madeAt]);
    const times = numbers([...ordered, stored?.from, made?.window?.from]);
    if (ordered.some((at) => this.#recent.interruptedNear(at)))
      return 'the stream was interrupted at about the same moment';
    const hasWindow = stored?.from !== null && made?.window !== null;
    if (id !== null && this.#restsOnDoubt(id, mono(Math.min(...times)), hasWindow))
      return 'a list was incomplete, or showed the id CREATED or UNKNOWN, which the records do not distinguish';
    if (stored !== null && (restsOnTimes(stored) || restsOnNamespace(stored) || this.#restsOnStatus(stored)))
      return 'it rests on a status that is not on record';
    const own = this.#ownReason(stored ?? made);
    if (own !== null) return own;
    // Until the gap of a stalled reader ends nothing is judged.
    const judgedBy = stored === null && made !== null ? shift(mono(made.t), MAX_STALL) : 0;
    return this.#whyUndecided(
      mono(Math.min(...times)),
      mono(Math.max(...times, judgedBy)),
      id,
      stored?.seq ?? null,
    );
  }

  #ownReason(finding: StoredFinding | Made | null): string | null {
    if (this.#restsOnClock(finding)) return 'it rests on the wall clock, to less than the error of that';
    return finding?.cause === 'never_sent'
      ? 'it names what this runtime never announces, which accuses nobody'
      : null;
  }

  /** An event is stale if it was built before a list began, and while the stream was watched. */
  #restsOnClock(finding: StoredFinding | Made | null): boolean {
    if (finding?.kind !== 'stale') return false;
    const id = 'id' in finding ? finding.id : finding.containerId;
    const { success, output: proof } = v.safeParse(StaleProof, finding.proof);
    const built = success ? this.#recent.builtAt(`${finding.eventType} of ${id}`, proof.received) : null;
    if (!success || built === null) return false;
    return Math.abs(built - proof.list.from) <= CLOCK_ERROR || this.#recent.interruptedNear(built);
  }

  /** Without a window it rests on lists and events of some time before. */
  #restsOnDoubt(id: string, from: Mono, hasWindow: boolean): boolean {
    if (hasWindow) return this.#recent.isDoubtful(id, from);
    return this.#recent.isDoubtful(id, shift(from, -RESTS_ON)) || this.#recent.wasUnknown(id);
  }

  /** No event of that type was received, and a status may have shown what no list did. */
  #restsOnStatus(stored: StoredFinding): boolean {
    const { eventType, id, at } = stored;
    if (eventType === null || id === null || this.#recent.receivedBefore(eventType, id, at)) return false;
    return provenByStatus(stored, this.#recent);
  }
}

/** It has no other proof than exact times, and nothing says when the agent learnt them. */
function restsOnTimes({ kind, cause, proof }: StoredFinding): boolean {
  if (kind === 'short_life') return hasTimes(proof['exactTimes']);
  return cause === 'times_overlap' && hasTimes(proof['exactTimes']) && hasTimes(proof['exactTimesOfOther']);
}

/** Whether a removal may have ended a sandbox of CRI-O depends on its PID namespace, which a status says. */
function restsOnNamespace({ cause, eventType, proof }: StoredFinding): boolean {
  if (eventType !== 'STOPPED') return false;
  const times = proof['exactTimes'];
  const trait = typeof times === 'object' && times !== null && 'trait' in times ? times.trait : null;
  return trait === 'shared_pid' || cause === 'may_have_been_removed';
}

const hasTimes = (times: unknown): boolean => typeof times === 'object' && times !== null;

const numbers = (times: readonly (number | null | undefined)[]): number[] =>
  times.filter((at) => typeof at === 'number');

/** Whether a reading makes what is stored, as far as the store shows. */
function agree(stored: StoredFinding, made: Made, recent: RecentRecords): boolean {
  if (stored.kind !== made.kind) return false;
  // Whether an event was late enough to have been judged missed first may depend on the tick that judged it.
  if (stored.kind === 'late') return true;
  // Lists prove it too, a little later.
  if (stored.cause === 'times_overlap' && restsOnTimes(stored)) return true;
  if (stored.kind === 'silent_stream') return sameSilence(stored, made);
  if ((stored.from === null) !== (made.window === null)) return false;
  if (made.window === null || stored.from === null || stored.to === null) return stored.cause === made.cause;
  const { from, to } = made.window;
  const doubtful = recent.isDoubtful(stored.id ?? '', Math.min(stored.from, from));
  // The first cause that made a verdict impossible depends on the order in which things reached the agent.
  const sameCause = stored.cause === made.cause || stored.kind === 'unobservable';
  const sameEnd = sameCause && stored.to === to;
  return (
    (sameEnd || doubtful || provenByStatus(stored, recent)) && fitsFrom(stored.from, made, recent, doubtful)
  );
}

/** Until when the stream was silent depends on how far the reader had come when it was judged: a reading judges at its next tick. */
function sameSilence({ cause, from, to }: StoredFinding, made: Made): boolean {
  if (from === null || to === null || made.window === null) return cause === made.cause;
  return (
    cause === made.cause && from === made.window.from && Math.abs(to - made.window.to) <= MAX_BEHIND + TICK
  );
}

function fitsFrom(stored: Mono, made: Made, recent: RecentRecords, doubtful: boolean): boolean {
  const from = made.window?.from;
  if (from === undefined || stored === from) return true;
  // Without a status on record the reading has no bound; nobody is accused.
  if (made.kind === 'unobservable' && made.proof['lowerBoundKnown'] === false) return true;
  // Where no list had shown the id by then, its own creation is the bound, by the wall clock. It stays the bound of what a list shows later.
  const byClock =
    made.proof['state'] === 'non-existent' || made.cause === 'sequence' || !recent.boundedBy(from);
  if (byClock && Math.abs(stored - from) <= CLOCK_ERROR) return true;
  return doubtful && recent.boundedBy(stored);
}

/** Whether an event on record proved it, or a status that came with one, or the answer to a query. */
function provenByStatus({ id, proof, to }: StoredFinding, recent: RecentRecords): boolean {
  const { evidence } = proof;
  if (typeof evidence !== 'string' || to === null) return false;
  if (evidence.endsWith(' in its status')) return true;
  if (evidence.endsWith(' received')) return recent.receivedEvent(`${evidence.split(' ')[0]} of ${id}`, to);
  const [, event] = /^[a-z]+ in the (.+)$/.exec(evidence) ?? [];
  return event !== undefined && recent.receivedEvent(event, to);
}
