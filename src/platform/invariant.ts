/*
 * Assertions: what they say cannot happen unless this program has a defect.
 */

/** Throws unless the condition holds. `broken` says which invariant then is. */
export function invariant(condition: unknown, broken: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${broken}`);
}
