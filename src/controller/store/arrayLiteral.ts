/*
 * Array literals for Postgres, for elements that need no quotes. The driver escapes every element character by character,
 * which on the hot path is a fifth of the work.
 */

/** The literal of an array of numbers, or of text that consists of digits and letters only. */
export function arrayLiteral(values: readonly (number | string | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}
