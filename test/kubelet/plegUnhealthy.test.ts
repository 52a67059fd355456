/*
 * The cause of an unhealthy PLEG. Three real nodes at the same time, each with its kubelet, containerd and agent: on one the runtime is frozen, on another a
 * proxy holds up only the kubelet's lists, on the third the shim of one container is frozen while the runtime waits for it (hungList.test.ts).
 */
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import { waitingPod } from '../../devtools/localServices/pods.ts';
import { connectCri } from '../../devtools/simulator/criClient.ts';
import type { ReportStatus } from '../../src/controller/reports/status.ts';
import { ContainerState } from '../../src/cri/runtime.ts';
import { NODES } from '../../src/kube/object.ts';
import { needs } from '../support/needs.ts';
import { conditionsOf } from '../support/plegreports.ts';
import { shimOf } from '../support/shims.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { CACHE, MAIN } from '../support/testedVersions.ts';
import { waitFor } from '../support/waitFor.ts';
import type { WatchedNode } from '../support/watchedNode.ts';

/** With the gate off a kubelet reports an unhealthy PLEG after three minutes, with its next update of the Node. */
const UNHEALTHY_WITHIN_MS = 420_000;
const WITHIN_MS = 240_000;
const TIMEOUT_MS = 1_500_000;

const FROZEN = 'runtime-is-frozen';
const HELD = 'kubelet-is-held-up';
const STUCK = 'shim-is-frozen';
const ALL = [FROZEN, HELD, STUCK];
/** The pod whose shim that is. */
const CULPRIT = {
  list_call: 'ListContainers',
  pod_namespace: 'default',
  pod_name: 'held',
  container_name: 'app',
};

interface UnhealthyConditionRow extends Record<string, unknown> {
  readonly node: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly seen: number | null;
  readonly threshold: number | null;
}

interface VerdictRow extends Record<string, unknown> {
  readonly node: string;
  readonly kind: string;
  readonly verdict: string;
  readonly kubelet_lists: string;
  readonly our_lists: string;
  readonly our_errors: string | null;
  readonly our_longest_relist_ms: number;
  readonly ended: boolean;
}

const bed = new SystemBed({ kube: true, controller: { nodeConditions: 'on' } });

needs(
  ...KUBELET_NEEDS,
  `kubelet-${MAIN.minor}`,
  `containerd-${MAIN.containerd}`,
  `containerd-${CACHE.containerd}`,
)('a PLEG that is not healthy', () => {
  test('is attributed to the runtime if lists of the agent hang too, to the kubelet if only its own lists hang, and to the container that lists wait for', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const [runtime, another, third] = await Promise.all([
      bed.containerd(),
      bed.containerd(),
      // A newer one gives up on a shim that is frozen.
      bed.containerd({ version: CACHE.containerd }),
    ]);
    const proxy = await bed.proxy(another);
    await bed.system.kubectl('create', 'serviceaccount', 'default');
    const [, , stuck] = await Promise.all([
      // Before the kubelet writes its Node's status it waits for the runtime's version.
      watched(FROZEN, runtime, runtime, '30s'),
      // The kubelet's default: longer than the agent waits between two lists, however slow the machine makes them.
      watched(HELD, another, proxy, '2m'),
      watched(STUCK, third, third, '2m'),
    ]);
    const holdContainer = await podToHold(third, stuck);
    await Promise.all(ALL.map((node) => readyIs(node, 'True')));
    await Promise.all(ALL.map(counted));
    expect(await conditions()).toEqual([]);
    expect(await verdicts()).toEqual([]);

    // A frozen process does not exit on SIGTERM.
    bed.atEnd(() => runtime.kill('SIGCONT'));
    await runtime.kill('SIGSTOP');
    proxy.hold('ListPodSandbox', 'ListContainers');
    const releaseContainer = await holdContainer();
    // Before a list fails, after two minutes: then the message is another one.
    await waitFor('the report shows that lists hang', () => listsHang(FROZEN), WITHIN_MS);
    await waitFor(
      'all Nodes are unhealthy',
      async () => (await conditions()).length === 3,
      UNHEALTHY_WITHIN_MS,
    );
    for (const condition of await conditions()) {
      expect(condition).toMatchObject({ status: 'False', reason: 'KubeletNotReady', threshold: 180_000 });
      expect(condition.message).toContain('PLEG is not healthy');
      expect(condition.seen).toBeGreaterThan(180_000);
    }
    // A list that hangs counts while it hangs.
    await haveVerdicts(false);
    await namesCulprit(stuck);

    proxy.hold();
    await runtime.kill('SIGCONT');
    releaseContainer();
    await waitFor('all Nodes have recovered', async () => (await conditions()).length === 6, WITHIN_MS);
    expect((await conditions()).map(({ node, status }) => [node, status])).toEqual([
      [HELD, 'False'],
      [HELD, 'True'],
      [FROZEN, 'False'],
      [FROZEN, 'True'],
      [STUCK, 'False'],
      [STUCK, 'True'],
    ]);
    await haveVerdicts(true);
    for (const node of ALL) expect(await listsHang(node)).toBe(false);
    const slow = (await verdicts()).filter(({ kind }) => kind === 'slow');
    const attributedTo = (node: string) =>
      new Set(slow.filter((row) => row.node === node).map(({ verdict }) => verdict));
    expect(attributedTo(FROZEN)).not.toContain('kubelet');
    expect(attributedTo(HELD)).not.toContain('runtime');
    expect(attributedTo(STUCK)).not.toContain('kubelet');
    // All nodes recover.
    await Promise.all(ALL.map((node) => readyIs(node, 'True')));
  });
});

/** An agent at the runtime, and a kubelet that reaches it there or through a proxy. */
async function watched(
  node: string,
  { socket }: LocalContainerd,
  containerd: { readonly socket: string },
  runtimeRequestTimeout: string,
): Promise<WatchedNode> {
  const kubelet = await bed.kubelet({
    node,
    containerd,
    eventedPleg: false,
    runtimeRequestTimeout,
    minor: MAIN.minor,
  });
  return bed.watch(node, socket, {
    ...(await bed.metricsOf(kubelet)),
    kubeletCaFile: kubelet.caFile,
    kubeletServerName: kubelet.serverName,
  });
}

/**
 * Waits until the node runs two pods and the agent has listed them. Returns what makes every list of containers wait for one of them, which returns
 * what ends that.
 */
async function podToHold({ socket, importedImages }: LocalContainerd, node: WatchedNode) {
  const cri = connectCri(socket);
  bed.atEnd(() => cri.close());
  for (const name of ['web', CULPRIT.pod_name]) {
    const file = bed.system.folder(`${name}.json`);
    writeFileSync(file, JSON.stringify(waitingPod({ name, node: node.name, image: importedImages.busybox })));
    await bed.system.kubectl('create', '-f', file);
  }
  const { id, podSandboxId } = await waitFor(
    'both pods run',
    async () => {
      const { containers } = await cri.call('listContainers', { filter: undefined });
      const running = containers.filter(({ state }) => state === ContainerState.CONTAINER_RUNNING);
      const held = running.find(({ labels }) => labels['io.kubernetes.pod.name'] === CULPRIT.pod_name);
      return running.length === 2 ? held : undefined;
    },
    WITHIN_MS,
  );
  await node.relisted();
  const shim = shimOf(podSandboxId);
  const release = () => thaw(shim);
  return async () => {
    bed.atEnd(release);
    await freeze(shim);
    const linux = { memoryLimitInBytes: BigInt(256 * 1024 ** 2) };
    cri.call('updateContainerResources', { containerId: id, linux }).catch(() => undefined);
    return release;
  };
}

/** All that an operator reads of the node names the container: the verdict, the report, and the Node itself, which is waited for. */
async function namesCulprit(node: WatchedNode): Promise<void> {
  const unhealthy = (await verdicts()).filter((row) => row.node === node.name && row.kind === 'unhealthy');
  expect(unhealthy).toMatchObject([CULPRIT]);
  const { listHang, conditions: reported } = await node.publishedReport();
  expect(listHang).toMatchObject({
    call: 'ListContainers',
    verdict: 'Container',
    heldUpBy: 'default/held/app',
  });
  expect(messageOf(reported, 'RelistHealthy', 'False')).toMatch(/^default\/held\/app: ListContainers waits /);
  const published = await waitFor(
    'a condition of the Node names the container',
    async () => {
      const { conditions: ofNode } = Object((await bed.system.kube.get(NODES, node.name))?.['status']);
      return messageOf(ofNode, 'PLEGListsFailing', 'True');
    },
    WITHIN_MS,
  );
  expect(published).toBe(messageOf(reported, 'RelistHealthy', 'False'));
}

/** Undefined if the condition has another status. */
const messageOf = (of: ReportStatus['conditions'], type: string, status: string): string | undefined =>
  of.find((condition) => condition.type === type && condition.status === status)?.message;

const readyIs = (node: string, status: string): Promise<true> =>
  waitFor(
    `Ready of ${node} is ${status}`,
    async () => {
      const published = conditionsOf(await bed.system.kube.get(NODES, node));
      return published.get('Ready') === status;
    },
    WITHIN_MS,
  );

async function listsHang(node: string): Promise<boolean> {
  const { conditions } = await bed.system.publishedReport(node);
  const condition = conditions.find(({ type }) => type === 'RelistHealthy');
  return condition?.status === 'False' && condition.reason === 'ListHangs';
}

/** Waits until the store has durations of the kubelet's calls. */
const counted = (node: string): Promise<unknown> =>
  waitFor(
    `figures of the kubelet of ${node}`,
    async () =>
      (
        await bed.system.sql(
          'SELECT FROM plegwatch.kubelet_minutes WHERE node = $1 AND container_lists > 0',
          node,
        )
      )[0],
    WITHIN_MS,
  );

const conditions = (): Promise<UnhealthyConditionRow[]> =>
  bed.system.sql<UnhealthyConditionRow>(
    `SELECT node, status, reason, message, pleg_seen_ago_ms::float8 AS seen, threshold_ms::float8 AS threshold
       FROM plegwatch.node_conditions ORDER BY node, at`,
  );

const verdicts = (): Promise<VerdictRow[]> =>
  bed.system.sql<VerdictRow>(
    'SELECT *, to_at IS NOT NULL AS ended FROM plegwatch.pleg_verdicts ORDER BY node, kind, from_at',
  );

/**
 * Where a busy machine makes a list of ours take half a second or fail, we list as rarely as once a minute, and nothing proves that only the
 * kubelet's lists were slow. Its own were slow all the same.
 */
const isUnproven = (held: VerdictRow): boolean =>
  held.our_lists === 'unknown' &&
  held.kubelet_lists === 'slow' &&
  (held.our_longest_relist_ms >= 500 || Number(held.our_errors) > 0);

/** Waits until all unhealthy periods have their verdicts. */
async function haveVerdicts(ended: boolean): Promise<void> {
  await waitFor(
    `all have verdicts (${ended ? 'ended' : 'open'})`,
    async () => {
      const unhealthy = (await verdicts()).filter(({ kind }) => kind === 'unhealthy');
      const found = unhealthy.map((row) => `${row.node} ${row.verdict} ${row.ended}`);
      const heldVerdict = unhealthy[0] !== undefined && isUnproven(unhealthy[0]) ? 'unknown' : 'kubelet';
      const expected = [
        `${HELD} ${heldVerdict} ${ended}`,
        ...[`${FROZEN} runtime ${ended}`, `${STUCK} container ${ended}`],
      ];
      if (found.join() !== expected.join()) throw new Error(JSON.stringify(unhealthy));
      return true;
    },
    WITHIN_MS,
  );
}
