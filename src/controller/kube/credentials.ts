/*
 * Where the API server is and who we are: from `--kubeconfig`, or from the service account of the pod.
 *
 * What stands in files (certificates, tokens) is read again twice a minute and after every 401, because service account
 * tokens and client certificates are rotated under running programs.
 */
import { createHash } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { messageOf, PlegwatchError } from '../../platform/errors.ts';

/** How one request reaches the API server. */
export interface Connection {
  readonly server: URL;
  readonly agent: http.Agent;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Credentials {
  /** Throws KUBE_CONFIG where the files it needs cannot be read. */
  connection(): Promise<Connection>;
  /** The next connection reads every file again. */
  expire(): void;
  close(): void;
}

const REREAD_MS = 30_000;
const CURE =
  'Set --kubeconfig (PLEGWATCH_KUBECONFIG) to a readable kubeconfig, run in a pod with a service account, or use --no-kube.';

/** Reads the configuration once, to fail early. Throws KUBE_CONFIG. */
export async function loadCredentials(kubeconfig: string | undefined): Promise<Credentials> {
  // Loaded when it is needed only: it is the largest package of the program.
  const { KubeConfig: Config } = await import('@kubernetes/client-node');
  const read = () => configFrom(new Config(), kubeconfig);
  let current = await openConnection(read());
  let readAt = performance.now();

  return {
    async connection() {
      if (performance.now() - readAt < REREAD_MS) return current;
      const fresh = await openConnection(read());
      readAt = performance.now();
      current = fresh.tls === current.tls ? keepAgent(fresh, current) : replaceAgent(fresh, current);
      return current;
    },
    expire() {
      readAt = Number.NEGATIVE_INFINITY;
    },
    close() {
      current.agent.destroy();
    },
  };
}

type OpenConnection = Connection & { readonly tls: string };

function keepAgent(fresh: OpenConnection, old: OpenConnection): OpenConnection {
  fresh.agent.destroy();
  return { ...fresh, agent: old.agent };
}

function replaceAgent(fresh: OpenConnection, old: OpenConnection): OpenConnection {
  old.agent.destroy();
  return fresh;
}

function configFrom(config: KubeConfig, kubeconfig: string | undefined): KubeConfig {
  if (kubeconfig === undefined) {
    if (!process.env['KUBERNETES_SERVICE_HOST']) {
      throw new PlegwatchError(
        'KUBE_CONFIG',
        'There is no --kubeconfig, and this is not a pod of a cluster.',
        CURE,
      );
    }
    config.loadFromCluster();
    return config;
  }
  try {
    config.loadFromFile(kubeconfig);
  } catch (error) {
    throw new PlegwatchError(
      'KUBE_CONFIG',
      `--kubeconfig ${kubeconfig} cannot be read: ${messageOf(error)}.`,
      CURE,
      {
        cause: error,
      },
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
      {
        cause: error,
      },
    );
  }
}

function agentFor(server: URL, options: https.RequestOptions, proxyUrl: string | undefined): http.Agent {
  // Only the library's own agent knows how to go through a proxy.
  if (proxyUrl && options.agent instanceof http.Agent) return options.agent;
  // Idle connections go after half a minute: balancers drop them silently, and the next request would hang.
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

/** Tells whether the connections of the pool were made with these certificates. */
function digestOf({ ca, cert, key, servername, rejectUnauthorized }: https.RequestOptions): string {
  const parts = [ca, cert, key, servername, rejectUnauthorized].map(String);
  return createHash('sha256').update(parts.join('\0')).digest('hex');
}

function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}
