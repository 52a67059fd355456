/*
 * etcd, kube-apiserver, kube-controller-manager, kube-scheduler and a DNS server, in the control namespace.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { etcdArgs, ISSUER } from '../localServices/apiServer.ts';
import {
  type KubeUsers,
  writeAccountKey,
  writeKubeconfig,
  writeTokens,
} from '../localServices/kubeCredentials.ts';
import { type RunningProcess, run, startProcess, waitFor } from '../localServices/process.ts';
import { type ProgramName, where } from '../localServices/where.ts';
import { type Certificates, makeCertificates } from './certificates.ts';
import { API_SERVICE_ADDRESS, type ClusterNetwork, CONTROL_ADDRESS, SERVICE_NETWORK } from './network.ts';

const ADMIN = 'admin';
const CONTROLLER_MANAGER = 'system:kube-controller-manager';
const SCHEDULER = 'system:kube-scheduler';
const PROXY = 'system:kube-proxy';
const USERS: KubeUsers = {
  [ADMIN]: ['system:masters'],
  [CONTROLLER_MANAGER]: [],
  [SCHEDULER]: [],
  [PROXY]: [],
};
const userOfNode = (node: string): string => `system:node:${node}`;
const ETCD = 'http://127.0.0.1:2379';
const URL = `https://${CONTROL_ADDRESS}:6443`;

export interface ControlPlane {
  readonly certificates: Certificates;
  /** The administrator's kubeconfig file. */
  readonly kubeconfig: string;
  readonly proxyKubeconfig: string;
  kubeconfigOfNode(node: string): string;
  /** Waits until the kubelet of a node asks for its serving certificate, and approves. Nothing in Kubernetes does. */
  approveServingCertificate(node: string): Promise<void>;
  /** Runs kubectl as the administrator; returns its output. */
  kubectl(...args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

export interface ControlPlaneOptions {
  readonly dir: string;
  readonly network: ClusterNetwork;
  /** The names of all nodes that will ever join. */
  readonly nodes: readonly string[];
  /** Names that resolve to the control namespace, beside those of Services. */
  readonly hosts: readonly string[];
}

export async function startControlPlane({
  dir,
  network,
  nodes,
  hosts,
}: ControlPlaneOptions): Promise<ControlPlane> {
  mkdirSync(dir, { recursive: true });
  const certificates = await makeCertificates(dir, [CONTROL_ADDRESS, API_SERVICE_ADDRESS, '127.0.0.1']);
  const file = (name: string) => join(dir, name);
  const users = {
    ...USERS,
    ...Object.fromEntries(nodes.map((node) => [userOfNode(node), ['system:nodes']])),
  };
  const tokens = writeTokens(file('tokens.csv'), users);
  writeAccountKey(file('service-accounts.pem'));
  const ca = readFileSync(certificates.ca, 'utf8');
  const kubeconfigOf = (user: string) =>
    writeKubeconfig(dir, user, { server: URL, ca, token: tokens.get(user) ?? '' });
  const kubeconfig = kubeconfigOf(ADMIN);
  const kubectl = (...args: readonly string[]) =>
    run(where('kubectl'), ['--kubeconfig', kubeconfig, ...args], { networkOf: network.pid });

  const processes: RunningProcess[] = [];
  const start = async (name: string, program: ProgramName, args: readonly string[], ready?: string[]) => {
    const process = await startProcess({
      name,
      command: where(program),
      args,
      cwd: dir,
      networkOf: network.pid,
      logFile: file(`${name}.log`),
      readyWithinMs: 180_000,
      ...(ready === undefined ? {} : { ready: async () => (await kubectl(...ready)) !== '' }),
    });
    processes.push(process);
  };
  // The API server before its etcd: it does not end without one.
  const stop = async () => {
    for (const process of processes.splice(0).reverse()) await process.stop();
  };
  try {
    await start('etcd', 'etcd', etcdArgs(dir, ETCD, 'http://127.0.0.1:2380'));
    await start('kube-apiserver', 'kube-apiserver', apiServerArgs(certificates, file), [
      'get',
      '--raw=/readyz',
    ]);
    await start('kube-controller-manager', 'kube-controller-manager', [
      `--kubeconfig=${kubeconfigOf(CONTROLLER_MANAGER)}`,
      `--root-ca-file=${certificates.ca}`,
      `--service-account-private-key-file=${file('service-accounts.pem')}`,
      `--cluster-signing-cert-file=${certificates.ca}`,
      `--cluster-signing-key-file=${certificates.caKey}`,
      '--use-service-account-credentials=true',
      '--leader-elect=false',
      '--bind-address=127.0.0.1',
    ]);
    await start('kube-scheduler', 'kube-scheduler', [
      `--kubeconfig=${kubeconfigOf(SCHEDULER)}`,
      '--leader-elect=false',
      '--bind-address=127.0.0.1',
    ]);
    writeFileSync(file('Corefile'), corefile(kubeconfig, hosts));
    await start('coredns', 'coredns', [`-conf=${file('Corefile')}`]);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    certificates,
    kubeconfig,
    proxyKubeconfig: kubeconfigOf(PROXY),
    kubeconfigOfNode: (node) => kubeconfigOf(userOfNode(node)),
    kubectl,
    approveServingCertificate: (node) =>
      waitFor(`${node} asks for a certificate`, 240_000, async () => {
        const its = `{range .items[?(@.spec.username=="${userOfNode(node)}")]}{.metadata.name} {end}`;
        const requests = (await kubectl('get', 'csr', '-o', `jsonpath=${its}`)).split(' ').filter(Boolean);
        if (requests.length > 0) await kubectl('certificate', 'approve', ...requests);
        return requests.length > 0;
      }),
    stop,
  };
}

function apiServerArgs(certificates: Certificates, file: (name: string) => string): string[] {
  return [
    `--etcd-servers=${ETCD}`,
    `--bind-address=${CONTROL_ADDRESS}`,
    `--advertise-address=${CONTROL_ADDRESS}`,
    '--secure-port=6443',
    `--tls-cert-file=${certificates.apiServer}`,
    `--tls-private-key-file=${certificates.apiServerKey}`,
    `--client-ca-file=${certificates.ca}`,
    `--token-auth-file=${file('tokens.csv')}`,
    `--kubelet-client-certificate=${certificates.kubeletClient}`,
    `--kubelet-client-key=${certificates.kubeletClientKey}`,
    '--kubelet-preferred-address-types=InternalIP',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    `--service-account-issuer=${ISSUER}`,
    `--service-account-key-file=${file('service-accounts.pem')}`,
    `--service-account-signing-key-file=${file('service-accounts.pem')}`,
    `--service-cluster-ip-range=${SERVICE_NETWORK}`,
    '--allow-privileged=true',
    '--shutdown-delay-duration=0s',
  ];
}

function corefile(kubeconfig: string, hosts: readonly string[]): string {
  return `.:53 {
  bind ${CONTROL_ADDRESS}
  errors
  hosts {
    ${CONTROL_ADDRESS} ${hosts.join(' ')}
    fallthrough
  }
  kubernetes cluster.local {
    kubeconfig ${kubeconfig}
  }
}
`;
}
