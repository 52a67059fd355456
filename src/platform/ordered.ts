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

/** The newest first, to the microsecond. */
export const newest =
  <T>(at: (row: T) => string | null): SortKey<T> =>
  (row) => {
    const time = at(row);
    if (time === null) return null;
    const micros = /\.\d{3}(\d{1,3})/.exec(time)?.[1] ?? '';
    return -(Date.parse(time) * 1000 + Number(micros.padEnd(3, '0')));
  };
