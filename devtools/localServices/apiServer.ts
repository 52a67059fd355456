/*
 * A Kubernetes API server with its own etcd on loopback: RBAC is on and service-account tokens work. There are no
 * controllers and no nodes unless the caller starts them.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { type KubeUsers, writeAccountKey, writeKubeconfig, writeTokens } from './kubeCredentials.ts';
import { type LocalService, startService } from './localService.ts';
import { freePort, type RunningProcess, startProcess } from './process.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { where } from './where.ts';

export interface LocalApiServer extends LocalService {
  readonly url: string;
  /** The administrator's kubeconfig file (group system:masters). */
  readonly kubeconfig: string;
  /** The administrator's bearer token. */
  readonly token: string;
  /** The server's certificate authority, PEM. */
  readonly ca: string;
  /** The kubeconfig file of one of `users`. */
  kubeconfigOf(user: string): string;
  /** Its etcd, so that a test can kill or freeze it alone. It stops with the API server. */
  readonly etcd: LocalService;
}

export interface ApiServerOptions {
  /** Where all its files are. Default: a temporary folder. The caller's own folder is kept. */
  readonly dir?: string;
  /** More users with their groups, by name; each gets a token. RBAC decides what they may do. */
  readonly users?: KubeUsers;
  /** More arguments for kube-apiserver. */
  readonly args?: readonly string[];
}

const ADMIN = 'plegwatch-admin';
export const ISSUER = 'https://kubernetes.default.svc.cluster.local';

interface ApiServerFiles {
  readonly dir: string;
  readonly certs: string;
  readonly tokens: string;
  readonly accountKey: string;
}

/** Starts etcd and kube-apiserver; returns when /readyz succeeds (about 6 s). `restart`, `kill` and `pid` are the API server's. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<LocalApiServer> {
  const command = where('kube-apiserver');
  const etcdCommand = where('etcd');
  const folder = temporaryFolder('apiserver', options.dir);
  const dir = folder.dir;
  const place: ApiServerFiles = {
    dir,
    certs: join(dir, 'certs'),
    tokens: join(dir, 'tokens.csv'),
    accountKey: join(dir, 'service-accounts.pem'),
  };
  mkdirSync(place.certs, { recursive: true });
  const tokens = writeTokens(place.tokens, { [ADMIN]: ['system:masters'], ...options.users });
  // It survives a start in the same folder.
  writeAccountKey(place.accountKey);
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const token = tokens.get(ADMIN) ?? '';

  const { etcd, etcdUrl } = await startEtcd(etcdCommand, dir, async () => folder.remove());
  const service = await startService(
    () =>
      startProcess({
        name: 'kube-apiserver',
        command,
        args: [...serverArgs(place, port, etcdUrl), ...(options.args ?? [])],
        cwd: dir,
        logFile: join(dir, 'kube-apiserver.log'),
        ready: () => isReady(url, place, token),
      }),
    () => etcd.stop(),
  );

  const ca = readFileSync(serverCertificate(place), 'utf8');
  const files = new Map<string, string>();
  for (const [user, userToken] of tokens) {
    files.set(user, writeKubeconfig(dir, user, { server: url, ca, token: userToken }));
  }
  const kubeconfigOf = (user: string): string => {
    const file = files.get(user);
    if (file === undefined) throw new Error(`the API server was started without a user ${user}`);
    return file;
  };
  return Object.assign(service, { url, token, ca, etcd, kubeconfigOf, kubeconfig: kubeconfigOf(ADMIN) });
}

async function startEtcd(
  command: string,
  dir: string,
  clean: () => Promise<void>,
): Promise<{ etcd: LocalService; etcdUrl: string }> {
  const etcdUrl = `http://127.0.0.1:${await freePort()}`;
  const peerUrl = `http://127.0.0.1:${await freePort()}`;
  const start = (): Promise<RunningProcess> =>
    startProcess({
      name: 'etcd',
      command,
      args: etcdArgs(dir, etcdUrl, peerUrl),
      cwd: dir,
      logFile: join(dir, 'etcd.log'),
      ready: async () => (await fetch(`${etcdUrl}/health`, { signal: AbortSignal.timeout(1_000) })).ok,
    });
  return { etcd: await startService(start, clean), etcdUrl };
}

export function etcdArgs(dir: string, clientUrl: string, peerUrl: string): string[] {
  return [
    `--data-dir=${join(dir, 'etcd')}`,
    `--listen-client-urls=${clientUrl}`,
    `--advertise-client-urls=${clientUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ];
}

function serverArgs(place: ApiServerFiles, port: number, etcdUrl: string): string[] {
  return [
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    // It creates its certificate here when it first starts.
    `--cert-dir=${place.certs}`,
    `--token-auth-file=${place.tokens}`,
    '--authorization-mode=Node,RBAC',
    `--service-account-issuer=${ISSUER}`,
    `--service-account-key-file=${place.accountKey}`,
    `--service-account-signing-key-file=${place.accountKey}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--allow-privileged=true',
    // A loopback address may not be an endpoint, and nothing here finds the API server through its Service.
    '--endpoint-reconciler-type=none',
    '--shutdown-delay-duration=0s',
  ];
}

/** The server's certificate and the authority that signed it. */
function serverCertificate(place: ApiServerFiles): string {
  return join(place.certs, 'apiserver.crt');
}

function isReady(url: string, place: ApiServerFiles, token: string): Promise<boolean> {
  const ca = readFileSync(serverCertificate(place));
  return new Promise((resolve) => {
    const request = get(
      `${url}/readyz`,
      { ca, agent: false, timeout: 2_000, headers: { authorization: `Bearer ${token}` } },
      (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      },
    );
    request.once('error', () => resolve(false));
    request.once('timeout', () => request.destroy());
  });
}
