/*
 * A node's kubelet and runtime are replaced under a running agent, one minor version after the other, and pods run in between. Each downtime is one gap;
 * the history says which version ran when; and what was lost under one version is never laid to another. Before each replacement the agent loses an event
 * that is judged after it.
 */
import { beforeAll, expect, test } from 'vitest';
import { where } from '../../devtools/localServices/where.ts';
import type { TriedContainerd, TriedKubelet } from '../../devtools/versions/pairs.ts';
import type { Situation } from '../../devtools/versions/results.ts';
import { EVENT_TYPES } from '../../src/protocol/record.ts';
import { eventKey } from '../support/listener.ts';
import { has, needs } from '../support/needs.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { KUBELETS, MODES } from './facts.ts';
import { digestOf, store } from './results.ts';
import { CLOCKS_MS, type Downtime, minorOf, programOf, Stage, versionOf } from './stage.ts';

const TIMEOUT_MS = 3_600_000;
/** Those that this machine has; what ran is in the result. */
const KUBELET_STEPS = (['1.33', '1.36', '1.37'] as const).filter((step) => has(programOf(step)));
const RUNTIME_STEPS = (['2.1', '2.2', '2.3', '2.4'] as const).filter((step) => has(`containerd-${step}`));
const [FIRST_KUBELET = '1.33'] = KUBELET_STEPS;
const [FIRST_RUNTIME = '2.1'] = RUNTIME_STEPS;
/** Longer than a replacement takes, so that what is lost before it is judged after it. */
const SETTINGS = { overdueAfter: '30s', missedAfter: '120s' };

const ALWAYS = { started: 0, known: 0, ended: Number.POSITIVE_INFINITY };

/** When a version was started, when the agent knew of it, and when it was ended. */
interface Run {
  readonly version: string;
  readonly started: number;
  readonly known: number;
  readonly ended: number;
}

const bed = new SystemBed({ kube: true });

needs(...KUBELET_NEEDS, `containerd-${FIRST_RUNTIME}`)('an upgrade', () => {
  beforeAll(async () => {
    await bed.system.kubectl('create', 'serviceaccount', 'default');
  });

  test('an upgrade of kubelet and runtime under a running agent leaves one gap for each downtime, a history that says which version ran when, and no finding with the version of another time', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const began = performance.now();
    const situations: Situation[] = [];
    let passed = false;
    try {
      const upgrade = new Upgrade(await firstVersions(), situations);
      await upgrade.play();
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

async function firstVersions(): Promise<Stage> {
  const stage = await Stage.set(bed, 'upgraded', FIRST_KUBELET, FIRST_RUNTIME, SETTINGS);
  stage.kubelet.setGates({ EventedPLEG: true });
  await stage.restartKubelet();
  await stage.modeIs(MODES[KUBELETS[FIRST_KUBELET].design].on);
  await stage.createPod('first');
  await stage.runningOf('first');
  // Its events prove the subscription.
  await stage.node.streamIs('Active');
  return stage;
}

class Upgrade {
  readonly #stage: Stage;
  readonly #situations: Situation[];
  readonly #runtimes: Run[] = [{ version: FIRST_RUNTIME, ...ALWAYS }];
  readonly #kubelets: Run[] = [{ version: FIRST_KUBELET, ...ALWAYS }];
  /** Events that were kept from the agent, and when. */
  readonly #lost = new Map<string, number>();

  constructor(stage: Stage, situations: Situation[]) {
    this.#stage = stage;
    this.#situations = situations;
  }

  async play(): Promise<void> {
    for (const version of RUNTIME_STEPS.slice(1)) await this.#replaceRuntime(version);
    for (const version of KUBELET_STEPS.slice(1)) await this.#replaceKubelet(version);
    await this.#stage.node.settled();
    await this.#expectHistory();
    await this.#expectFindings();
    expect(await bed.system.undeclaredGaps(this.#stage.node.name)).toEqual([]);
  }

  async #replaceRuntime(version: TriedContainerd): Promise<void> {
    const stage = this.#stage;
    await this.#loseEvent(`before-containerd-${version}`);
    const before = await stage.node.lastEvent();
    await stage.killRuntime();
    const down = Date.now();
    stage.containerd.setVersion(version);
    const up = await stage.restartRuntime();
    await stage.reportIs(`its runtime is ${version}`, ({ runtime }) => minorIn(runtime.version) === version);
    replaced(this.#runtimes, { version, down, up });
    // Its first event proves that the agent is subscribed again.
    await this.#runPod(`on-containerd-${version}`);
    await this.#sawGap('stream', `runtime replaced by ${version}`, { before, down, up });
  }

  async #replaceKubelet(version: TriedKubelet): Promise<void> {
    const stage = this.#stage;
    await this.#loseEvent(`before-kubelet-${version}`);
    const before = (await stage.lastChange()).at;
    await stage.kubelet.kill();
    const down = Date.now();
    await stage.until('the agent found it down', async () =>
      (await stage.node.gaps('kubelet')).some(({ to }) => to === null),
    );
    stage.kubelet.setMinor(minorOf(version));
    const up = Date.now();
    await stage.restartKubelet();
    const on = MODES[KUBELETS[version].design].on;
    await stage.reportIs(
      `${version} is ${on}`,
      ({ mode, kubelet }) => mode === on && minorIn(kubelet.version) === version,
    );
    replaced(this.#kubelets, { version, down, up });
    await this.#runPod(`on-kubelet-${version}`);
    await this.#sawGap('kubelet', `kubelet replaced by ${version}`, { before, down, up });
  }

  /** Returns the id of its container. */
  async #runPod(name: string): Promise<string> {
    const pod = name.replaceAll('.', '-');
    await this.#stage.createPod(pod);
    return this.#stage.runningOf(pod);
  }

  /** A container of the pod is killed, and the agent receives everything of it but its STOPPED. */
  async #loseEvent(pod: string): Promise<void> {
    const stage = this.#stage;
    const id = await this.#runPod(pod);
    await stage.node.streamIs('Active');
    stage.dropForAgent(({ containerId, containerEventType }) =>
      containerId === id && EVENT_TYPES[containerEventType] === 'STOPPED' ? 'drop' : 'deliver',
    );
    await stage.killContainer(id);
    await stage.until('its STOPPED is dropped', () =>
      stage.agentProxy.dropped.some(({ event }) => event.containerId === id),
    );
    this.#lost.set(eventKey(id, 'STOPPED'), Date.now());
    await stage.node.relisted();
  }

  async #sawGap(scope: 'stream' | 'kubelet', name: string, downtime: Downtime): Promise<void> {
    const { cause, from, to } = await this.#stage.gapOf(scope, downtime);
    this.#situations.push({
      name,
      said: `one gap of scope ${scope} (${cause})`,
      since: [iso(from), iso(to)],
      truth: `down from ${iso(downtime.down)} to ${iso(downtime.up)}`,
    });
  }

  /** Each event, stream and mode has the version that ran then. A kubelet's is known from the first scrape on. */
  async #expectHistory(): Promise<void> {
    const { node } = this.#stage;
    const events = await this.#stage.sql<VersionedEvent>(
      `SELECT runtime_version AS runtime, kubelet_version AS kubelet, (extract(epoch FROM received_at) * 1000)::float8 AS at
         FROM plegwatch.container_events WHERE node = $1 AND kubelet_version IS NOT NULL`,
    );
    for (const { runtime, kubelet, at } of events) {
      expect(ranAt(this.#runtimes, at)).toContain(minorIn(runtime));
      expect(knownAt(this.#kubelets, at)).toContain(minorIn(kubelet));
    }
    const sessions = await node.sessions();
    for (const { version, opened } of sessions)
      expect(ranAt(this.#runtimes, opened)).toContain(minorIn(version));
    const changes = await this.#stage.changes();
    for (const { kubelet_version: version, at } of changes)
      expect(ranAt(this.#kubelets, at)).toContain(minorIn(version));
    for (const versions of [events.map(({ runtime }) => runtime), sessions.map(({ version }) => version)])
      expect(new Set(versions.map(minorIn))).toEqual(new Set(RUNTIME_STEPS));
    for (const versions of [
      events.map(({ kubelet }) => kubelet),
      changes.map(({ kubelet_version: version }) => version),
    ])
      expect(new Set(versions.map(minorIn))).toEqual(new Set(KUBELET_STEPS));
    this.#situations.push({
      name: 'versions of events, streams and modes',
      said: 'each that which ran then',
      since: null,
      truth: 'when each program was started and ended',
    });
  }

  /** All that was lost is found, with the versions of then; nothing else is accused. */
  async #expectFindings(): Promise<void> {
    const findings = await this.#stage.sql<Finding>(
      `SELECT kind, concat_ws(' ', container_id, event_type) AS event, runtime_version AS runtime, kubelet_version AS kubelet
         FROM plegwatch.findings WHERE node = $1 AND kind NOT IN ('short_life')`,
    );
    for (const [event, at] of this.#lost) {
      const found = findings.filter((one) => one.event === event);
      expect(found, JSON.stringify({ event, findings })).toHaveLength(1);
      expect(ranAt(this.#runtimes, at)).toContain(minorIn(found[0]?.runtime));
      expect(ranAt(this.#kubelets, at)).toContain(minorIn(found[0]?.kubelet));
    }
    const accused = (await this.#stage.node.accusations()).map(({ event }) => event);
    expect(accused.filter((event) => !this.#lost.has(event))).toEqual([]);
    const missed = findings.filter(({ kind }) => kind === 'missed').length;
    this.#situations.push({
      name: 'an event lost before each replacement',
      said: `${missed} missed, ${this.#lost.size - missed} unobservable, each with the versions of then`,
      since: null,
      truth: `${this.#lost.size} were kept from the agent`,
    });
  }
}

interface VersionedEvent extends Record<string, unknown> {
  readonly runtime: string;
  readonly kubelet: string;
  readonly at: number;
}

interface Finding extends Record<string, unknown> {
  readonly kind: string;
  readonly event: string;
  readonly runtime: string | null;
  readonly kubelet: string | null;
}

/** The last run of these ended, and its successor is known. */
function replaced(
  runs: Run[],
  { version, down, up }: Pick<Downtime, 'down' | 'up'> & { readonly version: string },
): void {
  const last = runs.pop();
  if (last !== undefined) runs.push({ ...last, ended: down });
  runs.push({ version, started: up, known: Date.now(), ended: Number.POSITIVE_INFINITY });
}

/** Two where one was ended and the other started within so short a time that nobody can tell. */
const ranAt = (runs: readonly Run[], moment: number): string[] =>
  runs
    .filter(({ started, ended }) => moment >= started - CLOCKS_MS && moment <= ended + CLOCKS_MS)
    .map(({ version }) => version);

/** Two from when one was ended until the other was known. */
const knownAt = (runs: readonly Run[], moment: number): string[] =>
  runs.flatMap(({ version, started }, i) =>
    moment >= started - CLOCKS_MS && moment <= (runs[i + 1]?.known ?? moment) + CLOCKS_MS ? [version] : [],
  );

const iso = (ms: number): string => new Date(ms).toISOString();

const minorIn = (version: string | null | undefined): string => /(\d+\.\d+)\./.exec(version ?? '')?.[1] ?? '';
