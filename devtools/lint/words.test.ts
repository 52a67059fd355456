/*
 * The lint rule for sentences that begin with the concrete noun, on good and bad ones.
 */
import { expect, test } from 'vitest';
import { refusedPhrases } from './words.ts';

const phrases = (file: string, content: string) => refusedPhrases(file, content).map(({ phrase }) => phrase);

test.each([
  ['What is lost stays lost.', ['What is']],
  ['Records are kept. Whatever fails, none is lost.', ['Whatever fails']],
  ['(Who reads may ask.)', ['Who reads']],
  ['Nothing is kept. *Whoever asks* is told.', ['Whoever asks']],
  ['Of a new node nothing is known.', ['Of a']],
  ['- of two agents one leads', ['of two']],
  ['| agent | what it needs |', ['what it']],
  ['It waits for so long and no longer.', ['so long']],
  ['It is read so often at most, by so many readers.', ['so often']],
  ['A node whose agent has a key whose time is over is refused.', ['whose agent has a key whose']],
])(
  'a sentence with a clause in place of its noun, or with a bare measure, is refused: %s',
  (text, expected) => {
    expect(phrases('a.md', `${text}\n`)).toEqual(expected);
  },
);

test.each([
  'What is lost? Records that no disk had.',
  'The cost is what a relist takes.',
  'Of course it ends.',
  'It took so long that a retry came, and so many bytes that the disk was full.',
  'A node whose agent ended. An agent whose node ended.',
  '# What it costs',
  '```sh\n# What it costs\n```',
  'It waits, e.g. what Postgres calls idle.',
])('a sentence that begins with its noun, a question, a title and code are accepted: %s', (text) => {
  expect(phrases('a.md', `${text}\n`)).toEqual([]);
});

test.each([
  ['a.ts', '/** What it costs. */'],
  ['a.ts', '/*\n * The cost.\n * What it costs.\n */'],
  ['a.tsx', 'call(); // what it\n// costs'],
  ['a.ts', "test('what it costs', run);"],
  ['a.ts', 'describe("what it costs", run);'],
  ['a.ts', 'it.each([1])(\n  `what it costs`,'],
  ['a.ts', "needs('root')('what it costs', run);"],
  ['a.ts', "const quote = /'/;\n// What it costs."],
  ['a.sql', "SELECT 'no -- what'; -- What it costs."],
  ['a.yaml', 'cost: 1 # What it costs.'],
  ['a.yaml', '# -- What it costs.'],
  ['a.yaml', '{{- /* What it costs. */ -}}'],
])('comments and names of tests are read: %s, %j', (file, content) => {
  expect(phrases(file, content).map((phrase) => phrase.toLowerCase())).toEqual(['what it']);
});

test.each([
  ['a.ts', "const title = 'What it costs';"],
  ['a.sql', "SELECT 'What it costs'"],
  ['a.yaml', 'title: What it costs'],
])('texts of the program are not read: %s, %s', (file, content) => {
  expect(phrases(file, content)).toEqual([]);
});

test('a phrase is reported with its line', () => {
  const content = '/*\n * The cost.\n *\n * All of it. What\n * it costs. Of it\n * nothing.\n */';
  expect(refusedPhrases('a.ts', content)).toEqual([
    { line: 4, phrase: 'What it' },
    { line: 5, phrase: 'Of it' },
  ]);
});

test('a file of another kind is an error', () => {
  expect(() => refusedPhrases('a.go', '')).toThrow('a.go is neither');
});
