import { transformSync } from 'esbuild';
import { expect, test } from 'vitest';
import { edited } from '../../support/brokenTree.ts';
import { MUTANTS } from './rules.ts';

test('every mutant still finds the source it edits, and leaves a program', () => {
  for (const { name, edits } of MUTANTS) {
    const texts = edited(edits);
    expect([...texts.keys()], name).toHaveLength(new Set(edits.map(({ file }) => file)).size);
    for (const text of texts.values())
      expect(() => transformSync(text, { loader: 'ts' }), name).not.toThrow();
  }
});
