/*
 * The chart as users run it: helm renders it, and its objects are typed as far as tests look at them.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { parse } from 'yaml';
import { type TemporaryFolder, temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { where } from '../../devtools/localServices/where.ts';

export const ROOT = new URL('../..', import.meta.url).pathname;
export const CHART = join(ROOT, 'helm/plegwatch');
export const NAMESPACE = 'watching';

export type Values = Readonly<Record<string, unknown>>;

export interface ProgramResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Variable {
  readonly name: string;
  readonly value?: string;
}

interface Probe {
  readonly httpGet: { readonly path: string };
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  readonly failureThreshold: number;
  readonly terminationGracePeriodSeconds?: number;
}

interface RenderedContainer {
  readonly args: string[];
  readonly env: Variable[];
  readonly livenessProbe: Probe;
  readonly resources: { readonly limits?: unknown };
  readonly securityContext: unknown;
  readonly volumeMounts: readonly Record<string, unknown>[];
}

export interface PodSpec {
  readonly containers: [RenderedContainer];
  readonly initContainers?: readonly RenderedContainer[];
  readonly serviceAccountName?: string;
  readonly tolerations?: unknown;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly securityContext: { readonly runAsUser: number; readonly seccompProfile: unknown };
  readonly automountServiceAccountToken: boolean;
  readonly volumes?: readonly Record<string, unknown>[];
  readonly terminationGracePeriodSeconds?: number;
}

export interface Rendered {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly subjects?: readonly { readonly name: string; readonly namespace: string }[];
  readonly rules?: unknown;
  readonly stringData?: Readonly<Record<string, string>>;
  readonly spec: PodSpec & {
    template: { spec: PodSpec };
    jobTemplate: { spec: { template: { spec: PodSpec } } };
  };
}

export const MINIMAL: Values = {
  cluster: 'prod-1',
  redis: { url: 'redis://redis:6379', agent: { url: 'redis://redis:6379' } },
  database: { url: 'postgres://plegwatch@postgres:5432/plegwatch' },
};

/** The certificates that kubeadm sets up. */
export const SELF_SIGNED = {
  serverName: '$(PLEGWATCH_NODE)',
  caHostPath: '/var/lib/kubelet/pki/kubelet.crt',
};

/** A namespace that allows privileged pods. */
export const AGENT_NAMESPACE = 'agents';

/** Nodes of two kinds. */
const POOLS = [
  { name: 'workers', nodeSelector: { pool: 'workers' } },
  {
    name: 'crio',
    runtime: 'crio',
    nodeSelector: { pool: 'crio' },
    kubelet: { enabled: false },
    tolerations: [],
    seLinuxOptions: { type: 'spc_t' },
  },
];

/** Takes care of a database that other clusters write to. */
export const HUB: Values = {
  agent: { enabled: false },
  controller: { enabled: false },
  crds: { enabled: false },
  database: { existingSecret: 'owner' },
};

/** Sets up a fleet database, and nothing else. */
export const FLEET: Values = {
  ...HUB,
  migrate: { mode: 'off' },
  maintain: { enabled: false },
  federate: {
    enabled: true,
    database: { url: 'postgres://owner@postgres-fleet/fleet' },
    groups: [
      { name: 'eu', existingSecret: 'reader-eu' },
      { name: 'us', existingSecret: 'reader-us', existingSecretKeys: { url: 'uri' } },
    ],
  },
  networkPolicy: { enabled: true },
};

/** Exports a lake, and nothing else. */
export const LAKE: Values = {
  ...HUB,
  migrate: { mode: 'off' },
  maintain: { enabled: false },
  lake: { enabled: true, volume: { persistentVolumeClaim: { claimName: 'lake' } } },
  networkPolicy: { enabled: true },
};

/** Sets up a fleet database, and two readers of it. */
export const READERS: Values = {
  ...FLEET,
  federate: {
    ...Object(FLEET['federate']),
    readers: ['grafana', 'On Call'].map((role) => ({
      role,
      groups: ['us', 'eu'].map((name) => ({ name, existingSecret: `reader-${name}` })),
    })),
  },
};

const EXTRAS = {
  extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/extra/ca.crt' }],
  extraVolumes: [{ name: 'extra', configMap: { name: 'ca' } }],
  extraVolumeMounts: [{ name: 'extra', mountPath: '/extra', readOnly: true }],
};

/** Values that users change. */
export const VARIANTS: readonly [string, Values][] = [
  ['required values only', MINIMAL],
  ['no agents', { ...MINIMAL, agent: { enabled: false } }],
  ['no resource definition', { ...MINIMAL, crds: { enabled: false } }],
  ['no keeping of the resource definition', { ...MINIMAL, crds: { keep: false } }],
  ["no access to the kubelet's metrics", { ...MINIMAL, agent: { kubelet: { enabled: false } } }],
  [
    'unverified kubelet certificates',
    { ...MINIMAL, agent: { kubelet: { url: 'https://[$(HOST_IP)]:10250', identity: 'skip' } } },
  ],
  ['self-signed kubelet certificates', { ...MINIMAL, agent: { kubelet: SELF_SIGNED } }],
  ['no status lag', { ...MINIMAL, controller: { statusLag: { enabled: false } } }],
  ['conditions on Nodes', { ...MINIMAL, controller: { nodeConditions: { enabled: true } } }],
  ['CRI-O', { ...MINIMAL, runtime: 'crio' }],
  [
    'existing Secrets only',
    {
      cluster: 'prod-1',
      redis: {
        existingSecret: 'redis',
        agent: { existingSecret: 'agent-redis', existingSecretKeys: { url: 'agent' } },
      },
      database: { existingSecret: 'database', owner: { existingSecret: 'owner' } },
    },
  ],
  [
    'URLs only',
    {
      cluster: 'prod-1',
      redis: {
        url: 'redis+cluster://controller:a@redis-0:6379,redis-1:6379',
        agent: { url: 'redis://agent:b@redis' },
      },
      database: { url: 'postgres://controller@postgres/p', owner: { url: 'postgres://owner@postgres/p' } },
    },
  ],
  [
    'Secrets of operators, with certificates',
    {
      cluster: 'prod-1',
      redis: {
        url: 'rediss://redis:6379',
        existingSecret: 'redis',
        existingSecretKeys: { username: 'user', password: 'pass' },
        tls: { caSecret: 'redis-ca', clientSecret: 'redis-client' },
        agent: {
          url: 'rediss://redis:6379',
          existingSecret: 'agent-redis',
          existingSecretKeys: { username: 'user', password: 'pass' },
          clientSecret: 'agent-client',
        },
      },
      database: {
        existingSecret: 'database',
        tls: { mode: 'verify-full', caSecret: 'database-ca' },
        poolMode: 'transaction',
        maxConnections: 8,
        owner: { existingSecret: 'owner', clientSecret: 'owner-client' },
      },
      migrate: {
        queues: 32,
        eventRetentionDays: 7,
        findingRetentionDays: 90,
        controllerRoles: ['one', 'two'],
      },
    },
  ],
  ['a trial', { trial: { enabled: true } }],
  [
    'a trial on volumes, with agents in another namespace and network policies',
    {
      trial: { enabled: true, persistence: 'always' },
      agent: { namespace: AGENT_NAMESPACE },
      networkPolicy: { enabled: true },
    },
  ],
  ['agents in another namespace', { ...MINIMAL, agent: { namespace: AGENT_NAMESPACE } }],
  ['pools of agents', { ...MINIMAL, agentPools: POOLS }],
  ['a migration in the pod of the controller', { ...MINIMAL, migrate: { mode: 'init' } }],
  [
    'network policies',
    {
      ...MINIMAL,
      agentPools: POOLS,
      networkPolicy: { enabled: true, metricsFrom: [{ namespaceSelector: {} }] },
    },
  ],
  ['a hub', HUB],
  [
    'a page, with network policies and a role of its own',
    {
      ...MINIMAL,
      ui: { enabled: true, mcp: true, database: { url: 'postgres://reader@postgres/p' } },
      networkPolicy: { enabled: true },
    },
  ],
  [
    'a page behind a proxy',
    {
      ...MINIMAL,
      ui: {
        enabled: true,
        proxy: { userHeader: 'X-User', groupsHeader: 'X-Groups', addresses: ['10.0.0.0/8'] },
      },
    },
  ],
  [
    'a page for everybody whom a proxy lets through, on a hub',
    {
      ...HUB,
      ui: {
        enabled: true,
        proxy: { userHeader: 'X-User', authorization: 'proxy', addresses: ['10.0.0.0/8'] },
      },
    },
  ],
  ['a fleet database alone, with network policies', FLEET],
  ['a fleet database with readers', READERS],
  ['a lake alone, with network policies', LAKE],
  [
    'a lake of views and days, in a bucket, from a database of its own',
    {
      ...MINIMAL,
      lake: {
        enabled: true,
        volume: { csi: { driver: 'bucket.csi.example.com', volumeAttributes: { bucketName: 'lake' } } },
        views: ['findings', 'gaps'],
        days: 30,
        database: { url: 'postgres://reader@postgres/p' },
        serviceAccountName: 'of-the-bucket',
      },
    },
  ],
  ['no Jobs', { ...MINIMAL, migrate: { mode: 'off' }, maintain: { enabled: false } }],
  [
    'every value that is empty by default',
    {
      ...MINIMAL,
      image: { repository: 'mirror/plegwatch', digest: `sha256:${'0'.repeat(64)}` },
      imagePullSecrets: [{ name: 'mirror' }],
      commonLabels: { team: 'platform', 'example.com/cost': '42' },
      nameOverride: 'pleg',
      fullnameOverride: 'a-name-of-the-forty-characters-allowed-x',
      agent: {
        ...EXTRAS,
        serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/a' } },
        priorityClassName: '',
        tolerations: [],
        updateStrategy: { type: 'OnDelete', rollingUpdate: null },
        seLinuxOptions: { type: 'spc_t' },
        podAnnotations: { 'prometheus.io/scrape': 'true' },
        podLabels: { team: 'nodes' },
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: 'type', operator: 'NotIn', values: ['virtual'] }] },
              ],
            },
          },
        },
      },
      controller: {
        ...EXTRAS,
        serviceAccount: { create: false, name: 'account' },
        affinity: { podAntiAffinity: {} },
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway', labelSelector: {} },
        ],
        replicas: 3,
        maxUnavailable: '50%',
        priorityClassName: 'system-cluster-critical',
        tolerations: [{ key: 'infra', operator: 'Exists', effect: 'NoSchedule' }],
        nodeSelector: { pool: 'infra' },
        podAnnotations: { 'prometheus.io/scrape': 'true' },
        podLabels: { team: 'nodes' },
      },
      migrate: { serviceAccountName: 'owner' },
      maintain: { serviceAccountName: 'owner' },
    },
  ],
];

/** The home of the programs, where they keep what they cache. */
export let home: TemporaryFolder;

/** Gives the programs a home while the tests of a file run. Registers hooks, so each file that runs one calls it. */
export function withHome(): void {
  beforeAll(() => {
    home = temporaryFolder('chart', undefined);
  });
  afterAll(() => home.remove());
}

export function run(program: string, args: readonly string[], input = ''): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const env = { ...process.env, HOME: home.dir };
    const child = execFile(program, args, { env, maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
    });
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

export const helm = (
  args: readonly string[],
  values: Values,
  program: 'helm' | 'helm-3' = 'helm',
): Promise<ProgramResult> => run(where(program), [...args, '--values', '-'], JSON.stringify(values));

const rendered = new Map<string, Promise<string>>();

/** The text of a release called plegwatch. Helm renders it once for a file of tests. */
export function template(values: Values, args: readonly string[] = []): Promise<string> {
  const key = JSON.stringify([values, args]);
  const text = rendered.get(key) ?? templateAgain(values, args);
  rendered.set(key, text);
  return text;
}

export async function templateAgain(values: Values, args: readonly string[] = []): Promise<string> {
  const { code, stdout, stderr } = await helm(
    ['template', 'plegwatch', CHART, '-n', NAMESPACE, ...args],
    values,
  );
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return stdout;
}

const parsed = new Map<string, Rendered | null>();

/** Most releases share most of their objects: each text is parsed once. */
function parsedOnce(text: string): Rendered | null {
  const object = parsed.get(text) ?? parse(text);
  parsed.set(text, object);
  return object;
}

export const documents = (text: string): Rendered[] =>
  text
    .split(/^---$/m)
    .map(parsedOnce)
    .filter((object) => object !== null);

export const render = async (values: Values): Promise<Rendered[]> => documents(await template(values));

export function pick(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name} was rendered`);
  return found;
}

/** The pods of all workloads, by name. */
export function podsOf(objects: readonly Rendered[]): Map<string, PodSpec> {
  const pods = new Map<string, PodSpec>();
  for (const { kind, metadata, spec } of objects) {
    if (kind === 'CronJob') pods.set(metadata.name, spec.jobTemplate.spec.template.spec);
    else if (kind === 'Pod') pods.set(metadata.name, spec);
    else if (['DaemonSet', 'Deployment', 'Job', 'StatefulSet'].includes(kind))
      pods.set(metadata.name, spec.template.spec);
  }
  return pods;
}

export function podOf(objects: readonly Rendered[], name: string): PodSpec {
  const pod = podsOf(objects).get(name);
  if (pod === undefined) throw new Error(`no pod of ${name} was rendered`);
  return pod;
}

interface SecretSource {
  readonly name: string;
  readonly items?: readonly { readonly key: string; readonly path: string }[];
}

/** The Secrets of a pod's projected volumes, by volume. */
export function secretsOf(pod: PodSpec): Map<string, readonly SecretSource[]> {
  const projected = (pod.volumes ?? []).flatMap((volume) => {
    const { sources } = Object(volume['projected']) as { sources?: readonly { secret?: SecretSource }[] };
    const secrets = (sources ?? []).flatMap(({ secret }) => secret ?? []);
    return secrets.length === 0 ? [] : [[String(volume['name']), secrets] as const];
  });
  return new Map(projected);
}

/** The Secret that says how a service is reached: redis, database or database-owner. */
export const secretOf = (pod: PodSpec, service: string): SecretSource | undefined =>
  secretsOf(pod).get(service)?.[0];
