/*
 * Answers that take long to make: who asks for the same again soon has the one of before, and who asks at the same time waits for it too.
 */
import { monoNow } from '../../platform/clock.ts';
import { type Micros, type Mono, shift } from '../../protocol/units.ts';

const MAX_KEPT = 16;

/** `make` is called once for a key, and again when its answer is older than `keptFor`. An error is not kept. */
export function remembered<T>(keptFor: Micros, now: () => Mono = monoNow) {
  const kept = new Map<string, { readonly answer: Promise<T>; readonly until: Mono }>();
  return (key: string, make: () => Promise<T>): Promise<T> => {
    const known = kept.get(key);
    if (known !== undefined && now() < known.until) return known.answer;
    const entry = { answer: make(), until: shift(now(), keptFor) };
    kept.delete(key);
    kept.set(key, entry);
    entry.answer.catch(() => kept.get(key) === entry && kept.delete(key));
    const [oldest] = kept.keys();
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    return entry.answer;
  };
}
