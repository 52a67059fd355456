/*
 * The agent's findings about the status of a real kubelet, through its PodsAPI. The kubelet reaches its runtime through a proxy, which can keep an
 * event or a list from the kubelet alone; the agent watches the runtime itself, and the test has a watch of its own.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import type { LocalKubelet } from '../../devtools/localServices/kubelet.ts';
import { connectCri } from '../../devtools/simulator/criClient.ts';
import type { CriProxy } from '../../devtools/simulator/proxy.ts';
import {
  type EvidenceRecord,
  parseRecord,
  type RecordOf,
  type RecordType,
} from '../../src/protocol/record.ts';
import { needs } from '../support/needs.ts';
import { PodsWitness } from '../support/podsWitness.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { LASTING_READER, metric } from '../support/system.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { MAIN } from '../support/testedVersions.ts';
import { waitFor } from '../support/waitFor.ts';
import type { WatchedNode } from '../support/watchedNode.ts';

const TIMEOUT_MS = 1_500_000;
const WITHIN_MS = 300_000;
const STOPPED = 2;
const CONTAINERS = ['one', 'two', 'three'] as const;

const bed = new SystemBed({ kube: true });
/** Ids of the containers whose stop events the kubelet does not get. */
const hidden = new Set<string>();

interface NodeOptions {
  readonly eventedPleg: boolean;
  /** Its kubelet is too old for a PodsAPI. */
  readonly isOld?: boolean;
  readonly kubeletLateAfter?: string;
}

interface World {
  readonly containerd: LocalContainerd;
  readonly proxy: CriProxy;
  readonly kubelet: LocalKubelet;
  readonly node: WatchedNode;
  /** The records of the agent. */
  readonly auditFile: string;
}

needs(
  ...KUBELET_NEEDS,
  `kubelet-${MAIN.minor}`,
  `containerd-${MAIN.containerd}`,
)("the status of a kubelet's pods", () => {
  beforeAll(async () => {
    // No controller creates one here, and no pod is admitted without it.
    await bed.system.kubectl('create', 'serviceaccount', 'default');
  });

  test.each([
    ['off', false],
    ['on', true],
  ])(
    'shows each start and stop, which are counted, and one whose event the kubelet lost after its next relist (Evented PLEG %s)',
    {
      timeout: TIMEOUT_MS,
    },
    async (gate, eventedPleg) => {
      const world = await watched(`shows-${gate}`, { eventedPleg, kubeletLateAfter: '2m' });
      const witness = witnessOf(world);
      const ids = await coveredIds(world);
      hidden.add(ids[0] ?? '');
      for (const id of ids) await kill(world, id);
      const restarted = await runningIds(world, ids);
      await waitFor('the test has seen all', () => ids.every((id) => witness.stopped.has(id)), WITHIN_MS);
      await waitFor(
        'the test has seen the restarts',
        () => restarted.every((id) => witness.started.has(id)),
        WITHIN_MS,
      );
      const kept = world.proxy.dropped.map(({ event }) => event.containerId);
      expect(kept).toEqual(eventedPleg ? [ids[0]] : []);
      await world.node.settled();
      // It reports its last minute.
      await world.node.agent.stop();
      const lags = recordsOf(world, 'relist_minute').flatMap(({ kubeletLag }) => kubeletLag ?? []);
      const counted = {
        stops: sum(lags.flatMap(({ stops }) => stops)),
        starts: sum(lags.flatMap(({ starts }) => starts)),
      };
      // Lags while a busy machine held the agent up are not counted.
      const isWhole = recordsOf(world, 'gap').every(({ cause }) => cause !== 'agent_stalled');
      // The first starts may have come before the watch.
      if (isWhole) expect(counted.stops).toBe(ids.length);
      if (isWhole) expect(counted.starts).toBeGreaterThanOrEqual(ids.length);
      expect(counted.starts).toBeLessThanOrEqual(2 * ids.length);
      expect(lateOf(world)).toEqual([]);
    },
  );

  test('is late while the kubelet cannot list, which an answer to GetPod proves, until it shows the stop', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const world = await watched('late', { eventedPleg: true });
    const witness = witnessOf(world);
    const [id = ''] = await coveredIds(world);
    world.proxy.hold('ListPodSandbox', 'ListContainers');
    await kill(world, id);
    const late = await waitFor('it is late', () => lateOf(world, id)[0], WITHIN_MS);
    // By the test's own watch it is true.
    expect(witness.started.has(id)).toBe(true);
    expect(witness.stopped.has(id)).toBe(false);
    expect(late).toMatchObject({ containerId: id, eventType: 'STOPPED', cause: 'not_shown' });
    const { asked, answered, lateAfter, watchSince, podState } = late.proof;
    expect(podState).toBe('running');
    expect(Number(asked)).toBeGreaterThanOrEqual(Number(late.window?.to) + Number(lateAfter));
    expect(Number(answered)).toBeGreaterThan(Number(asked));
    expect(Number(watchSince)).toBeLessThan(Number(late.window?.from));
    world.proxy.hold();
    await waitFor('the test has seen the stop', () => witness.stopped.has(id), WITHIN_MS);
    await waitFor(
      'it is resolved',
      () => recordsOf(world, 'finding_resolved').find(({ findingId }) => findingId === late.findingId),
      WITHIN_MS,
    );
    expect(lateOf(world, id)).toEqual([late]);
  });

  test('is a gap while the kubelet is down, and nothing is said of one that does not answer', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const world = await watched('down', { eventedPleg: false });
    const { kubelet, node } = world;
    const [first = '', second = ''] = await coveredIds(world);
    const watchedAt = Date.now();

    bed.atEnd(() => thaw(kubelet.pid));
    await freeze(kubelet.pid);
    await kill(world, first);
    const failed = () => metric(node.agent, 'plegwatch_pod_queries_total{result="failed"}');
    await waitFor('a query fails', async () => ((await failed()) ?? 0) > 0, WITHIN_MS);
    expect(lateOf(world, first)).toEqual([]);
    expect(
      recordsOf(world, 'gap')
        .filter(isOfStatus)
        .filter(({ cause }) => cause !== 'agent_stalled'),
    ).toEqual([]);

    const killedAt = Date.now();
    await kubelet.kill();
    const broken = () =>
      recordsOf(world, 'gap').find((gap) => isOfStatus(gap) && gap.cause === 'kubelet_unavailable');
    const gap = await waitFor('the gap is open', broken, WITHIN_MS);
    expect(gap.to).toBeNull();
    await kill(world, second);
    await node.relisted();
    const restarting = Date.now();
    await kubelet.restart();
    await isWatching(world);
    const watchingAgain = Date.now();
    const [stored] = await waitFor('the gap is closed', async () => {
      const rows = (await node.gaps('kubelet_status')).filter(({ cause }) => cause === 'kubelet_unavailable');
      return rows.length === 1 && rows[0]?.to !== null ? rows : undefined;
    });
    // The store's times are those of the node's clock when the epoch began, to some milliseconds.
    // A gap begins up to two ticks early, and the watch was there by then.
    expect(stored?.from).toBeGreaterThan(watchedAt - 10_000);
    expect(stored?.from).toBeLessThan(killedAt + 1_000);
    expect(stored?.to).toBeGreaterThan(restarting - 1_000);
    expect(stored?.to).toBeLessThan(watchingAgain + 1_000);
    // The kubelet restarts what ended meanwhile; nobody is accused of that time.
    await runningIds(world, [first, second]);
    await node.settled();
    expect(lateOf(world, first, second)).toEqual([]);
  });

  test('is watched once a kubelet is upgraded to a version that has it, and no longer promised after a downgrade', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const world = await watched('upgraded', { eventedPleg: false, isOld: true });
    const { kubelet } = world;
    await stateIs(world, 'Absent');
    kubelet.setMinor(MAIN.minor);
    await kubelet.restart();
    await isWatching(world);
    expect(recordsOf(world, 'gap').filter(isOfStatus)).toEqual([]);
    kubelet.setMinor(undefined);
    await kubelet.restart();
    await stateIs(world, 'Absent');
    const gaps = recordsOf(world, 'gap').filter(isOfStatus);
    expect(new Set(gaps.map(({ gapId }) => gapId)).size).toBe(1);
    // Whether a kubelet that ends still says so is a race of its own.
    expect(['closed_by_kubelet', 'kubelet_unavailable']).toContain(gaps[0]?.cause);
    expect(gaps.at(-1)?.to).toBeTypeOf('number');
  });
});

/** A kubelet with a static pod, and an agent that watches its runtime and it. */
async function watched(
  name: string,
  { eventedPleg, isOld = false, kubeletLateAfter = '10s' }: NodeOptions,
): Promise<World> {
  const containerd = await bed.containerd();
  const proxy = await bed.proxy(containerd, ({ containerId, containerEventType }) =>
    hidden.has(containerId) && containerEventType === STOPPED ? 'drop' : 'deliver',
  );
  const staticPods = bed.system.folder(`pods-${name}`);
  mkdirSync(staticPods);
  const pod = podOf(containerd.importedImages.busybox);
  writeFileSync(join(staticPods, 'pod.json'), JSON.stringify(pod));
  const minor = isOld ? undefined : MAIN.minor;
  const kubelet = await bed.kubelet({ node: name, containerd: proxy, eventedPleg, staticPods, minor });
  const auditFile = bed.system.folder(`records-${name}`);
  const node = await bed.watch(name, containerd.socket, {
    ...(await bed.metricsOf(kubelet)),
    kubeletServerName: kubelet.serverName,
    kubeletCaFile: kubelet.caFile,
    podsApi: kubelet.podsApi,
    auditFile,
    kubeletLateAfter,
    // A stall of a busy machine that counted as a gap would leave little to see.
    ...{ overdueAfter: '20s', missedAfter: '30s', ...LASTING_READER },
  });
  return { containerd, proxy, kubelet, node, auditFile };
}

const podOf = (image: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    hostNetwork: true,
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 0,
    containers: CONTAINERS.map((name) => ({
      ...{ name, image, imagePullPolicy: 'Never', command: ['sleep', '3600'] },
      env: [{ name: 'PASSWORD', value: 'hunter2' }],
    })),
  },
});

function witnessOf({ kubelet }: World): PodsWitness {
  const witness = new PodsWitness(kubelet.podsApi);
  bed.atEnd(() => witness.close());
  return witness;
}

/** The ids of all containers of the pod once they run, none of them one of these. */
async function runningIds({ containerd }: World, except: readonly string[] = []): Promise<string[]> {
  const cri = connectCri(containerd.socket);
  try {
    return await waitFor(
      'the containers run',
      async () => {
        const { containers } = await cri.call('listContainers', { filter: undefined });
        const running = containers.filter(({ id, state }) => state === 1 && !except.includes(id));
        return running.length === CONTAINERS.length ? running.map(({ id }) => id) : undefined;
      },
      WITHIN_MS,
    );
  } finally {
    cri.close();
  }
}

/** The same once lists have shown that they run while the kubelet's status is watched: what happens to them from then on is covered. */
async function coveredIds(world: World): Promise<string[]> {
  await isWatching(world);
  const ids = await runningIds(world);
  await world.node.relisted();
  return ids;
}

const kill = ({ containerd }: World, id: string): Promise<string> =>
  containerd.ctr(['tasks', 'kill', '--signal', 'SIGKILL', id]);

/** The agent's records so far, in its order. */
function recordsOf<T extends RecordType>({ auditFile }: World, type: T): RecordOf<T>[] {
  const lines = readFileSync(auditFile, 'utf8').split('\n').slice(0, -1);
  return lines.flatMap((line) => {
    const { r: record }: { readonly r: unknown } = JSON.parse(line.slice(line.indexOf('{')));
    const parsed = parseRecord(record);
    if (!parsed.ok) throw new Error(`${parsed.error}: ${line}`);
    return isOf(parsed.value, type) ? [parsed.value] : [];
  });
}

const isOf = <T extends RecordType>(record: EvidenceRecord, type: T): record is RecordOf<T> =>
  record.type === type;

/** The findings about these containers, or about all. */
const lateOf = (world: World, ...ids: readonly string[]): RecordOf<'finding'>[] =>
  recordsOf(world, 'finding').filter(
    ({ kind, containerId }) =>
      kind === 'kubelet_late' && (ids.length === 0 || ids.includes(containerId ?? '')),
  );

const isOfStatus = ({ scope }: RecordOf<'gap'>): boolean => scope === 'kubelet_status';

async function stateIs(world: World, state: string): Promise<void> {
  const isState = async () =>
    (await metric(world.node.agent, `plegwatch_pods_api_state{state="${state}"}`)) === 1;
  await waitFor(`the PodsAPI is ${state}`, isState, WITHIN_MS);
}

const isWatching = (world: World): Promise<void> => stateIs(world, 'Watching');

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);
