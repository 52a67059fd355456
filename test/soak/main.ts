/*
 * `make soak`: a real node for hours, with pods that come and go, restarts of every part, and events dropped at a known rate. An
 * independent witness at containerd says what happened, and another one at the kubelet what its own status showed; the account holds the
 * database against them.
 *
 *   --hours N        how long; 2 by default
 *   --drop SHARE     the share of events that the agent never gets; 0.02 by default
 *   --pods N         pods at a time; 6 by default
 *   --restart MIN    minutes from one restart to the next; 7 by default
 *   --seed N         which events are dropped and which part restarts; random by default
 *
 * Prints the figures so far every ten minutes. Exit code 0: nothing false, overlooked, lost or miscounted. 1: otherwise. 2: wrong usage.
 */
import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { waitingPod } from '../../devtools/localServices/pods.ts';
import { randomFor } from '../../devtools/simulator/random.ts';
import { podsOf } from '../../src/kube/object.ts';
import { messageOf } from '../../src/platform/errors.ts';
import { account, faultsOf, figuresOf, type SoakAccount } from './account.ts';
import { type StatusAccount, statusAccount, statusFaultsOf, statusFiguresOf } from './statusAccount.ts';
import { NODE, type SoakWorld, startSoakWorld } from './world.ts';

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '2' },
    drop: { type: 'string', default: '0.02' },
    pods: { type: 'string', default: '6' },
    restart: { type: 'string', default: '7' },
    seed: { type: 'string', default: String(randomInt(1, 1_000_000)) },
  },
});

function numberOf(name: keyof typeof values, max: number): number {
  const value = Number(values[name]);
  if (value > 0 && value <= max) return value;
  console.error(`--${name} must be a number above 0 and up to ${max}`);
  process.exit(2);
}

const HOURS = numberOf('hours', 1_000);
const OPTIONS = { seed: numberOf('seed', 1e9), drop: numberOf('drop', 1) };
const POD_COUNT = numberOf('pods', 100);
const RESTART_MS = numberOf('restart', 1e6) * 60_000;
/** How long a pod runs: every state is in several lists. */
const POD_SECONDS = 14;
const REPORT_MS = 600_000;
const PODS = podsOf('default');

console.log(
  `soak of ${HOURS} h, seed ${OPTIONS.seed}: ${POD_COUNT} pods at a time, ${OPTIONS.drop * 100} % of events dropped`,
);
const began = performance.now();
const world = await startSoakWorld(OPTIONS);
const restarts: string[] = [];
const failures: string[] = [];
const end = new AbortController();
process.once('SIGINT', () => end.abort());
process.once('SIGTERM', () => end.abort());
try {
  const busy = [restartParts(world), reportNowAndThen(world)];
  for (let i = 0; i < POD_COUNT; i += 1) busy.push(runPods(world, i));
  await wait(HOURS * 3_600_000);
  end.abort();
  await Promise.all(busy);
  await world.settled();
  const result = account(await world.evidence());
  const status = statusAccount(await world.status());
  print(result, status);
  const wrong = [...faultsOf(result), ...statusFaultsOf(status)];
  for (const fault of wrong) console.log(`  ${fault}`);
  process.exitCode = wrong.length > 0 ? 1 : 0;
} finally {
  await world.stop();
}

/** Ends early when the soak does. */
function wait(ms: number): Promise<void> {
  return delay(ms, undefined, { signal: end.signal }).catch(() => undefined);
}

/** Pods one after another, each of which runs for a while, ends by itself, and is deleted. */
async function runPods({ kube, containerd }: SoakWorld, worker: number): Promise<void> {
  for (let i = 1; !end.signal.aborted; i += 1) {
    const name = `worker-${worker}-${i}`;
    try {
      const image = containerd.importedImages.busybox;
      const pod = { name, node: NODE, image, seconds: POD_SECONDS, restartPolicy: 'Never' } as const;
      await kube.apply(PODS, waitingPod(pod));
      await wait((POD_SECONDS + 12) * 1_000);
      await kube.delete(PODS, name);
    } catch (error) {
      failures.push(`${name}: ${messageOf(error)}`);
      await wait(1_000);
    }
  }
}

/** One part at a time, drawn from the seed. */
async function restartParts({ agent, controller, restartContainerd, kubelet }: SoakWorld): Promise<void> {
  const parts: Readonly<Record<string, () => Promise<void>>> = {
    agent: () => agent.restart(),
    'agent, killed': async () => {
      await agent.kill();
      await agent.restart();
    },
    controller: () => controller.restart(),
    'controller, killed': async () => {
      await controller.kill();
      await controller.restart();
    },
    containerd: () => restartContainerd(false),
    kubelet: () => kubelet.restart(),
  };
  const random = randomFor(OPTIONS.seed, 'restarts');
  let next: string[] = [];
  for (;;) {
    await wait(RESTART_MS);
    if (end.signal.aborted) return;
    if (next.length === 0) next = random.shuffle(Object.keys(parts));
    const name = next.pop() ?? '';
    await parts[name]?.();
    restarts.push(name);
  }
}

async function reportNowAndThen(running: SoakWorld): Promise<void> {
  for (;;) {
    await wait(REPORT_MS);
    if (end.signal.aborted) return;
    print(account(await running.evidence()), statusAccount(await running.status()));
  }
}

/** Not yet judged drops count as overlooked until the last line. */
function print(result: SoakAccount, status: StatusAccount): void {
  const hours = ((performance.now() - began) / 3_600_000).toFixed(2);
  console.log(
    `hours ${hours}, ${figuresOf(result)}, ${statusFiguresOf(status)}, restarts ${restarts.length}, failed pods ${failures.length}`,
  );
}
