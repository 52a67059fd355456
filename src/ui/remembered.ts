/*
 * Answers that take long to make: who asks for the same again soon has the one of before, and who asks at the same time waits for it too.
 */
import { monoNow } from '../platform/clock.ts';
import { between, type Micros, type Mono, millis, shift } from '../protocol/units.ts';

export interface RememberedOptions<T> {
  /** How long an answer holds, from when it was asked for: it may say how things were then. `took`: how long it took to make. */
  readonly keptFor: (answer: T, took: Micros) => Micros;
  /** The maximum of each kind; the oldest is forgotten first. */
  readonly max: number;
  /** An answer never makes one of another kind be forgotten. Default: all are of one kind. */
  readonly kindOf?: (answer: T) => string;
  readonly now?: () => Mono;
}

/** So rarely made again that Postgres is busy with it for one part in `rest` of the time, within these bounds in milliseconds. */
export const keptBy =
  (rest: number, minMs: number, maxMs: number) =>
  (_: unknown, took: Micros): Micros =>
    millis(Math.min(maxMs, Math.max(minMs, (took / 1000) * rest)));

/** Answers about a period hold for all who ask within a minute about the same one, to the minute. */
export const OF_A_MINUTE = { keptFor: () => millis(60_000), max: 16 };
export const toMinutes = ({ from, to }: { readonly from: Date; readonly to: Date }): string =>
  [from, to].map((at) => Math.floor(at.getTime() / 60_000)).join();

export interface Remembered<T> {
  /** `make` is called once for a key, and again when its answer no longer holds. An error is not kept. */
  ask(key: string, make: () => Promise<T>): Promise<T>;
  /** The last answer, also one that no longer holds; undefined if there is none. */
  last(key: string): T | undefined;
}

interface Kept<T> {
  readonly answer: T;
  readonly until: Mono;
}

export function remembered<T>({
  keptFor,
  max,
  kindOf = () => '',
  now = monoNow,
}: RememberedOptions<T>): Remembered<T> {
  const kinds = new Map<string, Map<string, Kept<T>>>();
  const asked = new Map<string, Promise<T>>();

  function keptOf(key: string): Kept<T> | undefined {
    for (const kept of kinds.values()) {
      const known = kept.get(key);
      if (known !== undefined) return known;
    }
    return undefined;
  }

  async function made(key: string, make: () => Promise<T>): Promise<T> {
    const since = now();
    const answer = await make();
    for (const others of kinds.values()) others.delete(key);
    const kind = kindOf(answer);
    const kept = kinds.get(kind) ?? new Map<string, Kept<T>>();
    kinds.set(kind, kept.set(key, { answer, until: shift(since, keptFor(answer, between(since, now()))) }));
    const [oldest] = kept.keys();
    if (kept.size > max && oldest !== undefined) kept.delete(oldest);
    return answer;
  }

  return {
    last: (key) => keptOf(key)?.answer,
    async ask(key, make) {
      const known = keptOf(key);
      if (known !== undefined && now() < known.until) return known.answer;
      const others = asked.get(key);
      if (others !== undefined) return others;
      const answer = made(key, make).finally(() => asked.delete(key));
      asked.set(key, answer);
      return answer;
    },
  };
}
