/*
 * Assertions: what must hold unless this program has a defect.
 */

/** Throws if an invariant is broken; `broken` says which, and in what way. */
export function invariant(condition: unknown, broken: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${broken}`);
}
