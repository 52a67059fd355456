/*
 * The Lease object of Kubernetes by which controllers agree on one leader, by the rules of client-go's leaderelection package:
 *
 *   holder     renews the Lease every two seconds, and stops leading when the last renewal is ten seconds old
 *   candidate  takes it when it has no holder, or when it did not change for as long as the holder asked, fifteen seconds,
 *              on the candidate's own clock: times in the object are for people
 *
 * A Lease is not a lock: a holder that was frozen may still believe in it. leadership.ts says what keeps such a one from writing.
 */
import * as v from 'valibot';
import type { AppliedObject } from '../../kube/client.ts';
import { decode, type KubeObject } from '../../kube/object.ts';
import { between, type Mono, millis, mono } from '../../protocol/units.ts';

export interface LeaseTimes {
  /** How long others leave the Lease to a holder that does not renew it. */
  readonly durationMs: number;
  /** How long a holder leads after its last renewal. */
  readonly renewWithinMs: number;
  /** Between two renewals, and between two looks of a candidate. */
  readonly retryMs: number;
  /** How long one that stops tries to release the Lease. */
  readonly releaseWithinMs: number;
}

export const LEASE_TIMES: LeaseTimes = {
  durationMs: 15_000,
  renewWithinMs: 10_000,
  retryMs: 2_000,
  releaseWithinMs: 2_000,
};

/**
 * For how long a term that began in a contest of two leaders counts as contested: after it was deposed, each waits for a pause before it begins
 * the next one.
 */
export const contestedMs = (pauseMs = LEASE_TIMES.durationMs): number => 3 * pauseMs;

const SpecSchema = v.object({
  holderIdentity: v.nullish(v.string(), ''),
  leaseDurationSeconds: v.nullish(v.number(), 0),
  acquireTime: v.nullish(v.string(), null),
  leaseTransitions: v.nullish(v.number(), 0),
});
const LeaseSchema = v.looseObject({ spec: v.nullish(SpecSchema, {}) });

export interface Lease {
  /** Changes with every write. */
  readonly resourceVersion: string;
  /** Empty: nobody. */
  readonly holder: string;
  readonly durationMs: number;
  readonly acquiredAt: string | null;
  readonly transitions: number;
}

/** Throws KubeStatusError Unreadable if its fields are not those of a Lease. */
export function parseLease(object: KubeObject): Lease {
  const { spec } = decode(LeaseSchema, { verb: 'get', resource: 'leases' }, object);
  return {
    resourceVersion: object.metadata.resourceVersion,
    holder: spec.holderIdentity,
    durationMs: spec.leaseDurationSeconds * 1000,
    acquiredAt: spec.acquireTime,
    transitions: spec.leaseTransitions,
  };
}

/** The Lease as a candidate has seen it, and when it changed. */
export class LeaseObservation {
  #version = '';
  #changedAt = mono(0);

  /** Whether `identity` may write the Lease. */
  mayTake({ resourceVersion, holder, durationMs }: Lease, identity: string, now: Mono): boolean {
    if (resourceVersion !== this.#version) {
      this.#version = resourceVersion;
      this.#changedAt = now;
    }
    return holder === identity || holder === '' || between(this.#changedAt, now) >= millis(durationMs);
  }
}

/** The Lease as held by `identity` from now on. Null: there is none yet. It is written only if it is still the one that was read. */
export function heldLease(
  name: string,
  lease: Lease | null,
  identity: string,
  times: LeaseTimes,
): AppliedObject {
  const now = microTime();
  const isRenewal = lease?.holder === identity;
  return leaseObject(name, lease, {
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(times.durationMs / 1000),
    acquireTime: isRenewal ? (lease.acquiredAt ?? now) : now,
    renewTime: now,
    leaseTransitions: (lease?.transitions ?? 0) + (isRenewal ? 0 : 1),
  });
}

/** The Lease without a holder, so that the next candidate need not wait. */
export const releasedLease = (name: string, lease: Lease): AppliedObject =>
  leaseObject(name, lease, {
    holderIdentity: '',
    leaseDurationSeconds: 1,
    leaseTransitions: lease.transitions,
  });

const leaseObject = (name: string, lease: Lease | null, spec: object): AppliedObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, ...(lease === null ? {} : { resourceVersion: lease.resourceVersion }) },
  spec,
});

const microTime = (): string => `${new Date().toISOString().slice(0, -1)}000Z`;
