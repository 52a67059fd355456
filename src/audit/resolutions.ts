/*
 * Resolutions: a miss is resolved when its event is received after all, by the same epoch, where the rules say so, or by another
 * incarnation of the node's agent, after the end of the miss's window; or when lists take back what proved it. The earliest counts.
 *
 * Each is held against the rules once everything is read: an event may come hours after its miss.
 */
import type { Mono } from '../protocol/units.ts';
import type { Difference } from './difference.ts';
import { TICK } from './reading.ts';
import type { StoredFinding } from './storedEpoch.ts';

/** Times are stored in microseconds, rounded once for the wall clock. */
const TOLERANCE = 2;

/** A stored miss, and what each reading that makes it calls it. */
interface Confirmed {
  readonly stored: StoredFinding;
  readonly made: readonly { readonly reading: number; readonly findingId: string }[];
}

interface Resolution {
  readonly at: Mono;
  readonly within: number;
}

export class Resolutions {
  readonly #misses: Confirmed[] = [];
  /** By reading: when it resolved what it made. */
  readonly #byReading: readonly Map<string, Resolution>[];

  constructor(readings: number) {
    this.#byReading = Array.from({ length: readings }, () => new Map());
  }

  /** A reading resolves what it made. `isReceipt`: an event was received then. A conclusion that no event dates is dated by the last tick. */
  resolved(reading: number, findingId: string, at: Mono, isReceipt: boolean): void {
    this.#byReading[reading]?.set(findingId, { at, within: isReceipt ? TOLERANCE : TICK });
  }

  /** Readings make what is stored too. */
  confirmed(miss: Confirmed): void {
    this.#misses.push(miss);
  }

  /** Everything until `end` was read. */
  differences(end: Mono): Difference[] {
    return this.#misses.flatMap(({ stored, made }) => {
      const { announcedToOther, resolved } = stored;
      const other = announcedToOther === null ? null : { at: announcedToOther, within: TOLERANCE };
      const possible = made.map(({ reading, findingId }) =>
        earlier(this.#byReading[reading]?.get(findingId) ?? null, other),
      );
      const isLater = resolved !== null && resolved > end;
      if (isLater || possible.some((each) => fits(resolved, each))) return [];
      return [{ is: 'changed_resolution', stored, resolved: possible[0]?.at ?? null }];
    });
  }
}

const earlier = (one: Resolution | null, other: Resolution | null): Resolution | null =>
  one === null || (other !== null && other.at < one.at) ? other : one;

const fits = (stored: Mono | null, made: Resolution | null): boolean =>
  stored === null || made === null
    ? stored === null && made === null
    : Math.abs(stored - made.at) <= made.within;
