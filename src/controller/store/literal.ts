/**
 * A column as an array literal for Postgres: of numbers, or of text that consists of digits and letters only. The driver escapes every
 * element character by character, which on the hot path is a fifth of the work.
 */
export function literal<R>(rows: readonly R[], value: (row: R) => number | string | null): string {
  return `{${rows.map((row) => value(row) ?? 'NULL').join(',')}}`;
}
