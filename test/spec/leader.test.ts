/*
 * A candidate for the Lease as SPEC.md describes it: the real one, whose looks at the Lease and timer the test turns.
 */
import * as v from 'valibot';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Election, startElection } from '../../src/controller/leader/election.ts';
import { KubeStatusError } from '../../src/kube/kubeErrors.ts';
import { type KubeObject, KubeObjectSchema } from '../../src/kube/object.ts';
import { aborted } from '../../src/platform/stopSignal.ts';
import { silent } from '../support/database.ts';
import { until } from '../support/waitFor.ts';
import { drive } from './specification.ts';

const TIMES = { durationMs: 3_600_000, renewWithinMs: 3_600_000, retryMs: 1, releaseWithinMs: 60_000 };

const heldBy = (holderIdentity: string): KubeObject =>
  v.parse(KubeObjectSchema, {
    metadata: { name: 'lead', uid: 'uid', resourceVersion: '1' },
    spec: { holderIdentity, leaseDurationSeconds: 3_600 },
  });

type Look = KubeObject | undefined | Error;
const FREE = heldBy('');
const TAKEN = heldBy('another');
const FASTER = new KubeStatusError(409, 'Conflict', 'it was changed');

class Candidate {
  readonly #election: Election;
  #isFit = true;
  /** Shows the Lease to a look that waits for it; null while none does. */
  #show: PromiseWithResolvers<KubeObject | undefined> | null = null;
  #refusal: Error | null = null;
  #lead: { readonly signal: AbortSignal; readonly work: PromiseWithResolvers<void> } | null = null;
  #isVacant = false;
  #isStopped = false;

  constructor() {
    this.#election = startElection({
      kube: {
        get: () => {
          if (this.#isStopped) return Promise.resolve(FREE);
          this.#show = Promise.withResolvers();
          return this.#show.promise;
        },
        apply: async () => {
          if (this.#refusal !== null) throw this.#refusal;
          return FREE;
        },
      },
      lease: { namespace: 'default', name: 'lead' },
      log: silent,
      isFit: () => this.#isFit,
      lead: async (signal) => {
        const work = Promise.withResolvers<void>();
        this.#lead = { signal, work };
        await work.promise;
        this.#lead = null;
      },
      whileNobodyLeads: async (signal) => {
        this.#isVacant = true;
        await aborted(signal);
        this.#isVacant = false;
      },
      times: TIMES,
    });
  }

  get state(): string {
    if (this.#isStopped) return 'stopped';
    if (this.#lead !== null) return this.#lead.signal.aborted ? 'ending' : 'leading';
    return this.#isVacant ? 'vacant' : 'candidate';
  }

  /** One look, and what follows from it until the next look: there is none while it waits for its work to end. */
  async looks(lease: Look, { isFit = true, refusal = null as Error | null } = {}): Promise<void> {
    this.#isFit = isFit;
    this.#refusal = refusal;
    await until(() => this.#show !== null);
    const show = this.#show;
    this.#show = null;
    if (lease instanceof Error) show?.reject(lease);
    else show?.resolve(lease);
    const waits = lease === TAKEN && this.#lead !== null;
    await until(() => (waits ? this.state === 'ending' : this.#show !== null));
  }

  /** The work ends, and the next look is awaited. */
  async workEnds(): Promise<void> {
    if (this.#lead === null) return;
    this.#lead.work.resolve();
    await until(() => this.#lead === null && this.#show !== null);
  }

  async stop(): Promise<void> {
    const stopping = this.#election.stop();
    this.#isStopped = true;
    this.#show?.resolve(TAKEN);
    void until(() => this.#lead?.signal.aborted ?? true).then(() => this.#lead?.work.resolve());
    await stopping;
  }
}

let candidates: Candidate[] = [];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  candidates = [];
});
afterEach(async () => {
  for (const candidate of candidates) await candidate.stop();
  vi.useRealTimers();
});

function candidate(): Candidate {
  const made = new Candidate();
  candidates.push(made);
  return made;
}

const after =
  (step: (candidate: Candidate) => Promise<void>, made = candidate) =>
  async () => {
    const one = await made();
    await step(one);
    return one;
  };
const takes = (one: Candidate) => one.looks(FREE);
const isUnfit = async (one: Candidate) => {
  for (let looks = 0; looks < 3; looks += 1) await one.looks(FREE, { isFit: false });
};
const expires = async (_one: Candidate) => {
  await vi.advanceTimersByTimeAsync(TIMES.renewWithinMs);
};

const leading = after(takes);

drive('A candidate', {
  states: {
    candidate,
    vacant: after(isUnfit),
    leading,
    ending: async () => {
      const one = await leading();
      await expires(one);
      return one;
    },
    stopped: after((one) => one.stop()),
  },
  events: {
    'free Lease': takes,
    'three free looks while unfit': isUnfit,
    'Lease of another': (one) => one.looks(TAKEN),
    'another is faster': (one) => one.looks(FREE, { refusal: FASTER }),
    'look fails': (one) => one.looks(new Error('no API server')),
    'ten seconds without renewal': expires,
    'work ends': (one) => one.workEnds(),
    stop: (one) => one.stop(),
  },
  stateOf: (one) => one.state,
});

test('a candidate that makes a missing Lease leads once the next look shows who holds it', async () => {
  const one = candidate();
  await one.looks(undefined);
  expect(one.state).toBe('candidate');
  await one.looks(FREE);
  expect(one.state).toBe('leading');
});
