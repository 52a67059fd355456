/*
 * The runtime's statuses: the exact times of containers, and the states of other ids that came with an event. They are on record only in the proofs
 * of findings: what these say of the runtime is taken over, what they conclude is not.
 */
import { type ExactTimes, type ShownState, STATUS_TRAITS } from '../protocol/observation.ts';
import type { Mono } from '../protocol/units.ts';
import type { KnownStatuses } from './reading.ts';
import type { StoredFinding } from './storedEpoch.ts';

export class StatusesOfProofs implements KnownStatuses {
  /** By event: what its statuses showed of other ids. */
  readonly #others = new Map<string, { readonly shown: Map<string, ShownState>; readonly at: Mono }>();
  readonly #times = new Map<string, { readonly exact: ExactTimes; readonly at: Mono }>();
  /** The wall clock less the monotonic clock, in microseconds. */
  clock = 0;

  learn(finding: StoredFinding): void {
    const { id, at, proof } = finding;
    this.#learnOther(finding);
    this.#learn(id, at, proof['exactTimes']);
    const other = proof['other'];
    if (typeof other === 'string') this.#learn(other, at, proof['exactTimesOfOther']);
  }

  at(id: string, moment: Mono): ExactTimes | null {
    const known = this.#times.get(id);
    if (known === undefined) return null;
    const wallNs = BigInt(Math.round(moment + this.clock)) * 1000n;
    // A status shows what had happened by then.
    const by = (ns: bigint) => (ns <= wallNs ? ns : 0n);
    const { createdNs, startedNs, finishedNs } = known.exact;
    return { ...known.exact, createdNs, startedNs: by(startedNs), finishedNs: by(finishedNs) };
  }

  /** The states of other ids in the statuses of an event, by id; `event`: as evidence names it, `STARTED of` and the id. */
  othersIn(event: string, received: Mono): ReadonlyMap<string, ShownState> {
    return this.#others.get(`${event} ${received}`)?.shown ?? NONE;
  }

  /** Forgets what was last reported before a moment. */
  forget(before: Mono): void {
    for (const known of [this.#times, this.#others])
      for (const [key, { at }] of known) if (at < before) known.delete(key);
  }

  #learnOther({ id, at, to, proof: { evidence } }: StoredFinding): void {
    if (id === null || to === null || typeof evidence !== 'string') return;
    const [, state, event] = /^(created|running|exited) in the (.+)$/.exec(evidence) ?? [];
    if (state !== 'created' && state !== 'running' && state !== 'exited') return;
    const key = `${event} ${to}`;
    const known = this.#others.get(key) ?? { shown: new Map<string, ShownState>(), at };
    known.shown.set(id, state);
    this.#others.set(key, known);
  }

  #learn(id: string | null, at: Mono, stored: unknown): void {
    const exact = timesOf(stored);
    if (id === null || exact === null) return;
    const known = this.#times.get(id)?.exact;
    const later = (key: 'createdNs' | 'startedNs' | 'finishedNs') =>
      exact[key] > 0n ? exact[key] : (known?.[key] ?? 0n);
    const createdNs = later('createdNs');
    const trait = exact.trait ?? known?.trait;
    this.#times.set(id, {
      exact: {
        ...exact,
        ...(trait === undefined ? {} : { trait }),
        createdNs,
        startedNs: later('startedNs'),
        finishedNs: later('finishedNs'),
      },
      at,
    });
  }
}

const NONE: ReadonlyMap<string, ShownState> = new Map();

/** Null for anything that does not have the shape of a proof's exact times. */
function timesOf(stored: unknown): ExactTimes | null {
  if (typeof stored !== 'object' || stored === null) return null;
  const ns = (key: string): bigint | null => {
    const value: unknown = Reflect.get(stored, key);
    return typeof value === 'string' && /^-?\d{1,19}$/.test(value) ? BigInt(value) : null;
  };
  const [createdNs, startedNs, finishedNs] = [ns('createdNs'), ns('startedNs'), ns('finishedNs')];
  if (createdNs === null || startedNs === null || finishedNs === null) return null;
  const named: unknown = Reflect.get(stored, 'trait');
  const trait = STATUS_TRAITS.find((each) => each === named);
  const times = { createdNs, startedNs, finishedNs, exitCode: 0, reason: '' };
  return trait === undefined ? times : { ...times, trait };
}
