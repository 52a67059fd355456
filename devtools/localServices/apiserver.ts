/*
 * A real Kubernetes API server of one's own, with its etcd: RBAC on, service-account tokens that work, everything on
 * loopback. There are no controllers and no nodes unless somebody starts them.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { freePort, type RunningProcess, startProcess } from './process.ts';
import { scratch } from './scratch.ts';
import { keepService, type Service } from './service.ts';
import { where } from './where.ts';

export interface ApiServerPart extends Service {
  readonly url: string;
  /** A kubeconfig file of the administrator (group system:masters). */
  readonly kubeconfig: string;
  /** The administrator's bearer token. */
  readonly token: string;
  /** The certificate authority of the server, PEM. */
  readonly ca: string;
  /** A kubeconfig file of one of `users`. */
  kubeconfigOf(user: string): string;
  /** Its etcd, to kill or freeze on its own. It stops with the API server. */
  readonly etcd: Service;
}

export interface ApiServerOptions {
  /** Where everything is; a temporary folder when not said. A folder of the caller's is kept. */
  readonly dir?: string;
  /** More users, by name, with their groups; each has a token. RBAC decides what they may do. */
  readonly users?: Readonly<Record<string, readonly string[]>>;
  /** More arguments for kube-apiserver. */
  readonly args?: readonly string[];
}

const ADMIN = 'plegwatch-admin';
const ISSUER = 'https://kubernetes.default.svc.cluster.local';

interface Place {
  readonly dir: string;
  readonly certs: string;
  readonly tokens: string;
  readonly accountKey: string;
}

/** Starts etcd and kube-apiserver; returns when /readyz says so (about 6 s). `restart`, `kill` and `pid` are the API server's. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServerPart> {
  const command = where('kube-apiserver');
  const etcdCommand = where('etcd');
  const folder = scratch('apiserver', options.dir);
  const dir = folder.dir;
  const place: Place = {
    dir,
    certs: join(dir, 'certs'),
    tokens: join(dir, 'tokens.csv'),
    accountKey: join(dir, 'service-accounts.pem'),
  };
  mkdirSync(place.certs, { recursive: true });
  const tokens = writeTokens(place, { [ADMIN]: ['system:masters'], ...options.users });
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const token = tokens.get(ADMIN) ?? '';

  const { etcd, etcdUrl } = await startEtcd(etcdCommand, dir, async () => folder.remove());
  const service = await keepService(
    () =>
      startProcess({
        name: 'kube-apiserver',
        command,
        args: [...serverArgs(place, port, etcdUrl), ...(options.args ?? [])],
        cwd: dir,
        logFile: join(dir, 'kube-apiserver.log'),
        ready: () => isReady(url, place, token),
        readyWithinMs: 120_000,
      }),
    () => etcd.stop(),
  );

  const ca = readFileSync(serverCertificate(place), 'utf8');
  const files = new Map<string, string>();
  for (const [user, userToken] of tokens) files.set(user, writeKubeconfig(dir, user, url, ca, userToken));
  const kubeconfigOf = (user: string): string => {
    const file = files.get(user);
    if (file === undefined) throw new Error(`no user ${user} was asked for when the API server was started`);
    return file;
  };
  return Object.assign(service, { url, token, ca, etcd, kubeconfigOf, kubeconfig: kubeconfigOf(ADMIN) });
}

async function startEtcd(
  command: string,
  dir: string,
  clean: () => Promise<void>,
): Promise<{ etcd: Service; etcdUrl: string }> {
  const etcdUrl = `http://127.0.0.1:${await freePort()}`;
  const peerUrl = `http://127.0.0.1:${await freePort()}`;
  const start = (): Promise<RunningProcess> =>
    startProcess({
      name: 'etcd',
      command,
      args: [
        `--data-dir=${join(dir, 'etcd')}`,
        `--listen-client-urls=${etcdUrl}`,
        `--advertise-client-urls=${etcdUrl}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=default=${peerUrl}`,
        '--unsafe-no-fsync',
        '--log-level=warn',
      ],
      cwd: dir,
      logFile: join(dir, 'etcd.log'),
      ready: async () => (await fetch(`${etcdUrl}/health`, { signal: AbortSignal.timeout(1_000) })).ok,
    });
  return { etcd: await keepService(start, clean), etcdUrl };
}

function serverArgs(place: Place, port: number, etcdUrl: string): string[] {
  return [
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    // It makes its own certificate here at its first start.
    `--cert-dir=${place.certs}`,
    `--token-auth-file=${place.tokens}`,
    '--authorization-mode=Node,RBAC',
    `--service-account-issuer=${ISSUER}`,
    `--service-account-key-file=${place.accountKey}`,
    `--service-account-signing-key-file=${place.accountKey}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--allow-privileged=true',
    // An address of loopback may not be an endpoint; nobody looks for the API server through its Service here.
    '--endpoint-reconciler-type=none',
    '--shutdown-delay-duration=0s',
  ];
}

/** Tokens and the key for service accounts survive a restart from the same folder. */
function writeTokens(place: Place, users: Readonly<Record<string, readonly string[]>>): Map<string, string> {
  const tokens = new Map(Object.keys(users).map((user) => [user, randomBytes(24).toString('hex')]));
  const lines = [...tokens].map(
    ([user, token]) => `${token},${user},${user},"${(users[user] ?? []).join(',')}"`,
  );
  writeFileSync(place.tokens, `${lines.join('\n')}\n`, { mode: 0o600 });
  if (!existsSync(place.accountKey)) {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(place.accountKey, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
  }
  return tokens;
}

/** Holds the server's certificate and the authority that signed it. */
function serverCertificate(place: Place): string {
  return join(place.certs, 'apiserver.crt');
}

function isReady(url: string, place: Place, token: string): Promise<boolean> {
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

/** YAML is a superset of JSON, and every client of Kubernetes reads it as such. */
function writeKubeconfig(dir: string, user: string, server: string, ca: string, token: string): string {
  const file = join(dir, `${user.replaceAll(/[^A-Za-z0-9.-]/g, '-')}.kubeconfig`);
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'plegwatch',
    clusters: [
      {
        name: 'plegwatch',
        cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') },
      },
    ],
    contexts: [{ name: 'plegwatch', context: { cluster: 'plegwatch', user } }],
    users: [{ name: user, user: { token } }],
  };
  writeFileSync(file, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
  return file;
}
