import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { UNOBSERVABLE_CAUSES } from './unobservableReason.ts';

const page = readFileSync(new URL('../../../docs/explanation/missed-events.md', import.meta.url), 'utf8');

test('docs/explanation/missed-events.md says of each cause of an unobservable finding what it means and what to do', () => {
  const table =
    /^\| cause \| what happened \| what to do \|\n\| --- .*\n((?:\|.*\n)+)/m.exec(page)?.[1] ?? '';
  const rows = table
    .trim()
    .split('\n')
    .map((row) => row.split(' | '));
  const documented = rows.flatMap(([causes]) =>
    [...(causes ?? '').matchAll(/`(\w+)`/g)].map(([, cause]) => cause),
  );
  expect(documented.toSorted()).toEqual(UNOBSERVABLE_CAUSES.toSorted());
  for (const cells of rows)
    expect(
      cells.every((cell) => cell.length > 3),
      cells.join(' | '),
    ).toBe(true);
});
