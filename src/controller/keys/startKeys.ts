/*
 * Whose evidence it is: the keys of the nodes, the controller's own, and the enroller between them.
 */
import type { KeyObject } from 'node:crypto';
import { messageOf } from '../../platform/errors.ts';
import { Loop } from '../../platform/loop.ts';
import { sleep } from '../../platform/sleep.ts';
import type { Store } from '../../store/store.ts';
import { Attribution, type AttributionMode } from './attribution.ts';
import type { ControllerKeys } from './controllerKeys.ts';
import { Enroller, type EnrollerOptions } from './enroller.ts';
import { NodeKeys } from './nodeKeys.ts';

export interface AttributionOptions {
  readonly mode: AttributionMode;
  /** Absent if agents cannot enrol here; then replies are not signed either. */
  readonly enrolment?: Pick<EnrollerOptions, 'kube' | 'account'> & {
    readonly loadKeys: () => Promise<ControllerKeys>;
  };
  /** How long the start waits for these keys. Default: a few seconds. */
  readonly readWithinMs?: number;
}

export interface KeysOptions
  extends Partial<AttributionOptions>,
    Omit<EnrollerOptions, 'store' | 'kube' | 'account' | 'keys' | 'nodeKeys'> {
  readonly store: Store;
}

export interface RunningKeys {
  readonly attribution: Attribution;
  /** Null if nobody can enrol here. */
  readonly enroller: Enroller | null;
  /** The key that signs replies, null while it is not known; null if they are not signed. */
  readonly signKey: (() => KeyObject | null) | null;
  /** Waits for the enrolments that are under way. */
  stop(): Promise<void>;
}

/** Where nobody can enrol, `auto` waits for nothing: it is `accept`. */
export const modeWhere = (mode: AttributionMode, canEnrol: boolean): AttributionMode =>
  mode === 'auto' && !canEnrol ? 'accept' : mode;

/** The keys never change, unless somebody empties their Secret. */
const INTERVAL_MS = 600_000;
const BACKOFF = { firstMs: 500, maxMs: 10_000 };
const READ_WITHIN_MS = 5_000;

/** Waits a few seconds for the controller's own keys, if it has any; they are read later if that fails. */
export async function startKeys({
  mode = 'auto',
  enrolment,
  readWithinMs = READ_WITHIN_MS,
  ...options
}: KeysOptions): Promise<RunningKeys> {
  const { store, cluster, clusterId, log } = options;
  const nodeKeys = new NodeKeys(store, clusterId);
  const attribution = new Attribution(cluster, modeWhere(mode, enrolment !== undefined), nodeKeys);
  if (enrolment === undefined)
    return { attribution, enroller: null, signKey: null, stop: () => Promise.resolve() };
  let keys: ControllerKeys | null = null;
  const read = new AbortController();
  const loading = new Loop({
    async work() {
      keys = await enrolment.loadKeys();
      read.abort();
      return INTERVAL_MS;
    },
    onError: (error) => log.warn({ error: messageOf(error) }, "the controller's keys could not be read"),
    backoff: BACKOFF,
  });
  const enroller = new Enroller({ ...options, ...enrolment, keys: () => keys, nodeKeys });
  loading.start();
  await sleep(readWithinMs, read.signal);
  return {
    attribution,
    enroller,
    signKey: () => keys?.sign ?? null,
    async stop() {
      await loading.stop();
      await enroller.stop();
    },
  };
}
