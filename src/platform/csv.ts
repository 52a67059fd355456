/*
 * Lines of CSV, quoted as RFC 4180 says, for spreadsheets and databases. Null is an empty field, an empty text is "".
 *
 * A spreadsheet runs a text that begins with = + - or @ as a formula, also behind a tab or a carriage return. Such a text, which a node may
 * have sent, gets an apostrophe in front of it; a number does not.
 */

const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/;

type CsvValue = string | number | boolean | null | undefined;

export function csvLine(values: readonly CsvValue[]): string {
  return `${values.map(field).join(',')}\n`;
}

function field(value: CsvValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const text = FORMULA.test(value) && !NUMBER.test(value) ? `'${value}` : value;
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
