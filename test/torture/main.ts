/*
 * The loss checker, from the command line: schedules of random faults on a whole system, and what came of its records.
 *
 *   --seed N         the first schedule's seed; the next ones count on from there. Random when left out
 *   --schedules N    how many
 *   --faults N       in each
 *   --nodes N        agents
 *   --every MS       from one fault to the next, on average
 *   --root DIR       the checkout whose dist/ is tormented; this one when left out
 *   --settle MS      how long what is due may take to arrive when nothing is broken any more
 *   --forgetful N    so many of the nodes, the last ones, delete what is acknowledged at once
 *   --quiet          one line a schedule
 *
 * Exit code 0: nothing lost, nothing unexpected, nothing twice, nothing unexplained. 1: not so. 2: wrong usage.
 */

import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { LimitedDisk } from './disk.ts';
import { type Outcome, runSchedule } from './run.ts';
import type { FaultKind } from './schedule.ts';
import { ROOT } from './world.ts';

const MOST_SHOWN = 20;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    schedules: { type: 'string', default: '1' },
    faults: { type: 'string', default: '24' },
    nodes: { type: 'string', default: '3' },
    every: { type: 'string', default: '1200' },
    settle: { type: 'string', default: '60000' },
    forgetful: { type: 'string', default: '1' },
    root: { type: 'string', default: ROOT },
    quiet: { type: 'boolean', default: false },
  },
});

type Numeric = 'schedules' | 'faults' | 'nodes' | 'every' | 'settle' | 'forgetful' | 'seed';

const number = (name: Numeric, least = 1, otherwise = 0): number => {
  const value = Number(values[name] ?? otherwise);
  if (Number.isSafeInteger(value) && value >= least) return value;
  console.error(`--${name} must be a whole number from ${least}`);
  process.exit(2);
};

const first = number('seed', 1, randomInt(1, 1_000_000));
const totals = { schedules: 0, faults: 0, attempted: 0, stored: 0, lost: 0, unexpected: 0, duplicated: 0 };
const failed: number[] = [];

const without = new Set<FaultKind>();
const noDisk = await LimitedDisk.whyNot();
if (noDisk !== null) {
  without.add('full disk');
  console.log(`no schedule has a full disk: ${noDisk}`);
}

for (let seed = first; seed < first + number('schedules'); seed += 1) {
  const options = { seed, faults: number('faults'), nodes: number('nodes'), everyMs: number('every') };
  console.log(`schedule ${seed}: ${options.faults} faults, ${options.nodes} nodes`);
  const outcome = await runSchedule({
    ...options,
    controllers: 2,
    without,
    forgetful: new Set(Array.from({ length: number('forgetful', 0) }, (_, i) => options.nodes - 1 - i)),
    settlesWithinMs: number('settle'),
    root: values.root,
    say: values.quiet ? () => undefined : console.log,
  });
  tell(seed, outcome);
}
console.log(`in all: ${figures(totals)}`);
if (failed.length > 0) console.log(`schedules that failed, each again with --seed: ${failed.join(', ')}`);
process.exitCode = failed.length > 0 ? 1 : 0;

function tell(seed: number, { verdict, events, failures, looks, seconds, logs }: Outcome): void {
  const { attempted, stored, declared, undetermined } = verdict;
  const lists = ['lost', 'unexpected', 'duplicated', 'unexplained', 'premature'] as const;
  const counts = Object.fromEntries(lists.map((name) => [name, verdict[name].length]));
  totals.schedules += 1;
  totals.faults += events.length;
  totals.attempted += attempted;
  totals.stored += stored;
  totals.lost += verdict.lost.length;
  totals.unexpected += verdict.unexpected.length;
  totals.duplicated += verdict.duplicated.length;
  const all = { attempted, stored, declared, undetermined, ...counts, replies: looks };
  console.log(`  ${figures(all)}; ${Math.round(seconds)} s`);
  if (verdict.problems.length === 0 && failures.length === 0) return;
  failed.push(seed);
  console.log(`  FAILED: ${[...verdict.problems, ...failures].join('; ')}`);
  for (const name of lists) {
    for (const each of verdict[name].slice(0, MOST_SHOWN)) console.log(`    ${name}: ${each}`);
  }
  for (const log of logs) console.log(log);
}

function figures(all: Readonly<Record<string, number>>): string {
  return Object.entries(all)
    .map(([name, n]) => `${name} ${n}`)
    .join(', ');
}
