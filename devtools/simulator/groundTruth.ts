/*
 * The ground truth: what the simulated runtime really did. One JSON line per entry, in the order in which things
 * happened. Every entry has
 *
 *   n      counts the entries from 1
 *   at     wall clock, microseconds since the Unix epoch; the machine's own, whatever the runtime's stamps are made to do
 *   mono   the machine's monotonic clock (process.hrtime), microseconds
 *   what   transition | event | view | fault | subscriber
 *
 * transition   a container or sandbox changed its state; from this moment on the lists show it, unless a view says else
 *              { id, sandbox, isSandbox, pod: {uid, namespace, name}, container, attempt,
 *                transition: created | started | stopped | deleted, exitCode,
 *                silent: null     an event was or will be built for it
 *                        profile  this runtime never announces it (nor a failed start, a failed sandbox)
 *                        asked    the caller asked for silence
 *                        down     it happened while the runtime was down
 *                        unheard  nobody was subscribed, and this runtime then builds no events }
 * event        an event was built and given to its subscribers, or not
 *              { event (its number), id, sandbox, isSandbox, pod, container, attempt, type: CREATED | …,
 *                createdNs (before any fault), live (somebody was subscribed when it was built), replayed, to: [subscriber…],
 *                delivered (`to` is not empty), queued (it waits, or is held back), spurious (nothing happened),
 *                changed: [faults that changed the message] }
 *              An event that waited, was delayed or is repeated has one entry for each delivery, with the same number;
 *              it was lost if no entry of its number is delivered.
 * view         lists and statuses begin to show something else than what is: { id … attempt,
 *                shown: created | running | exited | unknown | absent, or null: from now on as it is }
 * fault        { fault (a name; docs/development/simulator.md has them all), event, id, type, detail }
 * subscriber   { subscriber, change: opened | closed, cause, undelivered (given to it, not yet written) }
 *
 * For `container` of a sandbox the text is empty. A sandbox's `sandbox` is its own id.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { messageOf, PlegwatchError } from '../../src/platform/errors.ts';
import type { EventType } from '../../src/protocol/record.ts';
import type { Mono, Wall } from '../../src/protocol/units.ts';
import type { Clock } from './clock.ts';

export interface PodName {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** Which container or sandbox an entry is about. */
export interface EventSubject {
  readonly id: string;
  readonly sandbox: string;
  readonly isSandbox: boolean;
  readonly pod: PodName;
  readonly container: string;
  readonly attempt: number;
}

export type LifecycleTransition = 'created' | 'started' | 'stopped' | 'deleted';
export type SilentReason = 'profile' | 'asked' | 'down' | 'unheard';
/** What a list can say of an item; READY is `running`, NOTREADY is `exited`. */
export type ShownState = 'created' | 'running' | 'exited' | 'unknown' | 'absent';

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
  readonly shown: ShownState | null;
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

type TruthFact = TransitionFact | EventFact | ViewFact | FaultFact | SubscriberFact;
export type TruthEntry = TruthFact & { readonly n: number; readonly at: Wall; readonly mono: Mono };
type TruthListener = (entry: TruthEntry) => void;

export interface GroundTruth {
  /** Adds an entry, stamped now. */
  record(fact: TruthFact): void;
  /** Calls back for every later entry until the returned function is called. */
  listen(listener: TruthListener): () => void;
  /** Every entry so far; stays empty unless the runtime was asked to keep them. */
  readonly entries: readonly TruthEntry[];
}

/** A fault that is about no single event. */
export function noteFault(truth: GroundTruth, fault: string, detail: string, id: string | null = null): void {
  truth.record({ what: 'fault', fault, event: null, id, type: null, detail });
}

export function createGroundTruth(clock: Clock, options: { readonly keep: boolean }): GroundTruth {
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
 * Writes every entry to a file (emptied first), one write per line: what was recorded survives a kill -9 of the process.
 * Returns what closes it. Throws SETTING_INVALID when the file cannot be written.
 */
export function writeGroundTruth(truth: GroundTruth, path: string): () => void {
  const file = openForWriting(path);
  const silence = truth.listen((entry) => writeSync(file, `${JSON.stringify(entry)}\n`));
  return () => {
    silence();
    closeSync(file);
  };
}

function openForWriting(path: string): number {
  try {
    return openSync(path, 'w');
  } catch (error) {
    const message = `--truth ${path}: ${messageOf(error)}`;
    throw new PlegwatchError('SETTING_INVALID', message, 'Choose a file that can be written.', {
      cause: error,
    });
  }
}
