/*
 * The ground truth: what the simulated runtime really did. One JSON line per entry, in the order of the occurrences. Every
 * entry has
 *
 *   n      the number of the entry, from 1
 *   at     wall clock of the machine, microseconds since the Unix epoch; not affected by steps of the runtime's clock
 *   mono   monotonic clock of the machine (process.hrtime), microseconds
 *   what   transition | event | view | fault | subscriber | status | watch
 *
 * transition   a container or sandbox changed its state; the lists show it from now on, unless a view says otherwise
 *              { id, sandbox, isSandbox, pod: {uid, namespace, name}, container, attempt,
 *                transition: created | started | stopped | deleted, exitCode,
 *                silent: null            an event was or will be built for it
 *                        profile         this runtime never announces it (nor a failed start or a failed sandbox)
 *                        requested       the caller requested silence
 *                        down            it happened while the runtime was down
 *                        no_subscriber   there was no subscriber, and this runtime then builds no events }
 * event        an event was delivered, queued or lost
 *              { event (its number), id, sandbox, isSandbox, pod, container, attempt, type: CREATED | …,
 *                createdNs (before any fault), live (there was a subscriber when it was built), replayed, to: [subscriber…],
 *                delivered (`to` is not empty), queued (it waits or is delayed), spurious (nothing happened),
 *                changed: [faults that changed the message] }
 *              An event that waited, was delayed or is repeated has one entry for each delivery, with the same number.
 *              It was lost if none of its entries is delivered.
 * view         lists and statuses begin to show a state that is not the true one: { id … attempt,
 *                shown: created | running | exited | unknown | absent, or null: the true one again }
 * fault        { fault (the name of the fault; the simulator's documentation lists them), event, id, type, detail }
 * subscriber   { subscriber, change: opened | closed, cause, undelivered (sent to it, but not written yet) }
 * status       the simulated kubelet's own status of a pod from now on, which its PodsAPI shows
 *              { pod, isTerminating, ended (it has terminated the pod, and knows it no more),
 *                containers: [{ name, id, state: waiting | running | terminated, lastId: the id that ended before it }] }
 * watch        a watch of the kubelet's PodsAPI { watch (its number), change: opened | closed,
 *              cause: of an end by the kubelet its status; `cancelled` where the client has left }
 *
 * `container` is empty for a sandbox, whose `sandbox` is its own id.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { messageOf, PlegwatchError } from '../../src/platform/errors.ts';
import type { KubeletContainer } from '../../src/protocol/observation.ts';
import type { EventType } from '../../src/protocol/record.ts';
import type { Mono, Wall } from '../../src/protocol/units.ts';
import type { Clock } from './clock.ts';

export interface PodName {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** The container or sandbox that an entry is about. */
export interface EventSubject {
  readonly id: string;
  readonly sandbox: string;
  readonly isSandbox: boolean;
  readonly pod: PodName;
  readonly container: string;
  readonly attempt: number;
}

export type LifecycleTransition = 'created' | 'started' | 'stopped' | 'deleted';
export type SilentReason = 'profile' | 'requested' | 'down' | 'no_subscriber';
/** The state that a list shows; READY is `running`, NOTREADY is `exited`. */
export type ShownItemState = 'created' | 'running' | 'exited' | 'unknown' | 'absent';

export interface TransitionFact extends EventSubject {
  readonly what: 'transition';
  readonly transition: LifecycleTransition;
  readonly exitCode: number | null;
  readonly silent: SilentReason | null;
}

export interface EventFact extends EventSubject {
  readonly what: 'event';
  readonly event: number;
  readonly type: EventType;
  readonly createdNs: string;
  readonly live: boolean;
  readonly replayed: boolean;
  readonly to: readonly number[];
  readonly delivered: boolean;
  readonly queued: boolean;
  readonly spurious: boolean;
  readonly changed: readonly string[];
}

export interface ViewFact extends EventSubject {
  readonly what: 'view';
  readonly shown: ShownItemState | null;
}

export interface FaultFact {
  readonly what: 'fault';
  readonly fault: string;
  readonly event: number | null;
  readonly id: string | null;
  readonly type: EventType | null;
  readonly detail: string;
}

interface SubscriberFact {
  readonly what: 'subscriber';
  readonly subscriber: number;
  readonly change: 'opened' | 'closed';
  readonly cause: string;
  readonly undelivered: number;
}

export interface PodContainerStatus extends KubeletContainer {
  /** The id of the container before it, which has ended; null where there is none. */
  readonly lastId: string | null;
}

export interface PodStatus {
  readonly pod: PodName;
  readonly isTerminating: boolean;
  readonly ended: boolean;
  readonly containers: readonly PodContainerStatus[];
}

export interface StatusFact extends PodStatus {
  readonly what: 'status';
}

interface WatchFact {
  readonly what: 'watch';
  readonly watch: number;
  readonly change: 'opened' | 'closed';
  readonly cause: string;
}

type TruthFact = TransitionFact | EventFact | ViewFact | FaultFact | SubscriberFact | StatusFact | WatchFact;
export type TruthEntry = TruthFact & { readonly n: number; readonly at: Wall; readonly mono: Mono };
type TruthListener = (entry: TruthEntry) => void;

export interface GroundTruthLog {
  /** Adds an entry with the current time. */
  record(fact: TruthFact): void;
  /** Calls the listener for every later entry until the returned function is called. */
  listen(listener: TruthListener): () => void;
  /** Every entry so far; empty unless the runtime keeps them. */
  readonly entries: readonly TruthEntry[];
}

/** Records a fault that does not belong to an event. */
export function noteFault(
  truth: GroundTruthLog,
  fault: string,
  detail: string,
  id: string | null = null,
): void {
  truth.record({ what: 'fault', fault, event: null, id, type: null, detail });
}

export function createGroundTruth(clock: Clock, options: { readonly keep: boolean }): GroundTruthLog {
  const entries: TruthEntry[] = [];
  const listeners = new Set<TruthListener>();
  let n = 0;
  return {
    entries,
    record(fact) {
      const { wall: at, mono } = clock();
      n += 1;
      const entry: TruthEntry = { n, at, mono, ...fact };
      if (options.keep) entries.push(entry);
      for (const listener of listeners) listener(entry);
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/**
 * Writes every entry to a file (emptied first), with one write per line, so that entries survive a kill -9 of the process.
 * Returns a function that closes the file. Throws SETTING_INVALID when the file cannot be written.
 */
export function writeGroundTruth(truth: GroundTruthLog, path: string): () => void {
  const file = openForWriting(path);
  const stopListening = truth.listen((entry) => writeSync(file, `${JSON.stringify(entry)}\n`));
  return () => {
    stopListening();
    closeSync(file);
  };
}

function openForWriting(path: string): number {
  try {
    return openSync(path, 'w');
  } catch (error) {
    const message = `--truth ${path}: ${messageOf(error)}`;
    const options = { cause: error };
    throw new PlegwatchError('SETTING_INVALID', message, 'Choose a file that can be written.', options);
  }
}
