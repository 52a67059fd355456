/*
 * Rows that can be sorted by each column, and saved as CSV: all of them, in the order that is shown.
 */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { csvLine } from '../../../platform/csv.ts';
import { downloadText } from '../drawing/download.ts';
import { count } from '../text.ts';

type Value = string | number | null;

export interface Column<R> {
  readonly name: string;
  /** In the CSV. */
  readonly field: string;
  /** In the CSV, and by what it is sorted; null is last. */
  readonly value: (row: R) => Value;
  readonly cell: (row: R) => ComponentChildren;
  /** Text of its cells when somebody points at them. */
  readonly about?: (row: R) => string;
  readonly isNumber?: boolean;
}

interface Props<R> {
  readonly title: string;
  /** The name of its file, without a suffix. */
  readonly file: string;
  /** The first one names the row. */
  readonly columns: readonly Column<R>[];
  readonly rows: readonly R[];
}

const PAGE = 50;
const MORE = 200;

export function DataTable<R>({ title, file, columns, rows }: Props<R>) {
  const [shown, setShown] = useState(PAGE);
  const [order, setOrder] = useState<{ readonly by: number; readonly isDown: boolean }>();
  const by = order && columns[order.by];
  const sorted = by === undefined ? rows : sortedBy(rows, by.value, order?.isDown === true);
  const rest = rows.length - shown;
  const save = () => {
    const lines = [
      columns.map(({ field }) => field),
      ...sorted.map((row) => columns.map(({ value }) => value(row))),
    ];
    downloadText(`plegwatch-${file}.csv`, 'text/csv', lines.map(csvLine).join(''));
  };
  return (
    <section class="table" aria-label={title}>
      <h2>
        {title} <span class="number">{count(rows.length)}</span>
      </h2>
      <section class="scroll" aria-label={`Rows of ${title}`} tabIndex={0}>
        <table>
          <thead>
            <tr>
              {columns.map(({ name, isNumber }, at) => {
                const isDown = order?.by === at ? order.isDown : undefined;
                return (
                  <th
                    key={name}
                    scope="col"
                    class={isNumber ? 'number' : undefined}
                    aria-sort={isDown === undefined ? undefined : isDown ? 'descending' : 'ascending'}
                  >
                    <button type="button" onClick={() => setOrder({ by: at, isDown: isDown === false })}>
                      {name}
                      {isDown === undefined ? '' : isDown ? ' ↓' : ' ↑'}
                    </button>
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, shown).map((row, at) => (
              <tr key={at}>
                {columns.map(({ name, cell, about, isNumber }, column) =>
                  column === 0 ? (
                    <th key={name} scope="row">
                      {cell(row)}
                    </th>
                  ) : (
                    <td key={name} class={isNumber ? 'number' : undefined} title={about?.(row)}>
                      {cell(row)}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <p class="actions">
        {rest > 0 && (
          <button type="button" onClick={() => setShown(shown + MORE)}>
            Show {count(Math.min(MORE, rest))} more of {count(rest)}
          </button>
        )}
        <button type="button" class="small" onClick={save} aria-label={`${title} as CSV`}>
          CSV
        </button>
      </p>
    </section>
  );
}

function sortedBy<R>(rows: readonly R[], value: (row: R) => Value, isDown: boolean): R[] {
  const compare = (a: string | number, b: string | number) =>
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), 'en', { numeric: true });
  return [...rows].sort((a, b) => {
    const [first, second] = [value(a), value(b)];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return isDown ? compare(second, first) : compare(first, second);
  });
}
