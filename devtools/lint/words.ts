/*
 * The lint rule for sentences: the concrete noun comes first. Prints each phrase of the given files that breaks it, and exits with 1 if there is one.
 * Sentences are those of Markdown outside titles and code, of comments, and the names of tests.
 */
import { readFileSync } from 'node:fs';

const RULE =
  'Begin with the concrete noun, not with "what", "who" or "of"; name the measure instead of "so long"; one "whose" a sentence.';

/** A comment of several lines is one text. A literal ends on its line, so that a quote in a regular expression hides nothing below it. */
const TEXTS: Readonly<Record<string, RegExp>> = {
  ts: /\/\*[\s\S]*?\*\/|\/\/.*(?:\n[ \t]*\/\/.*)*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\\n])*`/g,
  sql: /\/\*[\s\S]*?\*\/|'[^']*'|--.*(?:\n[ \t]*--.*)*/g,
  yaml: /(?<=^|\s)#.*(?:\n[ \t]*#.*)*|\{\{-?\s*\/\*[\s\S]*?\*\//gm,
  md: /[\s\S]+/g,
};
const TITLES_AND_CODE = /^[ \t]*(```+)[\s\S]*?^[ \t]*\1|^#+ .*/gm;
const COMMENT_MARKS = /^[ \t]*(?:\{\{-?\s*)?(?:\/\*+|\*+\/|\*(?!\*)|\/\/|--|#+)(?: -- )?|\s*\*\/$/gm;
const BEFORE_TEST_NAME = /(?:\b(?:describe|it|test)(?:\.\w+)*|\))\(\s*$/;
/** The end of a sentence, of a paragraph or of a table's cell, or the sign of an item. */
const BREAK = /[.!?][)"'*_]*\s+(?=[^a-z\s])|\n[ \t]*\n|\|[ \t]|^[ \t]*(?:[-*>]|\d+\.)[ \t]+/gm;

const REFUSED = [
  /^[\s*_("'[]*((?:what|whatever|who|whoever)\s+\w+)(?![\s\S]*\?[\s)"'*_]*$)/i,
  /^[\s*_("'[]*(of\s+(?!course)\w+)/i,
  /\b(so\s+(?:long|often|many\s+\w+))\b(?![^.,;:]*\sthat\b)/i,
  /\b(whose\b[\s\S]*\bwhose)\b/i,
];

/** The phrases of a file that break the rule. */
export function refusedPhrases(file: string, content: string): { line: number; phrase: string }[] {
  const kind = /\.(ts|sql|yaml|md)x?$/.exec(file)?.[1] ?? '';
  const texts = TEXTS[kind];
  if (texts === undefined) throw new Error(`${file} is neither Markdown nor TypeScript, SQL or YAML`);
  const readable = kind === 'md' ? content.replace(TITLES_AND_CODE, blank) : content;
  return [...readable.matchAll(texts)].flatMap(({ 0: text, index }) => {
    const isLiteral = kind !== 'md' && /^['"`]/.test(text);
    if (isLiteral && !BEFORE_TEST_NAME.test(content.slice(Math.max(0, index - 80), index))) return [];
    const words = isLiteral ? text.slice(1, -1) : text.replace(COMMENT_MARKS, blank);
    return phrasesOf(words).map(({ at, phrase }) => ({
      line: content.slice(0, index + at).split('\n').length,
      phrase: phrase.replace(/\s+/g, ' '),
    }));
  });
}

function phrasesOf(text: string): { at: number; phrase: string }[] {
  const starts = [0, ...[...text.matchAll(BREAK)].map((end) => end.index + end[0].length)];
  return starts.flatMap((start, n) => {
    const sentence = text.slice(start, starts[n + 1]);
    return REFUSED.flatMap((pattern) => {
      const phrase = pattern.exec(sentence)?.[1];
      return phrase === undefined ? [] : [{ at: start + sentence.indexOf(phrase), phrase }];
    });
  });
}

/** Keeps lines and positions. */
function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ');
}

if (import.meta.main) {
  const found = process.argv.slice(2).flatMap((file) => {
    const phrases = refusedPhrases(file, readFileSync(file, 'utf8'));
    return phrases.map(({ line, phrase }) => `${file}:${line}: "${phrase}"`);
  });
  if (found.length > 0) console.error([...found, RULE].join('\n'));
  process.exitCode = found.length > 0 ? 1 : 0;
}
