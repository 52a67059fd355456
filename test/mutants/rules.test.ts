import { expect, test } from 'vitest';
import { edited } from '../support/brokenTree.ts';
import { MUTANTS } from './rules.ts';

test.each(MUTANTS)('there is still something to break: $name', ({ edits }) => {
  expect([...edited(edits).keys()]).toHaveLength(new Set(edits.map(({ file }) => file)).size);
});
