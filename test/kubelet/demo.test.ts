/*
 * `make demo`, as a user runs it: what it prints, what it says where it can run less, and that it leaves nothing on the machine, however it ends.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { CHECKOUT, DEV_CLI } from '../../devtools/checkout.ts';
import { kubeletTraces, leftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { KUBELET_NEEDS, RUNTIME_NEEDS } from '../support/systemBed.ts';

const TIMEOUT_MS = 1_200_000;
const CONTAINERD = ['containerd-2.1', 'image-pause', 'image-busybox'] as const;

async function demo(...args: readonly string[]): Promise<string> {
  const before = kubeletTraces();
  const run = promisify(execFile)(process.execPath, [DEV_CLI, 'demo', '--once', ...args]);
  const { stdout } = await run;
  expect(leftovers(run.child.pid)).toEqual([]);
  expect(kubeletTraces()).toEqual(before);
  return stdout;
}

/** The lines from the table's head to the next empty line, each with the columns that do not change from run to run. */
function modesIn(text: string): string[] {
  const lines = text.split('\n');
  const from = lines.findIndex((line) => /^NAME +MODE +STREAM /.test(line));
  const table = lines.slice(from);
  return table
    .slice(
      0,
      table.findIndex((line) => !/^\S/.test(line) || line.startsWith('```')),
    )
    .map((line) => line.split(/ +/).slice(0, 3).join(' '));
}

needs(...KUBELET_NEEDS, ...CONTAINERD)('the demo with real kubelets', () => {
  test('shows one that is Evented, one that fell back, a missed event with its proof, and the page', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const printed = await demo();
    expect(modesIn(printed)).toEqual([
      'NAME MODE STREAM',
      'worker-healthy Evented Active',
      'worker-lossy Unknown Active',
      'worker-restarted Fallback Active',
      'worker-unsafe Unknown Unsafe',
    ]);
    expect(printed).toMatch(/^demo +worker-restarted .* Fallback .* StreamBroke/m);
    expect(printed).toMatch(/mode +the kubelet's PLEG: Evented -> Fallback \(StreamBroke/);
    expect(printed).toMatch(/^missed [A-Z]+ /m);
    expect(printed).toContain('Why nothing else explains it');
    expect(printed).toMatch(/^The page in a browser, \S+, answers with 200\./m);
    expect(printed).not.toContain('skipped');

    expect(modesIn(readFileSync(join(CHECKOUT, 'README.md'), 'utf8'))).toEqual(modesIn(printed));
  });

  test.each(['starting two real kubelets', 'restarting the containerd of worker-restarted'])(
    'leaves nothing behind if it is interrupted while %s',
    { timeout: TIMEOUT_MS },
    async (step) => {
      const before = kubeletTraces();
      const run = spawn(process.execPath, [DEV_CLI, 'demo', '--once'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const ended = once(run, 'exit');
      let isReached = false;
      for await (const line of createInterface({ input: run.stdout })) {
        if (!line.includes(step)) continue;
        isReached = true;
        run.kill('SIGINT');
      }
      expect(await ended).toEqual([0, null]);
      expect(isReached).toBe(true);
      expect(leftovers(run.pid)).toEqual([]);
      expect(kubeletTraces()).toEqual(before);
    },
  );
});

needs(...RUNTIME_NEEDS, ...CONTAINERD)('the demo without an API server', () => {
  test('says in one line that there are no kubelets and why, and shows the other nodes', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const printed = await demo('--no-kube');
    expect(printed.split('\n').filter((line) => line.includes('skipped'))).toEqual([
      expect.stringMatching(
        /skipped: real kubelets, so that MODE is Unknown and no node falls back: there is no API server$/,
      ),
    ]);
    expect(modesIn(printed)).toEqual([
      'NAME MODE STREAM',
      'worker-healthy Unknown Active',
      'worker-lossy Unknown Active',
      'worker-unsafe Unknown Unsafe',
    ]);
    expect(printed).toMatch(/^missed [A-Z]+ /m);
  });
});
