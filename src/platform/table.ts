/*
 * Lines of words in columns, as kubectl prints them. Texts are of anybody's: they reach no terminal unescaped.
 */
import { printable } from './printable.ts';

/** kubectl's columns are at least 6 wide with a gap of 3, and absent values are empty. */
const MIN_WIDTH = 6;
const GAP = 3;

export type Cell = string | number | null | undefined;

/** The first row is the heading. */
export function tableText(rows: readonly (readonly Cell[])[]): string {
  const lines = rows.map((row) => row.map((cell) => printable(String(cell ?? ''))));
  const widths = (lines[0] ?? []).map((_, at) =>
    Math.max(MIN_WIDTH, ...lines.map((line) => [...(line[at] ?? '')].length + GAP)),
  );
  const last = widths.length - 1;
  return lines
    .map((line) => `${line.map((text, at) => (at === last ? text : pad(text, widths[at] ?? 0))).join('')}\n`)
    .join('');
}

/** kubectl counts characters, not bytes. */
const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - [...text].length));
