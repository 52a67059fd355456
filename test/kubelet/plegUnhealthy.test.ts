/*
 * The cause of an unhealthy PLEG. Two real nodes at the same time, each with its kubelet, containerd and agent: on one the runtime is frozen, on the
 * other a proxy holds up only the kubelet's lists.
 */
import { expect, test } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import { NODES } from '../../src/kube/object.ts';
import { needs } from '../support/needs.ts';
import { conditionsOf } from '../support/plegreports.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { MAIN } from '../support/testedVersions.ts';
import { waitFor } from '../support/waitFor.ts';

/** With the gate off a kubelet reports an unhealthy PLEG after three minutes, with its next update of the Node. */
const UNHEALTHY_WITHIN_MS = 420_000;
const WITHIN_MS = 240_000;
const TIMEOUT_MS = 1_500_000;

const FROZEN = 'runtime-is-frozen';
const HELD = 'kubelet-is-held-up';
const BOTH = [FROZEN, HELD];

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

const bed = new SystemBed({ kube: true });

needs(
  ...KUBELET_NEEDS,
  `kubelet-${MAIN.minor}`,
  `containerd-${MAIN.containerd}`,
)('a PLEG that is not healthy', () => {
  test('is attributed to the runtime if lists of the agent hang too, and to the kubelet if only its own lists hang', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const [runtime, another] = await Promise.all([bed.containerd(), bed.containerd()]);
    const proxy = await bed.proxy(another);
    await Promise.all([
      // Before the kubelet writes its Node's status it waits for the runtime's version.
      watched(FROZEN, runtime, runtime, '30s'),
      // The kubelet's default: longer than the agent waits between two lists, however slow the machine makes them.
      watched(HELD, another, proxy, '2m'),
    ]);
    await Promise.all(BOTH.map((node) => readyIs(node, 'True')));
    await Promise.all(BOTH.map(counted));
    expect(await conditions()).toEqual([]);
    expect(await verdicts()).toEqual([]);

    // A frozen process does not exit on SIGTERM.
    bed.atEnd(() => runtime.kill('SIGCONT'));
    await runtime.kill('SIGSTOP');
    proxy.hold('ListPodSandbox', 'ListContainers');
    // Before a list fails, after two minutes: then the message is another one.
    await waitFor('the report shows that lists hang', () => listsHang(FROZEN), WITHIN_MS);
    await waitFor(
      'both Nodes are unhealthy',
      async () => (await conditions()).length === 2,
      UNHEALTHY_WITHIN_MS,
    );
    for (const condition of await conditions()) {
      expect(condition).toMatchObject({ status: 'False', reason: 'KubeletNotReady', threshold: 180_000 });
      expect(condition.message).toContain('PLEG is not healthy');
      expect(condition.seen).toBeGreaterThan(180_000);
    }
    // A list that hangs counts while it hangs.
    await haveVerdicts(false);

    proxy.hold();
    await runtime.kill('SIGCONT');
    await waitFor('both Nodes have recovered', async () => (await conditions()).length === 4, WITHIN_MS);
    expect((await conditions()).map(({ node, status }) => [node, status])).toEqual([
      [HELD, 'False'],
      [HELD, 'True'],
      [FROZEN, 'False'],
      [FROZEN, 'True'],
    ]);
    await haveVerdicts(true);
    expect(await listsHang(FROZEN)).toBe(false);
    expect(await listsHang(HELD)).toBe(false);
    const slow = (await verdicts()).filter(({ kind }) => kind === 'slow');
    const attributedTo = (node: string) =>
      new Set(slow.filter((row) => row.node === node).map(({ verdict }) => verdict));
    expect(attributedTo(FROZEN)).not.toContain('kubelet');
    expect(attributedTo(HELD)).not.toContain('runtime');
    // Both nodes recover.
    await Promise.all(BOTH.map((node) => readyIs(node, 'True')));
  });
});

/** An agent at the runtime, and a kubelet that reaches it there or through a proxy. */
async function watched(
  node: string,
  { socket }: LocalContainerd,
  containerd: { readonly socket: string },
  runtimeRequestTimeout: string,
): Promise<void> {
  const kubelet = await bed.kubelet({
    node,
    containerd,
    eventedPleg: false,
    runtimeRequestTimeout,
    minor: MAIN.minor,
  });
  await bed.watch(node, socket, {
    ...(await bed.metricsOf(kubelet)),
    kubeletCaFile: kubelet.caFile,
    kubeletServerName: kubelet.serverName,
  });
}

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

/** Waits until both unhealthy periods have their verdicts. */
async function haveVerdicts(ended: boolean): Promise<void> {
  await waitFor(
    `both have verdicts (${ended ? 'ended' : 'open'})`,
    async () => {
      const unhealthy = (await verdicts()).filter(({ kind }) => kind === 'unhealthy');
      const found = unhealthy.map((row) => `${row.node} ${row.verdict} ${row.ended}`);
      const heldVerdict = unhealthy[0] !== undefined && isUnproven(unhealthy[0]) ? 'unknown' : 'kubelet';
      const expected = [`${HELD} ${heldVerdict} ${ended}`, `${FROZEN} runtime ${ended}`];
      if (found.join() !== expected.join()) throw new Error(JSON.stringify(unhealthy));
      return true;
    },
    WITHIN_MS,
  );
}
