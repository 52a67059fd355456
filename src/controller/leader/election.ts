/*
 * The election of the one controller that writes reports, Events and node conditions and measures status lags; all of them store evidence.
 * SPEC.md has the table of its transitions.
 *
 *   candidate ── takes the Lease ──► leading ── the Lease is lost, or not renewed in time ──► ending ── all has ended ──► candidate
 *
 * Stopping releases the Lease, so that another controller leads within seconds.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { KubeClient } from '../../kube/client.ts';
import { KubeStatusError } from '../../kube/kubeErrors.ts';
import { leasesOf } from '../../kube/object.ts';
import { type KubeRight, rightsOn } from '../../kube/rights.ts';
import { readClocks } from '../../platform/clock.ts';
import { errorFields } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { ThrottledLog } from '../../platform/throttledLog.ts';
import { between, millis, mono, shift, wall } from '../../protocol/units.ts';
import {
  heldLease,
  LEASE_TIMES,
  LeaseObservation,
  type LeaseTimes,
  parseLease,
  releasedLease,
} from './lease.ts';

export interface LeasePlace {
  readonly namespace: string;
  readonly name: string;
}

/** Candidates make the Lease if it is missing, and may make this one only. */
export const leaseRights = ({ namespace, name }: LeasePlace): readonly KubeRight[] =>
  rightsOn(leasesOf(namespace), ['get', 'create', 'patch'], { name });

export interface ElectionOptions {
  readonly kube: Pick<KubeClient, 'get' | 'apply'>;
  readonly lease: LeasePlace;
  readonly log: Logger;
  /** Whether this controller could do the work. While it could not, it neither takes nor renews the Lease. */
  readonly isFit: () => boolean;
  /** Leads until the signal is aborted; resolves when everything that it started has ended. `holds`: whether a write may begin. */
  readonly lead: (signal: AbortSignal, holds: () => boolean) => Promise<void>;
  /** Called while this controller could not do the work and no other one leads, until that ends or it resolves. */
  readonly whileNobodyLeads?: (signal: AbortSignal) => Promise<void>;
  /** For tests. */
  readonly times?: LeaseTimes;
  readonly clocks?: typeof readClocks;
}

export interface Election {
  /** Ends leading and releases the Lease. */
  stop(): Promise<void>;
}

export const startElection = (options: ElectionOptions): Election => new Candidate(options);

const CONFLICT = 409;
/** A candidate that is fit takes a released Lease at its next look, and one that is missing at the second. */
const TAKEN_WITHIN_LOOKS = 2;
const NEVER = { mono: mono(0), wall: wall(0) };

class Candidate implements Election {
  readonly #options: ElectionOptions;
  readonly #times: LeaseTimes;
  readonly #clocks: typeof readClocks;
  readonly #identity = `${hostname()}_${randomUUID()}`;
  readonly #observation = new LeaseObservation();
  readonly #log: ThrottledLog;
  readonly #loop: Loop;
  /** Until when a write may begin, on the monotonic and on the wall clock: a suspended machine moves only the latter. */
  #holdsUntil = NEVER;
  #expiry: NodeJS.Timeout | undefined;
  #leading: { readonly end: AbortController; readonly ended: Promise<void> } | null = null;
  /** How many looks in a row have shown that nobody leads. */
  #vacantLooks = 0;
  /** The work while nobody leads. */
  #vacancy: { readonly end: AbortController; readonly ended: Promise<void> } | null = null;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#times = options.times ?? LEASE_TIMES;
    this.#clocks = options.clocks ?? readClocks;
    this.#log = new ThrottledLog(options.log, { linesPerMinute: 1 });
    const { retryMs } = this.#times;
    this.#loop = new Loop({
      work: (signal) => this.#round(signal),
      onError: (error) =>
        this.#log.warn(errorFields(error), 'the Lease could not be read or written, retrying'),
      backoff: { firstMs: retryMs, maxMs: retryMs },
    });
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    this.#setVacant(false);
    await this.#vacancy?.ended;
    await this.#endLeading();
    await this.#release().catch((error: unknown) => {
      this.#log.warn(errorFields(error), 'the Lease could not be released: others wait until it expires');
    });
  }

  #setVacant(isVacant: boolean): void {
    const { whileNobodyLeads, log } = this.#options;
    if (!isVacant) this.#vacancy?.end.abort();
    if (!isVacant || this.#vacancy !== null || whileNobodyLeads === undefined) return;
    const end = new AbortController();
    const ended = whileNobodyLeads(end.signal)
      .catch((error: unknown) => {
        if (!end.signal.aborted) log.warn(errorFields(error), 'work while nobody leads failed');
      })
      .then(() => {
        this.#vacancy = null;
      });
    this.#vacancy = { end, ended };
  }

  #holds(): boolean {
    const now = this.#clocks();
    return now.mono < this.#holdsUntil.mono && now.wall < this.#holdsUntil.wall;
  }

  /** Renews or takes the Lease if that is allowed, once. Returns the wait until the next round. */
  async #round(stopping: AbortSignal): Promise<number> {
    const { kube, lease: place, isFit } = this.#options;
    const resource = leasesOf(place.namespace);
    const began = this.#clocks();
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(this.#times.renewWithinMs)]);
    const object = await kube.get(resource, place.name, signal);
    const lease = object === undefined ? null : parseLease(object);
    const mayTake = lease === null || this.#observation.mayTake(lease, this.#identity, this.#clocks().mono);
    const isVacant = mayTake && !isFit() && this.#leading === null;
    this.#vacantLooks = isVacant ? this.#vacantLooks + 1 : 0;
    this.#setVacant(this.#vacantLooks > TAKEN_WITHIN_LOOKS);
    if (!mayTake && this.#leading !== null) await this.#endLeading();
    if (!mayTake || !isFit()) return this.#times.retryMs;
    try {
      await kube.apply(resource, heldLease(place.name, lease, this.#identity, this.#times), signal);
    } catch (error) {
      // Another candidate was faster. The next round shows it.
      if (error instanceof KubeStatusError && error.code === CONFLICT) return this.#times.retryMs;
      throw error;
    }
    // Two candidates may both have made a Lease that was missing: the next round shows whose it is.
    if (lease === null) return this.#times.retryMs;
    const valid = millis(this.#times.renewWithinMs);
    this.#holdsUntil = { mono: shift(began.mono, valid), wall: shift(began.wall, valid) };
    clearTimeout(this.#expiry);
    const leftMs = between(this.#clocks().mono, this.#holdsUntil.mono) / 1000;
    this.#expiry = setTimeout(() => void this.#endLeading(), leftMs);
    if (this.#leading === null) this.#startLeading();
    return this.#times.retryMs;
  }

  #startLeading(): void {
    const { lead, log } = this.#options;
    log.info({ identity: this.#identity }, 'this controller leads');
    const end = new AbortController();
    const ended = lead(end.signal, () => this.#holds()).catch((error: unknown) => {
      log.error(errorFields(error), 'the work of the leader failed');
    });
    const leading = { end, ended };
    this.#leading = leading;
    void ended.then(() => {
      if (this.#leading === leading) this.#leading = null;
    });
  }

  /** Resolves when everything has ended that belongs to leading. */
  async #endLeading(): Promise<void> {
    clearTimeout(this.#expiry);
    this.#holdsUntil = NEVER;
    if (this.#leading === null) return;
    const { end, ended } = this.#leading;
    if (!end.signal.aborted) this.#options.log.info('this controller no longer leads');
    end.abort();
    await ended;
  }

  async #release(): Promise<void> {
    const { kube, lease: place } = this.#options;
    const resource = leasesOf(place.namespace);
    const signal = AbortSignal.timeout(this.#times.releaseWithinMs);
    const object = await kube.get(resource, place.name, signal);
    const lease = object === undefined ? null : parseLease(object);
    if (lease?.holder !== this.#identity) return;
    await kube.apply(resource, releasedLease(place.name, lease), signal);
  }
}
