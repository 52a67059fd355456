/**
 * A column as an array literal for Postgres: of numbers, as such or in decimal. Text has no such type: nothing is escaped here. The driver
 * escapes every element character by character, which on the hot path is a fifth of the work.
 */
export function literal<R>(rows: readonly R[], value: (row: R) => number | `${bigint}` | null): string {
  return `{${rows.map((row) => value(row) ?? 'NULL').join(',')}}`;
}
