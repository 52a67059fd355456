/*
 * `make critest`: a workload that nobody here wrote. critest, the CRI's own validation tests, and pods with a random end run on a real
 * containerd, which is killed in the middle, as the agent is. The account holds the database against two independent witnesses.
 *
 *   --containerd V   2.1 or 2.4; both by default, one after the other
 *   --drop SHARE     the share of events that the agent never gets; none, then 1 of 40 by default
 *   --pods N         random pods; 200 by default
 *   --at-once N      how many of them at a time; 20 by default
 *   --focus REGEXP   only specs of critest with such a name; all by default
 *   --seed N         the order of the specs, and what the random pods do; random by default. Which events are dropped depends on the ids of
 *                    containers too, which are new in each run
 *
 * Exit code 0: every event is stored once, every miss is a drop, every drop is accounted for, and the audit finds no difference. The result of
 * critest on containerd is printed only. 1: otherwise. 2: wrong usage.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import type { ContainerdVersion } from '../../devtools/localServices/where.ts';
import { account, faultsOf, figuresOf } from '../soak/account.ts';
import { startWorld, type WorldOptions } from '../soak/world.ts';
import { leftovers } from '../support/leftovers.ts';
import { Kills } from './kills.ts';
import { runRandomPods } from './randomPods.ts';
import { CRITEST_IMAGES, type Spec, startSpecs } from './specs.ts';

const { values } = parseArgs({
  options: {
    containerd: { type: 'string', multiple: true, default: ['2.1', '2.4'] },
    drop: { type: 'string', multiple: true, default: ['0', '0.025'] },
    pods: { type: 'string', default: '200' },
    'at-once': { type: 'string', default: '20' },
    focus: { type: 'string', default: '.' },
    seed: { type: 'string', default: String(randomInt(1, 1_000_000)) },
  },
});

const VERSIONS: readonly ContainerdVersion[] = ['2.1', '2.4'];

function wrongUsage(message: string): never {
  console.error(message);
  process.exit(2);
}

function numberOf(flag: string, text: string, min: number, max: number): number {
  const value = Number(text);
  return value >= min && value <= max
    ? value
    : wrongUsage(`--${flag} must be a number from ${min} to ${max}`);
}

const versions = values.containerd.map(
  (name) =>
    VERSIONS.find((each) => each === name) ?? wrongUsage(`--containerd must be ${VERSIONS.join(' or ')}`),
);
const drops = values.drop.map((share) => numberOf('drop', share, 0, 1));
const seed = numberOf('seed', values.seed, 1, 1e9);
const count = numberOf('pods', values.pods, 1, 10_000);
const concurrency = numberOf('at-once', values['at-once'], 1, 100);
const { focus } = values;

for (const version of versions) {
  for (const drop of drops) {
    const began = performance.now();
    console.log(`critest on containerd ${version}, seed ${seed}: ${drop * 100} % of events dropped`);
    const faults = await runOnce({
      seed,
      drop,
      containerd: { version, podNetwork: true, images: CRITEST_IMAGES },
    });
    for (const fault of [...faults, ...leftovers()]) {
      console.log(`  ${fault}`);
      process.exitCode = 1;
    }
    console.log(`  took ${Math.round((performance.now() - began) / 1_000)} s`);
  }
}

async function runOnce(options: WorldOptions): Promise<string[]> {
  const world = await startWorld(options);
  try {
    const running = await startSpecs(world.containerd, { seed, focus });
    const kills = new Kills(world, running);
    const [specs, interrupted] = await Promise.all([
      running.ended(),
      runRandomPods(world.containerd, {
        seed,
        count,
        concurrency,
        onPod: (done) => kills.after(done / count),
      }),
    ]);
    await kills.done();
    await world.settled();
    const result = account(await world.evidence());
    const audit = await world.audit();
    printSpecs(specs, kills.at);
    console.log(`  ${figuresOf(result)}`);
    printInterrupted(interrupted);
    return [
      ...faultsOf(result),
      ...(audit.code === 0 ? [] : [`audit exited with ${audit.code}: ${audit.output}`]),
    ];
  } finally {
    await world.stop();
  }
}

function printSpecs(specs: readonly Spec[], killedAt: number): void {
  const by = (state: string) => specs.filter((spec) => spec.state === state);
  const failed = specs.filter(({ state }) => state !== 'passed' && state !== 'skipped');
  const isInterrupted = ({ from, to }: Spec) => from < killedAt && killedAt < to;
  console.log(
    `  critest: ${specs.length} specs, passed ${by('passed').length}, failed ${failed.length}, skipped ${by('skipped').length}`,
  );
  for (const spec of failed) {
    const what = isInterrupted(spec) ? 'interrupted by the kill of containerd' : spec.why.slice(0, 200);
    console.log(`    failed: ${spec.name}: ${what}`);
  }
  const skipped = Map.groupBy(by('skipped'), ({ why }) => why);
  for (const [why, those] of skipped) console.log(`    skipped ${those.length}: ${why || 'not selected'}`);
}

function printInterrupted(errors: readonly string[]): void {
  console.log(`  random pods: ${count}, interrupted ${errors.length}`);
  for (const [error, those] of Map.groupBy(errors, (error) => error.slice(0, 120))) {
    console.log(`    interrupted ${those.length}: ${error}`);
  }
}
