/*
 * The command line of the loss checker: runs schedules of random faults on a whole system and checks its records.
 *
 *   --seed N         seed of the first schedule, plus 1 for each further one; random by default
 *   --schedules N    number of schedules
 *   --faults N       faults in each schedule
 *   --nodes N        agents
 *   --every MS       average time between two faults
 *   --root DIR       the checkout whose dist/ is tested; this one by default
 *   --settle MS      how long the remaining records may take to arrive after the last fault
 *   --forgetful N    the last N nodes delete acknowledged records at once
 *   --operations N   how many an attacker does beside all schedules together
 *   --order ORDER    that a failed run has printed: faults begin and end in this order again
 *   --quiet          print one line per schedule
 *
 * Exit code 0: no record lost, unexpected or duplicated, no gap unexplained, no hour miscounted, no
 * period undeclared, no kubelet falsely accused or falsely said to be watched, and every mark hit that a run of its length must hit. 1: otherwise.
 * 2: wrong usage.
 */

import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { MarkCounts } from '../support/marks.ts';
import { PROBLEM_CLASSES } from './checker.ts';
import { LimitedDisk } from './disk.ts';
import { orderText, parseOrder, type Step, stepText } from './order.ts';
import { type Outcome, runSchedule } from './run.ts';
import { describeFault, type FaultKind, type ScheduleOptions, scheduleOf } from './schedule.ts';
import { ROOT } from './world.ts';

const MAX_LISTED = 20;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    schedules: { type: 'string', default: '1' },
    faults: { type: 'string', default: '24' },
    nodes: { type: 'string', default: '3' },
    every: { type: 'string', default: '1200' },
    settle: { type: 'string', default: '240000' },
    forgetful: { type: 'string', default: '1' },
    operations: { type: 'string', default: '2000' },
    order: { type: 'string' },
    root: { type: 'string', default: ROOT },
    quiet: { type: 'boolean', default: false },
  },
});

type Numeric = 'schedules' | 'faults' | 'nodes' | 'every' | 'settle' | 'forgetful' | 'operations' | 'seed';

const number = (name: Numeric, min = 1, otherwise = 0): number => {
  const value = Number(values[name] ?? otherwise);
  if (Number.isSafeInteger(value) && value >= min) return value;
  return wrongUsage(`--${name} must be an integer of at least ${min}`);
};

function wrongUsage(message: string): never {
  console.error(message);
  process.exit(2);
}

const first = number('seed', 1, randomInt(1, 1_000_000));
const totals = { schedules: 0, faults: 0, attempted: 0, stored: 0, lost: 0, unexpected: 0, duplicated: 0 };
const failed: number[] = [];
const marks = new MarkCounts();

const without = new Set<FaultKind>();
const noDisk = await LimitedDisk.whyNot();
if (noDisk !== null) {
  without.add('full disk');
  console.log(`no schedule has a full disk: ${noDisk}`);
}

for (let seed = first; seed < first + number('schedules'); seed += 1) {
  const options = {
    ...{ seed, faults: number('faults'), nodes: number('nodes'), everyMs: number('every') },
    ...{ controllers: 2, without },
  };
  console.log(`schedule ${seed}: ${options.faults} faults, ${options.nodes} nodes`);
  const outcome = await runSchedule({
    ...options,
    forgetful: new Set(Array.from({ length: number('forgetful', 0) }, (_, i) => options.nodes - 1 - i)),
    operations: Math.ceil(number('operations') / number('schedules')),
    settlesWithinMs: number('settle'),
    root: values.root,
    wanted: wantedOrder(options),
    log: values.quiet ? () => undefined : console.log,
  });
  marks.add(outcome.marks);
  printOutcome(seed, outcome);
}
console.log(`total: ${figures(totals)}`);
const { summary, problems } = marks.report('torture', totals.schedules);
console.log(summary);
for (const problem of problems) console.log(`FAILED: ${problem}`);
if (failed.length > 0) console.log(`failed schedules, to repeat with --seed: ${failed.join(', ')}`);
process.exitCode = failed.length + problems.length > 0 ? 1 : 0;

function wantedOrder(schedule: ScheduleOptions): readonly Step[] | null {
  if (values.order === undefined) return null;
  const order = parseOrder(values.order, scheduleOf(schedule).length);
  return (
    order ??
    wrongUsage(
      `--order must begin and end every fault of schedule ${schedule.seed} once, as a failed run prints it`,
    )
  );
}

function printOutcome(
  seed: number,
  { result, events, order, failures, comparisons, seconds, logs }: Outcome,
): void {
  const { attempted, stored, declared, undetermined, late, claims, lags } = result;
  const counts = Object.fromEntries(PROBLEM_CLASSES.map((name) => [name, result[name].length]));
  totals.schedules += 1;
  totals.faults += events.length;
  totals.attempted += attempted;
  totals.stored += stored;
  totals.lost += result.lost.length;
  totals.unexpected += result.unexpected.length;
  totals.duplicated += result.duplicated.length;
  const checked = { late, claims, lags, replies: comparisons };
  const all = { attempted, stored, declared, undetermined, ...counts, ...checked };
  console.log(`  ${figures(all)}; ${Math.round(seconds)} s`);
  if (result.problems.length === 0 && failures.length === 0) return;
  failed.push(seed);
  console.log(`  FAILED: ${[...result.problems, ...failures].join('; ')}`);
  for (const name of PROBLEM_CLASSES) {
    for (const each of result[name].slice(0, MAX_LISTED)) console.log(`    ${name}: ${each}`);
  }
  for (const step of order) {
    const event = events[step.fault];
    if (event !== undefined) console.log(`    ${stepText(step)} ${describeFault(event.fault)}`);
  }
  console.log(`  to repeat: --seed ${seed} --order '${orderText(order)}'`);
  for (const log of logs) console.log(log);
}

function figures(all: Readonly<Record<string, number>>): string {
  return Object.entries(all)
    .map(([name, n]) => `${name} ${n}`)
    .join(', ');
}
