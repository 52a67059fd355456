/*
 * A node with a real kubelet whose own status of its pods both an agent and the test watch. Kubelet and agent reach the runtime through a proxy each,
 * which can keep an event or a list from that one alone. The agent's findings are compared with what the test did and saw.
 *
 *   stop           the test kills a container: it knows between which moments it ended
 *   hidden until   a moment before which the kubelet could not notice a stop
 *   sight          when the test's own watch of the PodsAPI first showed it
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import type { LocalKubelet } from '../../devtools/localServices/kubelet.ts';
import { connectCri } from '../../devtools/simulator/criClient.ts';
import type { CriProxy } from '../../devtools/simulator/proxy.ts';
import { monoNow } from '../../src/platform/clock.ts';
import {
  EVENT_TYPES,
  type EvidenceRecord,
  KUBELET_LAG_BOUNDS_MS,
  parseRecord,
  type RecordOf,
  type RecordType,
} from '../../src/protocol/record.ts';
import { between, type Mono } from '../../src/protocol/units.ts';
import { eventKey } from './listener.ts';
import { PodsWitness } from './podsWitness.ts';
import { exists } from './sigstop.ts';
import { LASTING_READER, metric } from './system.ts';
import type { SystemBed } from './systemBed.ts';
import { MAIN } from './testedVersions.ts';
import { waitFor } from './waitFor.ts';
import type { WatchedNode } from './watchedNode.ts';

export const WITHIN_MS = 300_000;
const STOPPED = 2;
const RUNNING = 1;
/** An exact time of the runtime is trusted to this. */
const BLUR_MS = 500;

type Loser = 'kubelet' | 'agent';

interface Container {
  readonly id: string;
  /** The pod has the same. */
  readonly name: string;
  readonly pid: number;
}

interface Stop {
  readonly from: Mono;
  readonly to: Mono;
  readonly hiddenUntil: Mono;
  /** The kubelet ran, or was stopped. */
  readonly isWatched: boolean;
}

/** Between how many milliseconds the kubelet's status did not show a stop. */
interface Lag {
  readonly atLeast: number;
  readonly atMost: number;
}

interface StatusNodeOptions {
  readonly name: string;
  readonly eventedPleg: boolean;
  /** Its kubelet is too old for a PodsAPI. */
  readonly isOld?: boolean;
}

interface Parts {
  readonly bed: SystemBed;
  readonly containerd: LocalContainerd;
  readonly proxies: Readonly<Record<Loser, CriProxy>>;
  readonly kubelet: LocalKubelet;
  readonly staticPods: string;
  readonly watched: WatchedNode;
  /** The records of the agent. */
  readonly auditFile: string;
  readonly lost: Readonly<Record<Loser, Set<string>>>;
}

export class StatusNode {
  readonly eventedPleg: boolean;
  readonly containerd: LocalContainerd;
  readonly proxies: Parts['proxies'];
  readonly kubelet: LocalKubelet;
  readonly watched: WatchedNode;
  readonly witness: PodsWitness;
  readonly #parts: Parts;
  readonly #stops = new Map<string, Stop>();

  private constructor(eventedPleg: boolean, parts: Parts) {
    this.eventedPleg = eventedPleg;
    this.containerd = parts.containerd;
    this.proxies = parts.proxies;
    this.kubelet = parts.kubelet;
    this.watched = parts.watched;
    this.#parts = parts;
    this.witness = new PodsWitness(parts.kubelet.podsApi);
    parts.bed.atEnd(() => this.witness.close());
  }

  static async start(
    bed: SystemBed,
    { name, eventedPleg, isOld = false }: StatusNodeOptions,
  ): Promise<StatusNode> {
    const containerd = await bed.containerd();
    const lost = { kubelet: new Set<string>(), agent: new Set<string>() };
    const proxyOf = (loser: Loser) =>
      bed.proxy(containerd, ({ containerId, containerEventType }) =>
        containerEventType === STOPPED && lost[loser].has(containerId) ? 'drop' : 'deliver',
      );
    const proxies = { kubelet: await proxyOf('kubelet'), agent: await proxyOf('agent') };
    const staticPods = bed.system.folder(`pods-${name}`);
    mkdirSync(staticPods);
    const minor = isOld ? undefined : MAIN.minor;
    const kubelet = await bed.kubelet({
      ...{ node: name, containerd: proxies.kubelet, eventedPleg, staticPods, minor },
    });
    const auditFile = bed.system.folder(`records-${name}`);
    const watched = await bed.watch(name, proxies.agent.socket, {
      ...(await bed.metricsOf(kubelet)),
      kubeletServerName: kubelet.serverName,
      kubeletCaFile: kubelet.caFile,
      podsApi: kubelet.podsApi,
      auditFile,
      // A stall of a busy machine that counted as a gap would leave little to see.
      ...{ overdueAfter: '20s', missedAfter: '30s', ...LASTING_READER },
    });
    return new StatusNode(eventedPleg, {
      ...{ bed, containerd, proxies, kubelet, staticPods, watched, auditFile, lost },
    });
  }

  async stateIs(state: string): Promise<void> {
    const isState = async () =>
      (await metric(this.watched.agent, `plegwatch_pods_api_state{state="${state}"}`)) === 1;
    await waitFor(`the PodsAPI is ${state}`, isState, WITHIN_MS);
  }

  // Deeds of the test.

  /**
   * Starts a static pod of one container for each name. Returns them once lists have shown that they run while the kubelet's status is watched: what
   * happens to them from then on is covered.
   */
  async run<const N extends readonly string[]>(...names: N): Promise<{ [K in keyof N]: Container }> {
    const { containerd, staticPods } = this.#parts;
    for (const name of names) {
      const pod = podOf(name, containerd.importedImages.busybox);
      writeFileSync(join(staticPods, `${name}.json`), JSON.stringify(pod));
    }
    await this.stateIs('Watching');
    const containers = await Promise.all(names.map((name) => this.#running(name)));
    await this.watched.relisted();
    return containers as { [K in keyof N]: Container };
  }

  /** From now on the stop events of these containers do not reach them. */
  lose(losers: readonly Loser[], ...containers: readonly Container[]): void {
    for (const loser of losers) for (const { id } of containers) this.#parts.lost[loser].add(id);
  }

  /** Kills it, also if the runtime is frozen. */
  async kill({ id, pid }: Container): Promise<void> {
    const from = monoNow();
    process.kill(pid, 'SIGKILL');
    await waitFor('it has ended', () => !exists(pid));
    this.#stops.set(id, { from, to: monoNow(), hiddenUntil: from, isWatched: this.kubelet.running() });
  }

  /** Does what lets the kubelet notice the stops of these, which it could not before. */
  goOn(containers: readonly Container[], how: () => void): void {
    const hiddenUntil = monoNow();
    for (const { id } of containers) this.#stops.set(id, { ...this.#stopOf(id), hiddenUntil });
    how();
  }

  /** Waits until the kubelet has restarted these, and its status has shown that. */
  async haveRestarted(...containers: readonly Container[]): Promise<void> {
    for (const { id, name } of containers) {
      const next = await this.#running(name, id);
      const isShown = () => this.witness.stopped.has(id) && this.witness.started.has(next.id);
      await waitFor('the test has seen the stop and the restart', isShown, WITHIN_MS);
    }
  }

  /** Those of these whose stop event was kept from it. */
  withoutEvent(loser: Loser, containers: readonly Container[]): Container[] {
    const kept = new Set(this.proxies[loser].dropped.map(({ event }) => event.containerId));
    return containers.filter(({ id }) => kept.has(id));
  }

  async #running(name: string, except = ''): Promise<Container> {
    const cri = connectCri(this.containerd.socket);
    try {
      const id = await waitFor(
        `${name} runs`,
        async () => {
          const { containers } = await cri.call('listContainers', { filter: undefined });
          return containers.find(
            (each) => each.metadata?.name === name && each.state === RUNNING && each.id !== except,
          )?.id;
        },
        WITHIN_MS,
      );
      const tasks = await this.containerd.ctr(['tasks', 'ls']);
      return { id, name, pid: Number(new RegExp(`^${id}\\s+(\\d+)`, 'm').exec(tasks)?.[1]) };
    } finally {
      cri.close();
    }
  }

  #stopOf(id: string): Stop {
    const stop = this.#stops.get(id);
    if (stop === undefined) throw new Error(`The test has not stopped ${id}.`);
    return stop;
  }

  // Records of the agent.

  /** Its records so far, in its order. */
  records<T extends RecordType>(type: T): RecordOf<T>[] {
    const lines = readFileSync(this.#parts.auditFile, 'utf8').split('\n').slice(0, -1);
    return lines.flatMap((line) => {
      const { r: record }: { readonly r: unknown } = JSON.parse(line.slice(line.indexOf('{')));
      const parsed = parseRecord(record);
      if (!parsed.ok) throw new Error(`${parsed.error}: ${line}`);
      return isOf(parsed.value, type) ? [parsed.value] : [];
    });
  }

  /** The findings of this kind about one of these containers. */
  findings(kind: string, ...containers: readonly Container[]): RecordOf<'finding'>[] {
    const ids = containers.map(({ id }) => id);
    return this.records('finding').filter(
      (each) => each.kind === kind && ids.includes(each.containerId ?? ''),
    );
  }

  finding(kind: string, container: Container): Promise<RecordOf<'finding'>> {
    const what = `${kind} ${container.name}`;
    return waitFor(what, () => this.findings(kind, container)[0], WITHIN_MS);
  }

  gapsOfStatus(): RecordOf<'gap'>[] {
    return this.records('gap').filter(({ scope }) => scope === 'kubelet_status');
  }

  /** A list that hung, with this verdict. */
  async hang(verdict: string): Promise<Record<string, unknown> | undefined> {
    const text = 'SELECT * FROM plegwatch.list_hangs WHERE node = $1 AND verdict = $2';
    return (await this.#parts.bed.system.sql(text, this.watched.name, verdict))[0];
  }

  // Checks.

  /** Waits for the miss of its stop. Its proof, and its row, say what the kubelet knew as the test saw it. */
  async missIsTrue(container: Container, whyNotObserved: string | null = null): Promise<void> {
    const { findingId, proof, window } = await this.finding('missed', container);
    const knew = proof['kubelet'] as {
      is: string;
      why?: string;
      atLeast: number;
      atMost: number;
      until: number;
    };
    const row = await this.#rowOf(findingId);
    expect(row.kubelet_knew).toBe(knew.is);
    expect([knew.why ?? null, row.kubelet_why]).toEqual([whyNotObserved, whyNotObserved]);
    if (whyNotObserved !== null) return;
    const lag = this.#lagOf(container.id);
    const [atLeast, atMost] =
      knew.is === 'shown'
        ? [knew.atLeast / 1000, knew.atMost / 1000]
        : [(knew.until - (window?.to ?? Number.NaN)) / 1000, null];
    expect(row.kubelet_at_least_ms).toBeCloseTo(atLeast);
    if (atMost === null) expect(row.kubelet_at_most_ms).toBeNull();
    else expect(row.kubelet_at_most_ms).toBeCloseTo(atMost);
    expectAgreement(row, lag);
  }

  /** Waits until its lateness is over. Its row says for how long its stop was not shown as the test saw it. */
  async latenessIsTrue(container: Container): Promise<void> {
    const { findingId } = await this.finding('kubelet_late', container);
    const row = await waitFor('it is resolved', async () => {
      const found = await this.#rowOf(findingId);
      return found.kubelet_at_most_ms === null ? undefined : found;
    });
    expect(row.kubelet_knew).toBe('not_shown');
    expectAgreement(row, this.#lagOf(container.id));
  }

  /** No finding says that an event was missed which the agent's proxy delivered, or that the status did not show what the test had seen in it by then. */
  async nothingIsFalse(): Promise<void> {
    const { stopped, started } = this.witness;
    const came = new Set(
      this.proxies.agent.delivered.map(({ event }) =>
        eventKey(event.containerId, EVENT_TYPES[event.containerEventType] ?? 'CREATED'),
      ),
    );
    const epochStart = await this.#epochStart();
    const isFalse = ({ kind, containerId, eventType, proof }: RecordOf<'finding'>): boolean => {
      const id = containerId ?? '';
      if (kind === 'missed') return came.has(eventKey(id, eventType ?? 'CREATED'));
      if (kind !== 'kubelet_late') return false;
      const sight = (eventType === 'STARTED' ? started : stopped).get(id);
      return sight !== undefined && sight.at < epochStart + Number(proof['asked']);
    };
    expect(this.records('finding').filter(isFalse)).toEqual([]);
  }

  /**
   * Ends the agent, which reports its last minute. A stop is counted once at most, as no quicker than it was, and surely if its event came; none is
   * that was made while the kubelet was down.
   */
  async countsAreTrue(): Promise<void> {
    await this.watched.agent.stop();
    const lags = this.records('relist_minute').flatMap(({ kubeletLag }) => kubeletLag ?? []);
    const stops = lags.flatMap((each) => each.stops.flatMap(boundsOf));
    const starts = sum(lags.flatMap((each) => each.starts));
    const watched = [...this.#stops].flatMap(([id, { isWatched }]) => (isWatched ? [id] : []));
    const least = watched.map((id) => this.#lagOf(id).atLeast - BLUR_MS);
    for (const bound of stops) expect(upTo(stops, bound)).toBeLessThanOrEqual(upTo(least, bound));
    expect(starts).toBeLessThanOrEqual(this.witness.started.size);
    // Lags while a busy machine held the agent up are not counted.
    if (this.records('gap').some(({ cause }) => cause === 'agent_stalled')) return;
    const lost = new Set(this.proxies.agent.dropped.map(({ event }) => event.containerId));
    expect(stops.length).toBeGreaterThanOrEqual(watched.filter((id) => !lost.has(id)).length);
    expect(starts).toBeGreaterThanOrEqual(watched.length);
  }

  /** By what the test did and saw. */
  #lagOf(id: string): Lag {
    const { from, to, hiddenUntil } = this.#stopOf(id);
    const sight = this.witness.stopped.get(id);
    return {
      atLeast: Math.max(0, between(to, hiddenUntil) / 1000),
      atMost: sight === undefined ? Number.POSITIVE_INFINITY : between(from, sight.at) / 1000,
    };
  }

  /** When the agent's epoch began. */
  async #epochStart(): Promise<number> {
    const [row] = await this.#parts.bed.system.sql<{ at: number }>(
      'SELECT started_mono::float8 AS at FROM store.epoch JOIN store.node USING (node_id) WHERE name = $1',
      this.watched.name,
    );
    return row?.at ?? Number.NaN;
  }

  #rowOf(findingId: string): Promise<KnowledgeRow> {
    return waitFor('the finding is stored', async () => {
      const [row] = await this.#parts.bed.system.sql<KnowledgeRow>(
        `SELECT kubelet_knew, kubelet_why, kubelet_at_least_ms, kubelet_at_most_ms
           FROM plegwatch.findings WHERE finding_id = $1`,
        findingId,
      );
      return row;
    });
  }
}

interface KnowledgeRow extends Record<string, unknown> {
  readonly kubelet_knew: string | null;
  readonly kubelet_why: string | null;
  readonly kubelet_at_least_ms: number | null;
  readonly kubelet_at_most_ms: number | null;
}

/** Its bounds contain a lag that the test's bounds contain too. */
function expectAgreement(row: KnowledgeRow, { atLeast, atMost }: Lag): void {
  expect(row.kubelet_at_least_ms).toBeLessThanOrEqual(atMost);
  expect(row.kubelet_at_most_ms ?? Number.POSITIVE_INFINITY).toBeGreaterThanOrEqual(atLeast - BLUR_MS);
}

const podOf = (name: string, image: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: {
    hostNetwork: true,
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        ...{ name, image, imagePullPolicy: 'Never', command: ['sleep', '3600'] },
        env: [{ name: 'PASSWORD', value: 'hunter2' }],
      },
    ],
  },
});

const isOf = <T extends RecordType>(record: EvidenceRecord, type: T): record is RecordOf<T> =>
  record.type === type;

/** The upper bounds of as many lags as are in this bucket. */
const boundsOf = (count: number, bucket: number): number[] =>
  Array.from({ length: count }, () => KUBELET_LAG_BOUNDS_MS[bucket] ?? Number.POSITIVE_INFINITY);

const upTo = (lags: readonly number[], bound: number): number => lags.filter((each) => each <= bound).length;

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);
