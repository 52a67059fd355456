/*
 * Lines of CSV, quoted as RFC 4180 says, for spreadsheets and databases. Null is an empty field, an empty text is "".
 *
 * A spreadsheet runs a text that begins with = + - or @ as a formula, also behind white space. Where its separator is a semicolon or a tab, which
 * depends on the language of its user, it splits a text there, quoted or not. Wherever a formula would begin in a text, which a node may have
 * sent, an apostrophe comes before it; a number has none.
 *
 * Characters that a terminal obeys, or that hide or turn the text around them, are written as \uXXXX, apart from line breaks and tabs. A backslash
 * that begins such an escape in the text itself is \u005c, so that whoever replaces every escape by its character has the text again.
 */
import { escapeControls } from './controlCharacters.ts';

/** Looks back from what begins a formula: to look ahead from each of many line breaks would take their square. */
const FORMULA = /(?<=(?:^|[;\t\r\n])["\s]*)[=+\-@]/g;
const ESCAPE = /\\(?=u[0-9a-f]{4})/g;
const NUMBER = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/;

type CsvValue = string | number | boolean | null | undefined;

export function csvLine(values: readonly CsvValue[]): string {
  return `${values.map(field).join(',')}\n`;
}

function field(value: CsvValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const text = NUMBER.test(value) ? value : harmless(value.replaceAll(FORMULA, "'$&"));
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const harmless = (text: string): string =>
  text.replaceAll(ESCAPE, '\\u005c').replaceAll(/[^\n\t]+/g, escapeControls);
