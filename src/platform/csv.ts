/*
 * Lines of CSV, quoted as RFC 4180 says, for spreadsheets and databases. Null is an empty field, an empty text is "".
 *
 * A spreadsheet runs a text that begins with = + - or @ as a formula, also behind white space. Where its separator is a semicolon or a tab, which
 * depends on the language of its user, it splits a text there, quoted or not. Wherever a formula would begin in a text, which a node may have
 * sent, an apostrophe comes before it; a number has none.
 */

/** Looks back from what begins a formula: to look ahead from each of many line breaks would take their square. */
const FORMULA = /(?<=(?:^|[;\t\r\n])["\s]*)[=+\-@]/g;
const NUMBER = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/;

type CsvValue = string | number | boolean | null | undefined;

export function csvLine(values: readonly CsvValue[]): string {
  return `${values.map(field).join(',')}\n`;
}

function field(value: CsvValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const text = NUMBER.test(value) ? value : value.replaceAll(FORMULA, "'$&");
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
