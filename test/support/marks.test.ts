/*
 * The list of marks is complete, and names tests that exist.
 */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { EXPECTED_MARKS } from './expectedMarks.ts';
import { gapMark, MarkCounts } from './marks.ts';

const ROOT = new URL('../..', import.meta.url).pathname;

/** The text of all sources of the product that match. */
const textOf = (pattern: string): string =>
  globSync(pattern, { cwd: ROOT, exclude: (name) => name.endsWith('.test.ts') })
    .map((file) => readFileSync(`${ROOT}/${file}`, 'utf8'))
    .join('\n');

test('every cause of a gap that is a text in the sources is a mark', () => {
  const agent = textOf('src/agent/**/*.ts');
  const spool = textOf('src/agent/spool/*.ts');
  const sql = textOf('{src,migrations}/**/*.sql');
  const scoped = [
    ...agent.matchAll(/(?:gaps|this)\.(?:open|recordClosed|addLoss)\('(\w+)', '(\w+)'/g),
    ...agent.matchAll(/gapUntilNow\(\w+, '(\w+)', '(\w+)'/g),
    ...agent.matchAll(/scope: '(\w+)', cause: '(\w+)'/g),
    ...sql.matchAll(/(?:SELECT|e\.epoch,|epoch,) '(seq|agent)', '(\w+)'/g),
  ].map(([, scope = '', cause = '']) => gapMark(scope, cause));
  const lost = [...spool.matchAll(/'(spool_\w+)'/g)].map(([, cause = '']) => gapMark('seq', cause));
  const closed = [...sql.matchAll(/close_cause = (?!NULL|null)[^\n]*/g)].flatMap(([line]) =>
    [...line.matchAll(/'(\w+)'/g)].map(([, cause]) => `repair epoch_${cause}`),
  );
  const marks = new Set([...scoped, ...lost, ...closed]);
  expect(marks.size).toBeGreaterThan(15);
  expect([...marks].filter((mark) => !EXPECTED_MARKS.has(mark))).toEqual([]);
});

test('a mark that no long test hits is in the test that it names', () => {
  for (const [mark, expectations] of EXPECTED_MARKS) {
    for (const each of expectations) {
      if (each.in !== 'elsewhere') continue;
      const words = (mark.split(' ').at(-1) ?? '').replace(/^(epoch|gap)_/, '').replaceAll('_', '_?');
      expect(readFileSync(`${ROOT}/${each.test}`, 'utf8'), mark).toMatch(new RegExp(`\\b${words}\\b`, 'i'));
    }
  }
});

test('a long test fails for a mark that it did not hit within its number of runs, and for one that nobody listed', () => {
  const all = [...EXPECTED_MARKS].flatMap(([mark, where]) =>
    where.some((each) => each.in === 'torture') ? [mark] : [],
  );
  const counts = new MarkCounts();
  counts.add(all.filter((mark) => mark !== 'gap agent died'));
  counts.add(['gap agent abducted']);
  expect(counts.report('torture', 1).problems).toEqual([
    'mark that expectedMarks.ts does not list: gap agent abducted',
  ]);
  expect(counts.report('torture', 100).problems).toEqual([
    'mark never hit: gap agent died',
    'mark that expectedMarks.ts does not list: gap agent abducted',
  ]);
  expect(counts.report('torture', 100).summary).toContain('gap agent abducted 1');
});
