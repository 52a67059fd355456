/*
 * Programs that a bed starts in its hooks.
 */

/** It is there in tests and in hooks that run after the bed's own. */
export function started<T>(value: T | null): T {
  if (value === null) throw new Error('not started yet');
  return value;
}
