/*
 * A node's kubelet and runtime are replaced under a running agent, one minor version after the other, and pods run in between. Each downtime is a gap that
 * encloses it; the history says since when which version ran; nothing is said of one version that was another's.
 */
import { beforeAll, expect, test } from 'vitest';
import { where } from '../../devtools/localServices/where.ts';
import type { TriedContainerd, TriedKubelet } from '../../devtools/versions/pairs.ts';
import type { Situation } from '../../devtools/versions/results.ts';
import { has, needs } from '../support/needs.ts';
import { metric } from '../support/system.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { KUBELETS, MODES } from './facts.ts';
import { digestOf, store } from './results.ts';
import { minorOf, programOf, Stage, versionOf } from './stage.ts';

const TIMEOUT_MS = 3_600_000;
const CLOCKS_MS = 1_000;
/** Those that this machine has; what ran is in the result. */
const KUBELET_STEPS = (['1.33', '1.36', '1.37'] as const).filter((step) => has(programOf(step)));
const RUNTIME_STEPS = (['2.1', '2.2', '2.3', '2.4'] as const).filter((step) => has(`containerd-${step}`));
const [FIRST_KUBELET = '1.33'] = KUBELET_STEPS;
const [FIRST_RUNTIME = '2.1'] = RUNTIME_STEPS;

/** When a version was surely down, and when its successor surely ran. */
interface Step {
  readonly version: string;
  readonly down: number;
  readonly up: number;
}

interface Versioned extends Record<string, unknown> {
  readonly kubelet: string | null;
  readonly runtime: string | null;
  readonly at: number;
  readonly what: string;
}

const bed = new SystemBed({ kube: true });

needs(...KUBELET_NEEDS, `containerd-${FIRST_RUNTIME}`)('an upgrade', () => {
  beforeAll(async () => {
    await bed.system.kubectl('create', 'serviceaccount', 'default');
  });

  test('of kubelet and runtime under a running agent leaves gaps of exactly its downtimes, and a history that says which version ran when', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const began = performance.now();
    const situations: Situation[] = [];
    let passed = false;
    try {
      await upgrade(situations);
      passed = true;
    } finally {
      store({
        scenario: 'upgrade',
        kubelet: KUBELET_STEPS.join(' → '),
        containerd: RUNTIME_STEPS.join(' → '),
        versions: {
          kubelet: await Promise.all(KUBELET_STEPS.map((step) => versionOf(programOf(step)))),
          containerd: await Promise.all(RUNTIME_STEPS.map((step) => versionOf(`containerd-${step}`))),
        },
        digests: {
          kubelet: KUBELET_STEPS.map((step) => digestOf(where(programOf(step)))),
          containerd: RUNTIME_STEPS.map((step) => digestOf(where(`containerd-${step}`))),
        },
        date: new Date().toISOString().slice(0, 10),
        seconds: Math.round((performance.now() - began) / 1_000),
        passed,
        situations,
      });
    }
  });
});

async function upgrade(situations: Situation[]): Promise<void> {
  const stage = await Stage.set(bed, 'upgraded', FIRST_KUBELET, FIRST_RUNTIME);
  stage.kubelet.setGates({ EventedPLEG: true });
  await stage.restartKubelet();
  await stage.modeIs(MODES[KUBELETS[FIRST_KUBELET].design].on);
  await stage.createPod('first');
  await stage.runningOf('first');
  // Its events prove the subscription.
  await stage.node.streamIs('Active');

  const runtimes: Step[] = [];
  for (const version of RUNTIME_STEPS.slice(1)) {
    const { down, up } = await replaceRuntime(stage, version);
    runtimes.push({ version, down, up });
    // No event goes by unheard from here on.
    await stage.createPod(`on-${version.replace('.', '-')}`);
    await stage.runningOf(`on-${version.replace('.', '-')}`);
    await stage.node.settled();
  }
  const kubelets: Step[] = [];
  for (const version of KUBELET_STEPS.slice(1)) {
    const { down, up } = await replaceKubelet(stage, version);
    kubelets.push({ version, down, up });
    await stage.node.settled();
  }

  await expectGaps(stage, runtimes, situations);
  await expectHistory(stage, { runtimes, kubelets }, situations);
  // Nobody missed anything: what came in a downtime is in its gap.
  expect(await stage.node.accusations()).toEqual([]);
  situations.push({ name: 'findings', said: 'no accusation', since: null, truth: 'nothing was dropped' });
}

async function replaceRuntime(stage: Stage, version: TriedContainerd): Promise<Omit<Step, 'version'>> {
  stage.containerd.setVersion(version);
  await stage.killRuntime();
  const down = Date.now();
  await stage.restartRuntime();
  const report = await stage.reportIs(`its runtime is ${version}`, ({ runtime }) =>
    (runtime.version ?? '').replace(/^v/, '').startsWith(`${version}.`),
  );
  expect(report.runtime.name).toBe('containerd');
  await stage.until(
    'the agent is subscribed',
    async () => (await metric(stage.node.agent, 'plegwatch_stream_connected')) === 1,
  );
  return { down, up: Date.now() };
}

async function replaceKubelet(stage: Stage, version: TriedKubelet): Promise<Omit<Step, 'version'>> {
  stage.kubelet.setMinor(minorOf(version));
  const down = Date.now();
  await stage.restartKubelet();
  const on = MODES[KUBELETS[version].design].on;
  await stage.reportIs(
    `${version} is ${on}`,
    ({ mode, kubelet }) => mode === on && (kubelet.version ?? '').startsWith(`v${version}.`),
  );
  return { down, up: Date.now() };
}

/** One gap of the stream for each replacement of the runtime: it encloses the downtime, and ends once the agent is subscribed again. */
async function expectGaps(stage: Stage, steps: readonly Step[], situations: Situation[]): Promise<void> {
  const gaps = await stage.node.gaps('stream');
  for (const { version, down, up } of steps) {
    const during = gaps.filter(({ from, to }) => from < up && (to ?? up) > down);
    expect(during.length, JSON.stringify({ version, down, up, gaps })).toBeGreaterThan(0);
    expect(Math.min(...during.map(({ from }) => from))).toBeLessThanOrEqual(down + CLOCKS_MS);
    const last = Math.max(...during.map(({ to }) => to ?? Number.POSITIVE_INFINITY));
    expect(last).toBeGreaterThanOrEqual(down);
    situations.push({
      name: `runtime replaced by ${version}`,
      said: `a gap (${during.map(({ cause }) => cause).join(', ')})`,
      since: [
        new Date(Math.min(...during.map(({ from }) => from))).toISOString(),
        new Date(last).toISOString(),
      ],
      truth: `down at ${new Date(down).toISOString()}, subscribed again before ${new Date(up).toISOString()}`,
    });
  }
  expect(await bed.system.undeclaredGaps(stage.node.name)).toEqual([]);
}

/** Everything that is stored with a version is from when that version ran. */
async function expectHistory(
  stage: Stage,
  { runtimes, kubelets }: { readonly runtimes: readonly Step[]; readonly kubelets: readonly Step[] },
  situations: Situation[],
): Promise<void> {
  const sessions = await stage.node.sessions();
  for (const { version, opened } of sessions) {
    const ran = runAt([{ version: FIRST_RUNTIME, down: 0, up: 0 }, ...runtimes], opened);
    expect(ran, `${version} at ${opened}`).toContain(minorIn(version));
  }
  expect(new Set(sessions.map(({ version }) => minorIn(version)))).toEqual(new Set(RUNTIME_STEPS));
  situations.push({
    name: 'stream sessions',
    said: 'the version of each',
    since: null,
    truth: 'the version that ran then',
  });

  const changes = await stage.changes();
  for (const { kubelet_version, at, to_mode } of changes) {
    const ran = runAt([{ version: FIRST_KUBELET, down: 0, up: 0 }, ...kubelets], at);
    expect(ran, `${to_mode} of ${kubelet_version} at ${at}`).toContain(minorIn(kubelet_version ?? ''));
  }
  expect(new Set(changes.map((change) => minorIn(change.kubelet_version ?? '')))).toEqual(
    new Set(KUBELET_STEPS),
  );
  situations.push({
    name: 'changes of the mode',
    said: 'the version of each',
    since: null,
    truth: 'the version that ran then',
  });

  const rows = await stage.sql<Versioned>(
    `SELECT kubelet_version AS kubelet, runtime_version AS runtime, (extract(epoch FROM detected_at) * 1000)::float8 AS at,
            concat_ws(' ', kind, event_type, cause) AS what
       FROM plegwatch.findings WHERE node = $1`,
  );
  for (const { kubelet, runtime, at, what } of rows) {
    expect(runAt([{ version: FIRST_RUNTIME, down: 0, up: 0 }, ...runtimes], at), what).toContain(
      minorIn(runtime ?? ''),
    );
    if (kubelet !== null)
      expect(runAt([{ version: FIRST_KUBELET, down: 0, up: 0 }, ...kubelets], at), what).toContain(
        minorIn(kubelet),
      );
  }
}

/** The versions that may have run at a moment: two from when the first was ended until the other was seen. */
function runAt(steps: readonly Step[], moment: number): string[] {
  return steps.flatMap(({ version, down }, i) => {
    const until = steps[i + 1]?.up ?? Number.POSITIVE_INFINITY;
    return moment >= down - CLOCKS_MS && moment <= until + CLOCKS_MS ? [version] : [];
  });
}

const minorIn = (version: string): string => /(\d+\.\d+)\./.exec(version)?.[1] ?? version;
