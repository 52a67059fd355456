/*
 * The demo's nodes.
 *
 *   worker-healthy     a kubelet with Evented PLEG; nothing goes wrong
 *   worker-restarted   the same, and its containerd is restarted once: its kubelet falls back to Generic PLEG
 *   worker-lossy       a simulated containerd 2.1 that drops some of its events
 *   worker-unsafe      a simulated containerd 1.7: subscribing there would take events away from the kubelet
 *
 * The first two are real where root can run a kubelet. Otherwise the second is left out, and the first has no kubelet: only a real containerd, or
 * a simulated one.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createKubeClient } from '../../src/kube/client.ts';
import { flagOf } from '../../src/platform/settings.ts';
import { DEV_CLI } from '../checkout.ts';
import type { LocalApiServer } from '../localServices/apiServer.ts';
import { type LocalContainerd, startContainerd } from '../localServices/containerd.ts';
import { startKubelet } from '../localServices/kubelet.ts';
import { readingOf, writeAgentToken } from '../localServices/kubeletReading.ts';
import type { LocalService } from '../localServices/localService.ts';
import type { PlegwatchSettings } from '../localServices/plegwatch.ts';
import { startProcess } from '../localServices/process.ts';
import type { Stops } from '../localServices/stopAll.ts';
import { kubeletPods, NAMESPACE, PodChurn, type PodRunner, runtimePods } from './churn.ts';
import { whyNoRuntime, whyNot } from './missing.ts';

export interface DemoNode {
  readonly name: string;
  readonly what: string;
  /** Its row of the table, once that shows what the node is for. */
  readonly row: RegExp;
}

interface StartedNode extends DemoNode {
  /** The socket of its runtime. */
  readonly socket: string;
  /** Whether a kubelet has created its Node object. */
  readonly isRegistered: boolean;
  /** The settings of its agent. */
  readonly settings: PlegwatchSettings;
}

/** The fault that makes a kubelet fall back, once the table has this row. */
export interface Break {
  readonly row: RegExp;
  run(): Promise<void>;
}

export interface DemoNodes {
  readonly nodes: readonly StartedNode[];
  /** Null without a real kubelet. */
  readonly break: Break | null;
}

export interface NodesOptions {
  /** The demo's folder. */
  readonly dir: string;
  readonly stops: Stops;
  readonly report: (line: string) => void;
  readonly keep: <T extends LocalService>(service: T) => T;
  /** Null without an API server, and then there is no kubelet. */
  readonly kube: KubeAccess | null;
}

interface KubeAccess {
  readonly api: LocalApiServer;
  readonly kubectl: (...args: readonly string[]) => Promise<string>;
}

interface SimulatedNode extends DemoNode {
  readonly runtime: Readonly<Record<string, string>>;
}

const REAL_HEALTHY: DemoNode = {
  name: 'worker-healthy',
  what: 'a real kubelet with Evented PLEG on a real containerd 2.1',
  row: /^worker-healthy +Evented +Active +\d/m,
};
const RESTARTED: DemoNode = {
  name: 'worker-restarted',
  what: 'the same, but its containerd is restarted once',
  row: /^worker-restarted +Fallback +Active +\d/m,
};
const WITHOUT_KUBELET: DemoNode = {
  name: 'worker-healthy',
  what: 'a real containerd 2.1 with real pods, and no kubelet',
  row: /^worker-healthy +\S+ +Active +\d/m,
};
const SIMULATED_HEALTHY: SimulatedNode = {
  ...WITHOUT_KUBELET,
  what: 'a simulated containerd 2.1 that announces everything',
  runtime: { profile: 'containerd-2.1', pods: '8', podLifetime: '15s' },
};
const LOSSY: SimulatedNode = {
  name: 'worker-lossy',
  what: 'a simulated containerd 2.1 that drops 1 event in 20',
  row: /^worker-lossy +\S+ +Active +[1-9]/m,
  runtime: { profile: 'containerd-2.1', pods: '12', podLifetime: '10s', drop: '0.05' },
};
const UNSAFE: SimulatedNode = {
  name: 'worker-unsafe',
  what: 'a simulated containerd 1.7: a subscriber would take events from the kubelet',
  // MISSED is empty where nothing could be observed, and 0 where no event was missed.
  row: /^worker-unsafe +\S+ +Unsafe /m,
  runtime: { profile: 'containerd-1.7', pods: '8', podLifetime: '20s' },
};

export async function startNodes(options: NodesOptions): Promise<DemoNodes> {
  const { report, kube } = options;
  const noRuntime = whyNoRuntime();
  const noKubelet = noRuntime ?? (kube === null ? 'there is no API server' : whyNot('kubelet'));
  const simulated = [LOSSY, UNSAFE];
  if (kube !== null && noKubelet === null) {
    report('starting two real kubelets with Evented PLEG, each on a real containerd 2.1 (usually 5 s)');
    const startReal = await realNodes(options, kube);
    const [healthy, restarted, others] = await all([
      startReal(REAL_HEALTHY, 'cart'),
      startReal(RESTARTED, 'order'),
      all(simulated.map((node) => startSimulated(options, node))),
    ]);
    const run = () => restarted.containerd.restart();
    const row = /^worker-restarted +Evented +Active /m;
    return { nodes: [healthy, restarted, ...others], break: { row, run } };
  }
  report(`skipped: real kubelets, so that MODE is Unknown and no node falls back: ${noKubelet}`);
  if (noRuntime !== null) simulated.unshift(SIMULATED_HEALTHY);
  const nodes = await all([
    ...(noRuntime === null ? [startRuntime(options)] : []),
    ...simulated.map((node) => startSimulated(options, node)),
  ]);
  return { nodes, break: null };
}

type RealNode = StartedNode & { readonly containerd: LocalContainerd };

/** Returns how a node is started: `pods` is what its pods are called. */
async function realNodes(
  { dir, stops, keep }: NodesOptions,
  { api, kubectl }: KubeAccess,
): Promise<(node: DemoNode, pods: string) => Promise<RealNode>> {
  await kubectl('create', 'namespace', NAMESPACE);
  // No controller creates one here, and no pod is admitted without it.
  await kubectl('create', 'serviceaccount', 'default', '--namespace', NAMESPACE);
  const tokenFile = join(dir, 'agent-token');
  await writeAgentToken(tokenFile, kubectl);
  const client = await createKubeClient({ kubeconfig: api.kubeconfig });
  stops.push(() => client.close());
  return async (node, pods) => {
    const containerd = keep(await startContainerd({ version: '2.1' }));
    const kubelet = keep(await startKubelet({ node: node.name, api, containerd, eventedPleg: true }));
    churn(stops, kubeletPods(client, node.name, containerd.importedImages.busybox), pods);
    const settings = readingOf(kubelet, tokenFile);
    return { ...node, containerd, socket: containerd.socket, isRegistered: true, settings };
  };
}

async function startRuntime({ stops, report, keep }: NodesOptions): Promise<StartedNode> {
  report('starting a real containerd 2.1, with pods that start and end');
  const containerd = keep(await startContainerd({ version: '2.1' }));
  churn(stops, runtimePods(containerd), 'cart');
  return { ...WITHOUT_KUBELET, socket: containerd.socket, isRegistered: false, settings: NO_KUBELET };
}

function churn(stops: Stops, runner: PodRunner, what: string): void {
  const pods = new PodChurn(runner, what);
  stops.push(() => pods.stop());
}

/** This machine may have a kubelet, of another node. */
const NO_KUBELET: PlegwatchSettings = { podsApi: 'off' };

async function startSimulated({ dir, stops }: NodesOptions, node: SimulatedNode): Promise<StartedNode> {
  const folder = join(dir, `runtime-${node.name}`);
  mkdirSync(folder);
  const socket = join(folder, 'cri.sock');
  const flags = Object.entries({ socket, ...node.runtime }).flatMap(([key, value]) => [flagOf(key), value]);
  const runtime = await startProcess({
    name: node.name,
    command: process.execPath,
    args: [DEV_CLI, 'simulate', 'runtime', ...flags],
    logFile: join(folder, 'runtime.log'),
    ready: async () => existsSync(socket),
  });
  stops.push(async () => void (await runtime.stop()));
  return { ...node, socket, isRegistered: false, settings: NO_KUBELET };
}

/** Waits for all of them also if one fails: what still starts could not be stopped. */
async function all<T extends readonly unknown[] | []>(starts: T) {
  await Promise.allSettled(starts);
  return Promise.all(starts);
}
