/*
 * Rows that several databases sorted, as one of them would have sorted all.
 */

/** A column that rows are sorted by: texts by their bytes, null last. */
export type SortKey<T> = (row: T) => string | number | null;

/** Rows that no key tells apart stay in the order of `parts`. */
export function ordered<T>(parts: readonly (readonly T[])[], ...keys: readonly SortKey<T>[]): T[] {
  const rows = parts.flat();
  if (parts.length < 2) return rows;
  return rows.sort((a, b) => {
    for (const key of keys) {
      const order = compare(key(a), key(b));
      if (order !== 0) return order;
    }
    return 0;
  });
}

function compare(a: string | number | null, b: string | number | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return Number(a) - Number(b);
}

/** The newest first. */
export const newest =
  <T>(at: (row: T) => string | null): SortKey<T> =>
  (row) => {
    const time = at(row);
    return time === null ? null : -Date.parse(time);
  };
