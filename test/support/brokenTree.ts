/*
 * A broken tree: a copy of this one with edits, to show that somebody notices.
 *
 * An edit that does not apply any more fails, for then nothing would be shown.
 */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type TemporaryFolder, temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';

/** In this file, from the root of the tree, the text `from`, which it has exactly once, becomes `to`. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The folders and files for building it, for running it and for its unit tests. */
const PARTS = ['src', 'devtools', 'migrations', 'crds', 'test', 'docs', 'package.json', 'LICENSE'];
const CONFIGURATION = ['build.mjs', 'tsconfig.json', 'vitest.config.ts'];

export function brokenTree(edits: readonly Edit[]): TemporaryFolder {
  const texts = edited(edits);
  const tree = temporaryFolder('mutant', undefined);
  for (const name of [...PARTS, ...CONFIGURATION])
    cpSync(join(ROOT, name), join(tree.dir, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(tree.dir, 'node_modules'));
  for (const [file, text] of texts) writeFileSync(join(tree.dir, file), text);
  return tree;
}

/** The files that are edited, as they are then, by name. Throws where an edit does not apply. */
export function edited(edits: readonly Edit[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const { file, from, to } of edits) {
    const text = texts.get(file) ?? readFileSync(join(ROOT, file), 'utf8');
    if (text.split(from).length !== 2) throw new Error(`${file} has not exactly one ${JSON.stringify(from)}`);
    texts.set(
      file,
      text.replace(from, () => to),
    );
  }
  return texts;
}
