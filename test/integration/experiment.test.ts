/*
 * The experiment that compares Evented and Generic PLEG, in its shortest form: what it prints, and what it refuses.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { leftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';

const PROGRAM = new URL('../../bench/experiment/main.ts', import.meta.url).pathname;

const experiment = (...args: readonly string[]) => promisify(execFile)(process.execPath, [PROGRAM, ...args]);

describe('the options of the experiment', () => {
  it.each([
    [['--pods', '10,5'], '--pods must rise from number to number'],
    [['--pods', '111'], '--pods must be a whole number from 1 to 110, not 111'],
    [['--pods', ''], '--pods must be a whole number from 1 to 110, not '],
    [['--windows', '1'], '--windows must be a whole number from 2 to 1000, not 1'],
    [['--seconds', '0.5'], '--seconds must be a whole number from 1 to 86400, not 0.5'],
  ])('%j are refused with exit code 2 and the reason', async (args, reason) => {
    await expect(experiment(...args)).rejects.toMatchObject({ code: 2, stderr: `${reason}\n` });
  });
});

needs(
  'root',
  'containerd-2.1',
  'runc',
  'kubelet',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('the experiment', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'plegwatch-experiment-test-'));
  });
  afterAll(() => {
    rmSync(dir, { recursive: true });
  });

  it('measures two real nodes of which one runs Evented PLEG, and prints a table and a plot', async () => {
    const plot = join(dir, 'folder', 'plot.svg');
    const short = ['--pods', '1,2', '--windows', '2', '--seconds', '3', '--settle', '0', '--plot', plot];
    const run = experiment(...short);
    const { stdout } = await run;
    expect(leftovers(run.child.pid)).toEqual([]);
    const rows = stdout.split('\n').filter((line) => /^\| \d/.test(line));
    expect(rows.map((row) => row.split(' | ').slice(0, 2))).toEqual([
      ['| 1', 'containerd'],
      ['| 1', 'kubelet'],
      ['| 2', 'containerd'],
      ['| 2', 'kubelet'],
    ]);
    for (const row of rows)
      expect(row).toMatch(/(\| -?[\d.]+ ± [\d.]+ ){3}\| -?[\d.]+ ± [\d.]+ % \| \d+ % \|$/);
    expect(stdout).toMatch(/^1 pods: [\d.]+ ± [\d.]+ relists a minute with the gate off, /m);
    expect(readFileSync(plot, 'utf8')).toContain('containerd, 2 pods');
  });
});
