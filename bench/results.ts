/*
 * The output of a half of `make bench` in dist/bench for the docs: its tables in Markdown, and its plots.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './system.ts';

const DIR = join(ROOT, 'dist', 'bench');

/** Writes a file, in place of the one that a run before left. Returns its path. */
export function writeResult(file: string, content: string): string {
  mkdirSync(DIR, { recursive: true });
  const path = join(DIR, file);
  writeFileSync(path, content);
  return path;
}

/** Cores and their model. */
export const machine = (): string => `${cpus().length} cores (${cpus()[0]?.model.trim()})`;
