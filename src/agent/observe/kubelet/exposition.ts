/*
 * The Prometheus text format, read line by line: only wanted samples are parsed. An exemplar or a timestamp after a value is skipped.
 */

export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  /** May be NaN or infinite: the format allows both. Null if the line is malformed after its name. */
  readonly value: number | null;
}

/** No sample of a kubelet comes near this length; longer lines are malformed. */
const MAX_LINE_LENGTH = 65_536;
const NO_LABELS: ReadonlyMap<string, string> = new Map();

const NAME = /[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*)/y;
const OPEN = /[ \t]*\{/y;
const LABEL = /[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(,?)/y;
const CLOSE = /[ \t]*\}/y;
const VALUE = /[ \t]+([^ \t\r]+)(?:[ \t]+-?[0-9]+(?:\.[0-9]+)?)?(?:[ \t]+#.*)?[ \t\r]*$/y;
const VALUE_AFTER_LABELS = new RegExp(VALUE.source.replace('[ \\t]+', '[ \\t]*'), 'y');
const DECIMAL = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
const NUMBER_WORDS: Readonly<Record<string, number>> = {
  inf: Number.POSITIVE_INFINITY,
  '+inf': Number.POSITIVE_INFINITY,
  '-inf': Number.NEGATIVE_INFINITY,
  nan: Number.NaN,
};

/** The wanted samples of a text, in order. Never throws, whatever the text is. */
export function* samplesOf(text: string, wanted: (name: string) => boolean): Generator<Sample> {
  let at = 0;
  while (at < text.length) {
    const newline = text.indexOf('\n', at);
    const end = newline === -1 ? text.length : newline;
    // Most lines are not wanted, so nothing is sliced for them.
    NAME.lastIndex = at;
    const name = NAME.exec(text)?.[1];
    if (name !== undefined && wanted(name)) yield readLine(name, text.slice(NAME.lastIndex, end));
    at = end + 1;
  }
}

/** `line` is what follows the name. */
function readLine(name: string, line: string): Sample {
  const malformed = { name, labels: NO_LABELS, value: null };
  if (line.length > MAX_LINE_LENGTH) return malformed;
  OPEN.lastIndex = 0;
  if (!OPEN.test(line)) return { name, labels: NO_LABELS, value: readValue(line, 0, VALUE) };
  const read = readLabels(line, OPEN.lastIndex);
  if (read === null) return malformed;
  return { name, labels: read.labels, value: readValue(line, read.end, VALUE_AFTER_LABELS) };
}

function readLabels(line: string, from: number): { labels: Map<string, string>; end: number } | null {
  const labels = new Map<string, string>();
  let at = from;
  let more = true;
  while (more) {
    LABEL.lastIndex = at;
    const [, name, value, comma] = LABEL.exec(line) ?? [];
    if (name === undefined || value === undefined) break;
    // With a label given twice the line would have two meanings.
    if (labels.has(name)) return null;
    labels.set(name, unescaped(value));
    at = LABEL.lastIndex;
    more = comma === ',';
  }
  CLOSE.lastIndex = at;
  return CLOSE.test(line) ? { labels, end: CLOSE.lastIndex } : null;
}

function readValue(line: string, at: number, pattern: RegExp): number | null {
  pattern.lastIndex = at;
  const text = pattern.exec(line)?.[1];
  if (text === undefined) return null;
  if (DECIMAL.test(text)) return Number(text);
  return NUMBER_WORDS[text.toLowerCase()] ?? null;
}

const unescaped = (text: string): string =>
  text.replaceAll(/\\(.)/g, (whole, c: string) => (c === 'n' ? '\n' : c === '"' || c === '\\' ? c : whole));
