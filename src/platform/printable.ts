/*
 * Texts for a terminal. Agents, runtimes, Redis, Postgres and the API server send texts that nobody has checked: what moves the cursor,
 * colours, hides or reorders the text around it is printed as an escape, such as \u001b.
 */
import { escapeControls } from './controlCharacters.ts';

/** A text on one line, without anything that a terminal obeys. Letters of every script stay. */
export const printable: (text: string) => string = escapeControls;

/** The lines of a text as {@link printable} ones. JSON stays the same JSON. */
export const printableLines = (text: string): string => text.split('\n').map(printable).join('\n');

/** How a part of a line looks on a terminal: codes of ECMA-48, SGR. */
const STYLES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36 } as const;
export type Style = keyof typeof STYLES;

/** A text of anybody's, printed in a style of ours. */
export interface StyledText {
  readonly text: string;
  readonly style?: Style | undefined;
}

/** A text as lines for {@link printStyled}. */
export const unstyled = (text: string): StyledText[][] => text.split('\n').map((line) => [{ text: line }]);

/** People see colours: standard output is a terminal, and they did not switch them off (no-color.org). */
const hasColours = (): boolean => process.stdout.isTTY === true && !process.env['NO_COLOR'];

function styledLine(parts: readonly StyledText[], isColoured: boolean): string {
  return parts
    .map(({ text, style }) => {
      const shown = printable(text);
      return style === undefined || !isColoured ? shown : `\u001b[${STYLES[style]}m${shown}\u001b[0m`;
    })
    .join('');
}

/** Prints lines of parts with their styles, where standard output is a terminal. */
export function printStyled(lines: readonly (readonly StyledText[])[]): void {
  const isColoured = hasColours();
  process.stdout.write(lines.map((parts) => `${styledLine(parts, isColoured)}\n`).join(''));
}

/** The way to standard output for texts without styles. */
export function print(text: string): void {
  process.stdout.write(printableLines(text));
}

/** A line for people on standard error. */
export function complain(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}
