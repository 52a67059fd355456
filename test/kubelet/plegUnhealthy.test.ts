/*
 * What caused an unhealthy PLEG? Two real nodes at the same time, each with its kubelet, containerd and agent: on one the
 * runtime is frozen, on the other a proxy holds up only the kubelet's lists.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import { startKubelet } from '../../devtools/localServices/kubelet.ts';
import { type CriProxy, startCriProxy } from '../../devtools/simulator/proxy.ts';
import { leftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

/** With the gate off a kubelet reports an unhealthy PLEG after three minutes, with its next update of the Node. */
const UNHEALTHY_WITHIN_MS = 420_000;
const WITHIN_MS = 240_000;
const TIMEOUT_MS = 1_500_000;

const FROZEN = 'runtime-is-frozen';
const HELD = 'kubelet-is-held-up';
const NODES = [FROZEN, HELD];

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

let system: System;
/** Agents authenticate to kubelets with it. */
let token: string;
let runtime: LocalContainerd;
let proxy: CriProxy;
let cleanUps: (() => Promise<void>)[] = [];

needs(
  'root',
  'containerd-2.1',
  'runc',
  'kubelet',
  'kube-apiserver',
  'etcd',
  'kubectl',
  'redis-server',
  'postgres',
)('a PLEG that is not healthy', () => {
  beforeAll(async () => {
    system = await System.start({ kube: true });
    await system.controller();
    token = await system.agentToken();
    const containerds = await Promise.all([containerd(), containerd()]);
    runtime = containerds[0];
    proxy = await startCriProxy({
      upstream: containerds[1].socket,
      socket: `${containerds[1].dir}/proxy.sock`,
    });
    cleanUps.push(() => proxy.stop());
    await Promise.all([
      // Before the kubelet writes its Node's status it waits for the runtime's version.
      watched(FROZEN, runtime, runtime.socket, '30s'),
      // The kubelet's default: longer than the agent waits between two lists, however slow the machine makes them.
      watched(HELD, containerds[1], proxy.socket, '2m'),
    ]);
  });
  afterAll(async () => {
    // A frozen process does not exit on SIGTERM.
    await runtime?.kill('SIGCONT');
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
    cleanUps = [];
    await system?.stop();
    expect(leftovers()).toEqual([]);
  });

  test('is attributed to the runtime if lists of the agent hang too, and to the kubelet if only its own lists hang', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await Promise.all(NODES.map((node) => readyIs(node, 'True')));
    await Promise.all(NODES.map(counted));
    expect(await conditions()).toEqual([]);
    expect(await verdicts()).toEqual([]);

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
    await Promise.all(NODES.map((node) => readyIs(node, 'True')));
  });
});

async function containerd(): Promise<LocalContainerd> {
  const started = await startContainerd({ version: '2.1' });
  cleanUps.push(() => started.stop());
  return started;
}

/** A kubelet that reaches its runtime at `socket`, and an agent that reaches it directly. */
async function watched(
  node: string,
  { socket }: LocalContainerd,
  kubeletSocket: string,
  runtimeRequestTimeout: string,
): Promise<void> {
  const kubelet = await startKubelet({
    node,
    api: system.api,
    containerd: { socket: kubeletSocket },
    eventedPleg: false,
    runtimeRequestTimeout,
  });
  cleanUps.push(() => kubelet.stop());
  const tokenFile = join(system.folder('.'), `token-${node}`);
  writeFileSync(tokenFile, token, { mode: 0o600 });
  await system.agent(node, socket, {
    kubeletUrl: kubelet.url,
    kubeletTokenFile: tokenFile,
    kubeletCaFile: kubelet.caFile,
    kubeletServerName: kubelet.serverName,
  });
}

const readyIs = (node: string, status: string): Promise<true> =>
  waitFor(
    `Ready of ${node} is ${status}`,
    async () => {
      const path = '{.status.conditions[?(@.type=="Ready")].status}';
      const published = await system.kubectl('get', 'node', node, '-o', `jsonpath=${path}`);
      return published === status;
    },
    WITHIN_MS,
  );

async function listsHang(node: string): Promise<boolean> {
  const path = '{.status.conditions[?(@.type=="RelistHealthy")]}';
  const condition = await system.kubectl('get', 'pleg', node, '-o', `jsonpath=${path}`);
  const { status, message }: { status: string; message: string } = JSON.parse(condition);
  return status === 'False' && message.includes('has not answered a list');
}

/** Waits until the store has durations of the kubelet's calls. */
const counted = (node: string): Promise<unknown> =>
  waitFor(
    `figures of the kubelet of ${node}`,
    async () =>
      (await system.sql('SELECT FROM plegwatch.kubelet_minutes WHERE node = $1 AND list_calls > 0', node))[0],
    WITHIN_MS,
  );

const conditions = (): Promise<UnhealthyConditionRow[]> =>
  system.sql<UnhealthyConditionRow>(
    `SELECT node, status, reason, message, pleg_seen_ago_ms::float8 AS seen, threshold_ms::float8 AS threshold
       FROM plegwatch.node_conditions ORDER BY node, at`,
  );

const verdicts = (): Promise<VerdictRow[]> =>
  system.sql<VerdictRow>(
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
