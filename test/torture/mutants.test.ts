import { transformSync } from 'esbuild';
import { expect, test } from 'vitest';
import { edited } from '../support/brokenTree.ts';
import { MUTANTS } from './mutants.ts';

test('every mutant still finds the source it edits, and leaves a program', () => {
  for (const { name, edits } of MUTANTS) {
    for (const text of edited(edits).values())
      expect(() => transformSync(text, { loader: 'ts' }), name).not.toThrow();
  }
});
