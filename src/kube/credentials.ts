/*
 * The address of the API server and our credentials, from `--kubeconfig` or the service account of the pod.
 *
 * Certificates and tokens in files are read again every 30 s and after each 401, because they are rotated while the program runs.
 */
import { createHash } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { monoNow } from '../platform/clock.ts';
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import { between, millis, mono } from '../protocol/units.ts';

export interface ApiConnection {
  readonly server: URL;
  readonly agent: http.Agent;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Credentials {
  /** Throws KUBE_CONFIG if the files cannot be read. */
  connection(): Promise<ApiConnection>;
  /** Makes the next call of `connection` read the files again. */
  expire(): void;
  close(): void;
}

const REREAD_AFTER = millis(30_000);
const CURE =
  'Set --kubeconfig (PLEGWATCH_KUBECONFIG) to a readable kubeconfig, run in a pod with a service account, or use --no-kube.';

export async function loadCredentials(kubeconfig: string | undefined, now = monoNow): Promise<Credentials> {
  // Imported on demand: it is the largest package of the program.
  const { KubeConfig: Config } = await import('@kubernetes/client-node');
  const read = () => configFrom(new Config(), kubeconfig);
  let current = await openConnection(read());
  let readAt = now();

  return {
    async connection() {
      if (between(readAt, now()) < REREAD_AFTER) return current;
      const fresh = await openConnection(read());
      readAt = now();
      // The agent is replaced only if its certificates changed.
      const [agent, unused] =
        fresh.tls === current.tls ? [current.agent, fresh.agent] : [fresh.agent, current.agent];
      retire(unused);
      current = { ...fresh, agent };
      return current;
    },
    expire() {
      readAt = mono(Number.NEGATIVE_INFINITY);
    },
    close() {
      current.agent.destroy();
    },
  };
}

/** Closes the connections that no request uses, and each of the others after its response: requests under way go on. */
function retire(agent: http.Agent): void {
  agent.maxFreeSockets = 0;
  for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
}

/** `tls` is a digest of the certificates that the agent uses. */
type OpenConnection = ApiConnection & { readonly tls: string };

function configFrom(config: KubeConfig, kubeconfig: string | undefined): KubeConfig {
  if (kubeconfig === undefined) {
    config.loadFromCluster();
    // In a pod the kubelet has put the address of the API server into the environment.
    if (URL.canParse(config.getCurrentCluster()?.server ?? '')) return config;
    const message = 'There is no --kubeconfig, and the program does not run in a pod.';
    throw new PlegwatchError('KUBE_CONFIG', message, CURE);
  }
  try {
    config.loadFromFile(kubeconfig);
  } catch (error) {
    throw new PlegwatchError(
      'KUBE_CONFIG',
      `--kubeconfig ${kubeconfig} cannot be read: ${messageOf(error)}.`,
      CURE,
      { cause: error },
    );
  }
  if (config.getCurrentCluster() === null || config.getCurrentUser() === null) {
    throw new PlegwatchError(
      'KUBE_CONFIG',
      `--kubeconfig ${kubeconfig} has no current context with a cluster and a user.`,
      'Choose one with kubectl config use-context.',
    );
  }
  return config;
}

async function openConnection(config: KubeConfig): Promise<OpenConnection> {
  const cluster = config.getCurrentCluster();
  const options: https.RequestOptions = {};
  try {
    const server = new URL(cluster?.server ?? '');
    await config.applyToHTTPSOptions(options);
    return {
      server,
      agent: agentFor(server, options, cluster?.proxyUrl),
      headers: headersOf(options),
      tls: digestOf(options),
    };
  } catch (error) {
    throw new PlegwatchError(
      'KUBE_CONFIG',
      `The credentials for the API server cannot be read: ${messageOf(error)}.`,
      CURE,
      { cause: error },
    );
  }
}

function agentFor(server: URL, options: https.RequestOptions, proxyUrl: string | undefined): http.Agent {
  // Only the library's agent can use a proxy.
  if (proxyUrl && options.agent instanceof http.Agent) return options.agent;
  // Load balancers drop idle connections silently, and the next request would hang: close them after 30 s.
  const pool: http.AgentOptions = {
    keepAlive: true,
    keepAliveMsecs: 15_000,
    timeout: 30_000,
    maxSockets: 16,
  };
  if (server.protocol === 'http:') return new http.Agent(pool);
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  return new https.Agent({ ...pool, ...defined({ ca, cert, key, servername, rejectUnauthorized }) });
}

function headersOf(options: https.RequestOptions): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {}))
    headers[name.toLowerCase()] = String(value).trim();
  if (options.auth) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return headers;
}

function digestOf({ ca, cert, key, servername, rejectUnauthorized }: https.RequestOptions): string {
  const parts = [ca, cert, key, servername, rejectUnauthorized].map(String);
  return createHash('sha256').update(parts.join('\0')).digest('hex');
}

function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}
