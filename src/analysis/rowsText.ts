/*
 * Rows of an answer as a table for people, as JSON, or as CSV. JSON and CSV have the names of SQL.
 */
import { csvLine } from '../platform/csv.ts';
import { type Cell, tableText } from '../platform/table.ts';

export const ROW_OUTPUTS = ['table', 'json', 'csv'] as const;
export type RowOutput = (typeof ROW_OUTPUTS)[number];

export interface ShownRows<R> {
  readonly fields: readonly (keyof R & string)[];
  /** The table, by heading. */
  readonly columns: Readonly<Record<string, (row: R) => Cell>>;
  /** Said instead of an empty table. */
  readonly empty: string;
}

export function rowsText<R extends object>(
  rows: readonly R[],
  output: RowOutput,
  { fields, columns, empty }: ShownRows<R>,
): string {
  if (output === 'json') return `${JSON.stringify(rows, null, 2)}\n`;
  if (output === 'csv')
    return [fields, ...rows.map((row) => fields.map((field) => csvValue(row[field])))].map(csvLine).join('');
  if (rows.length === 0) return `${empty}\n`;
  return tableText([
    Object.keys(columns),
    ...rows.map((row) => Object.values(columns).map((cell) => cell(row))),
  ]);
}

function csvValue(value: unknown): string | number | null {
  if (Array.isArray(value)) return value.join('; ');
  return typeof value === 'number' || value === null ? value : String(value);
}
