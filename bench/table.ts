/*
 * Figures with their budgets, as a table: for a terminal, and in Markdown for the docs.
 */
export interface TableRow {
  readonly what: string;
  readonly figure: string;
  /** Left out where the figure only explains another one. */
  readonly budget?: string;
  /** Null where it could not be measured here. */
  readonly met?: boolean | null;
}

export function printed(rows: readonly TableRow[]): string {
  const cells = cellsOf(rows);
  const widths = [0, 1, 2].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

/** Rows that explain another one are indented in `what`; Markdown would drop that. */
export function markdown(rows: readonly TableRow[]): string {
  const [head = [], ...body] = cellsOf(rows).map((cells) =>
    cells.map((cell) => cell.replace(/^ +/, '· ').replaceAll('|', '\\|')),
  );
  return [head, head.map(() => '---'), ...body].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

const cellsOf = (rows: readonly TableRow[]): string[][] => [
  ['what', 'figure', 'budget', 'result'],
  ...rows.map(({ what, figure, budget, met }) => [what, figure, budget ?? '', resultOf(met)]),
];

function resultOf(met: boolean | null | undefined): string {
  if (met === undefined) return '';
  if (met === null) return 'not measured';
  return met ? 'met' : 'MISSED';
}
