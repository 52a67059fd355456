import { transformSync } from 'esbuild';
import { expect, test } from 'vitest';
import { edited } from '../../support/brokenTree.ts';
import { MUTANTS } from './rules.ts';

test.each(MUTANTS)('there is still something to break, and what is left is a program: $name', ({ edits }) => {
  const texts = edited(edits);
  expect([...texts.keys()]).toHaveLength(new Set(edits.map(({ file }) => file)).size);
  for (const text of texts.values()) expect(() => transformSync(text, { loader: 'ts' })).not.toThrow();
});
