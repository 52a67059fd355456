/*
 * A node: kubelet, containerd and kube-proxy in network, mount, process and host name namespaces of their own. Every path is the one that
 * it has on a real node, so that charts work with their default values. All of it ends with the first process in the namespaces.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isCriReady } from '../localServices/criReadiness.ts';
import { type LocalService, startService } from '../localServices/localService.ts';
import { startInMachine, startMachine } from '../localServices/machine.ts';
import { type RunningProcess, run } from '../localServices/process.ts';
import { where } from '../localServices/where.ts';
import { makeControlGroup } from './controlGroups.ts';
import type { ControlPlane } from './controlPlane.ts';
import { REGISTRY } from './documentedCommands.ts';
import { type ClusterNetwork, CONTROL_ADDRESS, nodeAddress, POD_NETWORK, podSubnet } from './network.ts';

const CRI_SOCKET = '/run/containerd/containerd.sock';
const PAUSE = 'plegwatch.local/pause:1';

export interface ClusterNode {
  readonly name: string;
  /** The socket of its containerd as this machine sees it. */
  readonly socket: string;
  /** A path of the node as this machine sees it. */
  path(path: string): string;
  readonly containerd: LocalService;
  readonly kubelet: LocalService;
  importImage(archive: string): Promise<void>;
  stop(): Promise<void>;
}

export interface NodeOptions {
  readonly name: string;
  /** From 1. */
  readonly index: number;
  readonly dir: string;
  readonly network: ClusterNetwork;
  readonly controlPlane: ControlPlane;
  /** Whether the kubelet signs its serving certificate itself, as kubeadm sets it up, or asks the cluster's authority. */
  readonly selfSigned: boolean;
  /** Its parent group, below which the kubelet makes those of its pods. */
  readonly cgroup: string;
  /** Host and port of the registry that stands in for the documentation's. */
  readonly registry: string;
}

/** Starts a node; returns when its kubelet serves. */
export async function startNode(options: NodeOptions): Promise<ClusterNode> {
  const { name, index, dir, network } = options;
  mkdirSync(dir, { recursive: true });
  const cgroup = makeControlGroup(join(options.cgroup, name));
  const machine = await startMachine(name, dir);
  const first = machine.pid;
  const service = (start: () => Promise<RunningProcess>) => startService(start, async () => {});
  try {
    await network.connectNode(index, first);
    const path = (inside: string) => `/proc/${first}/root${inside}`;
    const socket = path(CRI_SOCKET);
    const containerd = await service(() => startContainerd(first, options, socket));
    const importImage = async (archive: string) => {
      const into = ['--address', socket, '--namespace', 'k8s.io', 'images', 'import', '--local'];
      await run(where('ctr-2.1'), [...into, '--snapshotter', 'overlayfs', archive], {
        timeoutMs: 300_000,
      });
    };
    for (const image of ['image-pause', 'image-busybox'] as const) await importImage(where(image));
    const kubelet = await service(() => startKubelet(first, options, cgroup));
    if (!options.selfSigned) await options.controlPlane.approveServingCertificate(name);
    await startProxy(first, options);
    return { name, socket, path, containerd, kubelet, importImage, stop: () => machine.stop() };
  } catch (error) {
    await machine.stop();
    throw error;
  }
}

async function startContainerd(
  node: number,
  { dir, index, registry }: NodeOptions,
  socket: string,
): Promise<RunningProcess> {
  const cni = join(dir, 'cni');
  mkdirSync(cni, { recursive: true });
  writeFileSync(join(cni, '10-pods.conflist'), JSON.stringify(podNetwork(index)));
  const file = join(dir, 'containerd.toml');
  const registries = join(dir, 'registries');
  mkdirSync(join(registries, REGISTRY), { recursive: true });
  writeFileSync(join(registries, REGISTRY, 'hosts.toml'), `server = "http://${registry}"\n`);
  writeFileSync(file, containerdConfig(cni, registries));
  const programs = [dirname(where('containerd-shim-2.1')), dirname(where('runc'))];
  return startInMachine(node, {
    name: 'containerd',
    command: where('containerd-2.1'),
    args: ['--config', file],
    env: { ...process.env, PATH: [...programs, process.env['PATH'] ?? ''].join(':') },
    logFile: join(dir, 'containerd.log'),
    ready: () => isCriReady(socket),
  });
}

/** Every packet of a pod passes the node, so that Services work between pods of one node without a filter for bridges. */
function podNetwork(index: number): object {
  const ipam = {
    type: 'host-local',
    ranges: [[{ subnet: podSubnet(index) }]],
    routes: [{ dst: '0.0.0.0/0' }],
  };
  return { cniVersion: '1.0.0', name: 'pods', plugins: [{ type: 'ptp', ipMasq: false, ipam }] };
}

function containerdConfig(cni: string, registries: string): string {
  return `version = 3
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing"]

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${PAUSE}"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "${registries}"
[plugins."io.containerd.cri.v1.runtime"]
  enable_selinux = false
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "${where('runc')}"
  SystemdCgroup = false
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["${dirname(where('cni-ptp'))}"]
  conf_dir = "${cni}"
`;
}

async function startKubelet(
  node: number,
  { name, index, dir, controlPlane, selfSigned }: NodeOptions,
  cgroup: string,
): Promise<RunningProcess> {
  writeFileSync(join(dir, 'resolv.conf'), `nameserver ${CONTROL_ADDRESS}\n`);
  const file = join(dir, 'kubelet.json');
  writeFileSync(
    file,
    JSON.stringify({
      ...kubeletConfig(dir, controlPlane.certificates.ca, cgroup),
      serverTLSBootstrap: !selfSigned,
    }),
  );
  return startInMachine(node, {
    name: 'kubelet',
    command: where('kubelet'),
    args: [
      `--config=${file}`,
      `--kubeconfig=${controlPlane.kubeconfigOfNode(name)}`,
      `--hostname-override=${name}`,
      `--node-ip=${nodeAddress(index)}`,
      '--v=2',
    ],
    logFile: join(dir, 'kubelet.log'),
    ready: async () => (await controlPlane.kubectl('get', 'node', name)) !== '',
  });
}

function kubeletConfig(dir: string, ca: string, cgroup: string): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: `unix://${CRI_SOCKET}`,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: ca } },
    authorization: { mode: 'Webhook' },
    featureGates: { EventedPLEG: true },
    clusterDNS: [CONTROL_ADDRESS],
    clusterDomain: 'cluster.local',
    resolvConf: join(dir, 'resolv.conf'),
    volumePluginDir: join(dir, 'volume-plugins'),
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: true,
    cgroupRoot: cgroup,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    makeIPTablesUtilChains: false,
    localStorageCapacityIsolation: false,
    evictionHard: {},
    imageGCHighThresholdPercent: 100,
  };
}

async function startProxy(node: number, { name, dir, controlPlane }: NodeOptions): Promise<RunningProcess> {
  const file = join(dir, 'kube-proxy.json');
  const config = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    hostnameOverride: name,
    clusterCIDR: POD_NETWORK,
    clientConnection: { kubeconfig: controlPlane.proxyKubeconfig },
    // These settings belong to the whole machine.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  };
  writeFileSync(file, JSON.stringify(config));
  return startInMachine(node, {
    name: 'kube-proxy',
    command: where('kube-proxy'),
    args: [`--config=${file}`],
    env: { ...process.env, PATH: `${dirname(where('nft'))}:${process.env['PATH'] ?? ''}` },
    logFile: join(dir, 'kube-proxy.log'),
  });
}
