/*
 * The result of a run of the scenario, one file for each pair in dist/versions. After the last test they replace the rows of the same pairs in
 * devtools/versions/results.json, which the documents are generated from.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compareRuns, type PairRun, RESULTS_FILE, readResults } from '../../devtools/versions/results.ts';
import { ROOT } from '../support/build.ts';

const FOLDER = join(ROOT, 'dist', 'versions');

export function store(run: PairRun): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${idOf(run)}.json`), JSON.stringify(run));
}

/** The SHA-256 of a program, which a version alone does not identify. */
export const digestOf = (path: string): string =>
  `sha256:${createHash('sha256').update(readFileSync(path)).digest('hex')}`;

/** Vitest calls it before the first test, and what it returns after the last. Several runs may go on at once, each with other pairs. */
export default function setup(): () => void {
  return () => {
    if (!existsSync(FOLDER)) return;
    const files = readdirSync(FOLDER).map((name) => join(FOLDER, name));
    const run = files.map((file): PairRun => JSON.parse(readFileSync(file, 'utf8')));
    const ids = new Set(run.map(idOf));
    const kept = readResults().filter((one) => !ids.has(idOf(one)));
    const all = [...kept, ...run].sort(compareRuns);
    writeFileSync(RESULTS_FILE, `${JSON.stringify({ generatedBy: 'make versions', runs: all }, null, 2)}\n`);
    // Left there, it would replace a newer row another time.
    for (const file of files) rmSync(file);
  };
}

/** The last upgrade replaces the one before, by whatever steps it went. */
const idOf = ({ scenario, kubelet, containerd }: PairRun): string =>
  scenario === 'upgrade' ? scenario : `${scenario}-${kubelet}-${containerd}`;
