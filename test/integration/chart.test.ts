/*
 * The chart, tested with the programs that users have: helm renders and installs it, a real API server accepts every object,
 * and the controller's requests succeed with the permissions it grants.
 */
import { execFile } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type TemporaryFolder, temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { where } from '../../devtools/localServices/where.ts';
import { HAND_OVER_MS } from '../../src/agent/agent.ts';
import { AGENT_SETTINGS } from '../../src/agent/config.ts';
import { CONTROLLER_SETTINGS, MAINTAIN_SETTINGS, MIGRATE_SETTINGS } from '../../src/controller/config.ts';
import { createKubeClient, type KubeClient } from '../../src/controller/kube/client.ts';
import { NODES, PLEG_REPORTS } from '../../src/controller/kube/object.ts';
import { putReport } from '../../src/controller/reports/put.ts';
import type { ReportStatus } from '../../src/controller/reports/status.ts';
import { REQUIRED, type SettingTable, variableOf } from '../../src/platform/settings.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const CHART = join(ROOT, 'helm/plegwatch');
const NAMESPACE = 'watching';
const AT = '2026-11-20T12:00:00Z';

type Values = Readonly<Record<string, unknown>>;

interface ProgramResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } };
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

interface PodSpec {
  readonly containers: [RenderedContainer];
  readonly securityContext: { readonly runAsUser: number; readonly seccompProfile: unknown };
  readonly automountServiceAccountToken: boolean;
  readonly volumes?: readonly Record<string, unknown>[];
  readonly terminationGracePeriodSeconds?: number;
}

interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly rules?: unknown;
  readonly stringData?: Readonly<Record<string, string>>;
  readonly spec: { template: { spec: PodSpec }; jobTemplate: { spec: { template: { spec: PodSpec } } } };
}

const MINIMAL: Values = {
  cluster: 'prod-1',
  redis: { url: 'redis://redis:6379' },
  database: { url: 'postgres://plegwatch@postgres:5432/plegwatch' },
};

/** The certificates that kubeadm sets up. */
const SELF_SIGNED = { serverName: '$(PLEGWATCH_NODE)', caHostPath: '/var/lib/kubelet/pki/kubelet.crt' };

/** Values that users change. */
const VARIANTS: readonly [string, Values][] = [
  ['required values only', MINIMAL],
  ['no agents', { ...MINIMAL, agent: { enabled: false } }],
  ['no resource definition', { ...MINIMAL, crds: { enabled: false } }],
  ['no keeping of the resource definition', { ...MINIMAL, crds: { keep: false } }],
  ["no access to the kubelet's metrics", { ...MINIMAL, agent: { kubelet: { enabled: false } } }],
  [
    'unverified kubelet certificates',
    { ...MINIMAL, agent: { kubelet: { url: 'https://[$(HOST_IP)]:10250', insecureSkipVerify: true } } },
  ],
  ['self-signed kubelet certificates', { ...MINIMAL, agent: { kubelet: SELF_SIGNED } }],
  ['no status lag', { ...MINIMAL, controller: { statusLag: { enabled: false } } }],
  ['CRI-O', { ...MINIMAL, agent: { criEndpoint: 'unix:///run/crio/crio.sock' } }],
  [
    'existing Secrets only',
    {
      cluster: 'prod-1',
      redis: {
        existingSecret: 'redis',
        agent: { existingSecret: 'agent-redis', existingSecretKey: 'agent' },
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
  ['no Jobs', { ...MINIMAL, migrate: { enabled: false }, maintain: { enabled: false } }],
  [
    'every value that is empty by default',
    {
      ...MINIMAL,
      image: { repository: 'mirror/plegwatch', digest: `sha256:${'0'.repeat(64)}` },
      imagePullSecrets: [{ name: 'mirror' }],
      agent: {
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
        priorityClassName: 'system-cluster-critical',
        tolerations: [{ key: 'infra', operator: 'Exists', effect: 'NoSchedule' }],
        nodeSelector: { pool: 'infra' },
        podAnnotations: { 'prometheus.io/scrape': 'true' },
        podLabels: { team: 'nodes' },
      },
    },
  ],
];

function run(program: string, args: readonly string[], input = ''): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const env = { ...process.env, HOME: home.dir };
    const child = execFile(program, args, { env, maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
    });
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

const helm = (args: readonly string[], values: Values): Promise<ProgramResult> =>
  run(where('helm'), [...args, '--values', '-'], JSON.stringify(values));

/** The rendered text of a release called plegwatch. */
async function template(values: Values): Promise<string> {
  const { code, stdout, stderr } = await helm(['template', 'plegwatch', CHART, '-n', NAMESPACE], values);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return stdout;
}

const documents = (text: string): Rendered[] =>
  parseAllDocuments(text)
    .map((document): Rendered | null => document.toJS())
    .filter((object) => object !== null);

const render = async (values: Values): Promise<Rendered[]> => documents(await template(values));

function pick(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name} was rendered`);
  return found;
}

/** The pods of all workloads, by name. */
function podsOf(objects: readonly Rendered[]): Map<string, PodSpec> {
  const pods = new Map<string, PodSpec>();
  for (const { kind, metadata, spec } of objects) {
    if (kind === 'CronJob') pods.set(metadata.name, spec.jobTemplate.spec.template.spec);
    else if (['DaemonSet', 'Deployment', 'Job'].includes(kind)) pods.set(metadata.name, spec.template.spec);
  }
  return pods;
}

function podOf(objects: readonly Rendered[], name: string): PodSpec {
  const pod = podsOf(objects).get(name);
  if (pod === undefined) throw new Error(`no pod of ${name} was rendered`);
  return pod;
}

const secretOf = (pod: PodSpec, variable: string) =>
  pod.containers[0].env.find(({ name }) => name === variable)?.valueFrom?.secretKeyRef;

let home: TemporaryFolder;
beforeAll(() => {
  home = temporaryFolder('chart', undefined);
});
afterAll(() => home.remove());

describe('helm/sync-crd.mjs', () => {
  const sync = (script: string, ...args: string[]) => run(process.execPath, [script, ...args]);

  test('accepts the present template of the resource definition', async () => {
    expect(await sync(join(ROOT, 'helm/sync-crd.mjs'), '--check')).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
  });

  test('rejects an outdated template, and generates a new one', async () => {
    const script = join(home.dir, 'helm/sync-crd.mjs');
    const source = 'crds/plegreports.plegwatch.dev.yaml';
    const copy = 'helm/plegwatch/templates/crd.yaml';
    for (const file of ['helm/sync-crd.mjs', source, copy]) {
      mkdirSync(dirname(join(home.dir, file)), { recursive: true });
      cpSync(join(ROOT, file), join(home.dir, file));
    }
    appendFileSync(join(home.dir, source), '# changed\n');
    expect(await sync(script, '--check')).toMatchObject({ code: 1, stderr: expect.stringContaining(copy) });
    expect(await sync(script)).toMatchObject({ code: 0 });
    expect(await sync(script, '--check')).toMatchObject({ code: 0 });
    writeFileSync(join(home.dir, source), 'metadata:\n  name: "{{ x }}"\n');
    expect(await sync(script)).toMatchObject({ code: 1, stderr: expect.stringContaining('{{') });
  });
});

test('the chart and the program have the same version', () => {
  const { version, appVersion } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  expect([version, appVersion]).toEqual([manifest.version, manifest.version]);
});

describe('values.schema.json', () => {
  const schema: ValuesSchema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'));

  test('refuses unknown keys in every object, unless a comment says who checks them', () => {
    expect(openObjects(schema, '')).toEqual([]);
  });

  test('has exactly the keys of values.yaml', () => {
    const values: Values = { cluster: '', ...parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) };
    const { global, ...properties } = schema.properties ?? {};
    expect(global).toBeDefined();
    expect(keysOf({ ...schema, properties }, values)).toEqual([]);
  });
});

needs('helm')('a rendered release', () => {
  test('passes helm lint', async () => {
    const { stdout, code } = await helm(['lint', '--strict', CHART], MINIMAL);
    expect([code, stdout]).toEqual([0, expect.stringContaining('0 chart(s) failed')]);
  });

  describe('is refused, with a message that names the value,', () => {
    const { cluster, ...nameless } = MINIMAL;
    expect(cluster).toBeDefined();
    const agent = (values: Values): Values => ({ ...MINIMAL, agent: values });
    const cases: [string, Values, RegExp][] = [
      ['without a cluster', nameless, /missing property 'cluster'/],
      ['with an empty cluster', { ...MINIMAL, cluster: '' }, /'\/cluster'.*does not match/],
      ['with a number for the cluster', { ...MINIMAL, cluster: 5 }, /'\/cluster': got number, want string/],
      [
        'with a cluster the program refuses',
        { ...MINIMAL, cluster: 'Prod_1' },
        /'\/cluster'.*does not match/,
      ],
      ['with an unknown key', { ...MINIMAL, contoller: {} }, /'contoller' not allowed/],
      [
        'with an unknown nested key',
        agent({ kubelet: { uri: 'x' } }),
        /'\/agent\/kubelet'.*'uri' not allowed/,
      ],
      [
        'with a string instead of a boolean',
        agent({ enabled: 'yes' }),
        /'\/agent\/enabled': got string, want boolean/,
      ],
      [
        'with a duration without a unit',
        agent({ overdueAfter: '2' }),
        /'\/agent\/overdueAfter'.*does not match/,
      ],
      ['with an unknown choice', agent({ subscribe: 'often' }), /'\/agent\/subscribe': value must be one of/],
      [
        'with a relative socket',
        agent({ criEndpoint: 'crio.sock' }),
        /'\/agent\/criEndpoint'.*does not match/,
      ],
      [
        'with a socket in the root folder',
        agent({ criEndpoint: '/c.sock' }),
        /'\/agent\/criEndpoint'.*does not match/,
      ],
      ['with .. in a path', agent({ spool: { hostPath: '/var/../etc' } }), /'\/agent\/spool\/hostPath'/],
      [
        'with an http URL of the kubelet',
        agent({ kubelet: { url: 'http://x' } }),
        /'\/agent\/kubelet\/url'.*does not match/,
      ],
      [
        'with both a server name and no verification of the kubelet',
        agent({ kubelet: { ...SELF_SIGNED, insecureSkipVerify: true } }),
        /'\/agent\/kubelet\/serverName'/,
      ],
      [
        'with an invalid server name of the kubelet',
        agent({ kubelet: { serverName: 'a b' } }),
        /'\/agent\/kubelet\/serverName'.*does not match/,
      ],
      [
        'with a number of queues that is not a number',
        { ...MINIMAL, migrate: { queues: 'many' } },
        /'\/migrate\/queues'.*integer/,
      ],
      [
        'with no reads per second',
        { ...MINIMAL, controller: { statusLag: { readsPerSecond: 0 } } },
        /'\/controller\/statusLag\/readsPerSecond'.*minimum/,
      ],
      [
        'without a Redis',
        { ...MINIMAL, redis: {} },
        /redis is required: set redis\.url or redis\.existingSecret/,
      ],
      [
        'with an unknown scheme of the Redis URL',
        { ...MINIMAL, redis: { url: 'redis+clusters://redis:6379' } },
        /redis\.url must be a URL such as redis:\/\//,
      ],
      ['without a database', { ...MINIMAL, database: {} }, /database is required: set database\.url or /],
      [
        'with two sources of a URL',
        { ...MINIMAL, redis: { url: 'redis://r', existingSecret: 's' } },
        /set either redis\.url or redis\.existingSecret, not both/,
      ],
    ];

    test.each(cases)('%s', async (_rule, values, message) => {
      const { code, stderr } = await helm(['template', 'plegwatch', CHART], values);
      expect(stderr).toMatch(message);
      expect(code).not.toBe(0);
    });

    test('with an invalid URL, and the message does not contain its password', async () => {
      const values = {
        ...MINIMAL,
        database: { owner: { url: 'mysql://root:hunter2@db' }, url: 'postgres://d/p' },
      };
      const { code, stderr } = await helm(['template', 'plegwatch', CHART], values);
      expect(stderr).toMatch(/database\.owner\.url must be a URL such as postgres:/);
      expect(stderr).not.toContain('hunter2');
      expect(code).not.toBe(0);
    });
  });

  describe('sets the environment of', () => {
    const programs: [string, SettingTable][] = [
      ['agent', AGENT_SETTINGS],
      ['controller', CONTROLLER_SETTINGS],
      ['migrate', MIGRATE_SETTINGS],
      ['maintain', MAINTAIN_SETTINGS],
    ];

    test.each(programs)(
      '%s to valid settings of that program, equal to its defaults if there are any',
      async (name, table) => {
        const [container] = podOf(await render(MINIMAL), `plegwatch-${name}`).containers;
        expect(container.args).toEqual([name]);
        const given = new Map(container.env.map((variable) => [variable.name, variable]));
        const internal = Object.keys(table).filter((key) => table[key]?.internal === true);
        expect(internal.filter((key) => given.has(variableOf(key)))).toEqual([]);
        for (const [key, setting] of Object.entries(table)) {
          const variable = given.get(variableOf(key));
          given.delete(variableOf(key));
          if (setting.fallback === REQUIRED) expect(variable, key).toBeDefined();
          if (variable?.value === undefined) continue;
          setting.read(variable.value);
          // The agent sees the node's socket under /host.
          const value = variable.value.replace('unix:///host/', 'unix:///');
          if (typeof setting.fallback === 'string') expect(value, key).toBe(setting.fallback);
        }
        expect([...given.keys()].filter((variable) => variable.startsWith('PLEGWATCH_'))).toEqual([]);
      },
    );

    test('the agent in an order in which every variable follows those it refers to', async () => {
      const names = podOf(await render(MINIMAL), 'plegwatch-agent').containers[0].env.map(({ name }) => name);
      expect(names.indexOf('HOST_IP')).toBeGreaterThan(-1);
      expect(names.indexOf('HOST_IP')).toBeLessThan(names.indexOf('PLEGWATCH_KUBELET_URL'));
    });
  });

  describe('runs an agent that', () => {
    test('has no resource limits, and is killed within 11 s when it hangs', async () => {
      const [{ resources, livenessProbe }] = podOf(await render(MINIMAL), 'plegwatch-agent').containers;
      expect(resources.limits).toBeUndefined();
      const {
        periodSeconds,
        timeoutSeconds,
        failureThreshold,
        terminationGracePeriodSeconds = 30,
      } = livenessProbe;
      expect(livenessProbe.httpGet.path).toBe('/livez');
      expect(periodSeconds * failureThreshold + timeoutSeconds + terminationGracePeriodSeconds).toBeLessThan(
        11,
      );
    });

    test('has longer to end than it tries to deliver what it has', async () => {
      const { terminationGracePeriodSeconds = 30 } = podOf(await render(MINIMAL), 'plegwatch-agent');
      expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(2 * HAND_OVER_MS);
    });

    test("mounts the folder of the runtime's socket, with the unmounts of the node propagated", async () => {
      const { containers, volumes } = podOf(
        await render({ ...MINIMAL, agent: { criEndpoint: '/run/crio/crio.sock' } }),
        'plegwatch-agent',
      );
      expect(volumes).toContainEqual({ name: 'runtime', hostPath: { path: '/run/crio', type: 'Directory' } });
      expect(containers[0].volumeMounts).toContainEqual({
        name: 'runtime',
        mountPath: '/host/run/crio',
        readOnly: true,
        mountPropagation: 'HostToContainer',
      });
      expect(containers[0].env).toContainEqual({
        name: 'PLEGWATCH_CRI_ENDPOINT',
        value: 'unix:///host/run/crio/crio.sock',
      });
    });

    test("mounts one file of the node as the kubelet's CA, and sets the node's name before the server name", async () => {
      const { containers, volumes } = podOf(
        await render({ ...MINIMAL, agent: { kubelet: SELF_SIGNED } }),
        'plegwatch-agent',
      );
      const [{ env, volumeMounts }] = containers;
      expect(volumes).toContainEqual({
        name: 'kubelet-ca',
        hostPath: { path: SELF_SIGNED.caHostPath, type: 'File' },
      });
      const mountPath = '/host-kubelet/ca.crt';
      expect(volumeMounts).toContainEqual({ name: 'kubelet-ca', mountPath, readOnly: true });
      expect(env).toContainEqual({ name: 'PLEGWATCH_KUBELET_CA_FILE', value: mountPath });
      expect(env).toContainEqual({ name: 'PLEGWATCH_KUBELET_SERVER_NAME', value: '$(PLEGWATCH_NODE)' });
      const names = env.map(({ name }) => name);
      expect(names.indexOf('PLEGWATCH_NODE')).toBeLessThan(names.indexOf('PLEGWATCH_KUBELET_SERVER_NAME'));
    });

    test('has neither a token nor permissions when it does not scrape the kubelet', async () => {
      const objects = await render({ ...MINIMAL, agent: { kubelet: { enabled: false } } });
      expect(podOf(objects, 'plegwatch-agent').automountServiceAccountToken).toBe(false);
      expect(
        objects.filter(({ kind, metadata }) => /Role/.test(kind) && /agent/.test(metadata.name)),
      ).toEqual([]);
    });
  });

  test('runs no container that can gain privileges, and only the agent as root', async () => {
    const pods = podsOf(await render(MINIMAL));
    expect([...pods.keys()].sort()).toEqual(
      ['agent', 'controller', 'maintain', 'migrate'].map((name) => `plegwatch-${name}`),
    );
    for (const [name, { containers, securityContext }] of pods) {
      expect(containers[0].securityContext, name).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(securityContext.seccompProfile, name).toEqual({ type: 'RuntimeDefault' });
      expect(securityContext.runAsUser === 0, name).toBe(name === 'plegwatch-agent');
    }
  });

  describe('has Secrets:', () => {
    const variants = new Map(VARIANTS);
    const valuesOf = (name: string) => variants.get(name) ?? {};

    test('every Secret that a pod refers to is made by the chart or named by the user', async () => {
      for (const [name, values] of VARIANTS) {
        const objects = await render(values);
        const made = objects.filter(({ kind }) => kind === 'Secret').map(({ metadata }) => metadata.name);
        const named = [...podsOf(objects).values()].flatMap(({ containers }) =>
          containers[0].env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? []),
        );
        const users = ['redis', 'agent-redis', 'database', 'owner'];
        expect(new Set(named.filter((secret) => !users.includes(secret))), name).toEqual(new Set(made));
      }
    });

    test('agents, controller and database owner can each have a Secret of their own', async () => {
      const objects = await render(valuesOf('URLs only'));
      const urlOf = (name: string, variable: string) =>
        pick(objects, 'Secret', secretOf(podOf(objects, `plegwatch-${name}`), variable)?.name ?? '')
          .stringData?.['url'];
      expect(urlOf('agent', 'PLEGWATCH_REDIS_URL')).toBe('redis://agent:b@redis');
      expect(urlOf('controller', 'PLEGWATCH_REDIS_URL')).toBe(
        'redis+cluster://controller:a@redis-0:6379,redis-1:6379',
      );
      expect(urlOf('controller', 'PLEGWATCH_DATABASE_URL')).toBe('postgres://controller@postgres/p');
      expect(urlOf('migrate', 'PLEGWATCH_DATABASE_URL')).toBe('postgres://owner@postgres/p');
      expect(urlOf('maintain', 'PLEGWATCH_DATABASE_URL')).toBe('postgres://owner@postgres/p');
    });

    test('an existing Secret is used by its name and key, and the chart makes none', async () => {
      const objects = await render(valuesOf('existing Secrets only'));
      expect(objects.filter(({ kind }) => kind === 'Secret')).toEqual([]);
      expect(secretOf(podOf(objects, 'plegwatch-agent'), 'PLEGWATCH_REDIS_URL')).toEqual({
        name: 'agent-redis',
        key: 'agent',
      });
      expect(secretOf(podOf(objects, 'plegwatch-migrate'), 'PLEGWATCH_DATABASE_URL')).toEqual({
        name: 'owner',
        key: 'url',
      });
    });

    test('the Secret of the migration is made before the Job and deleted after it', async () => {
      const objects = await render(MINIMAL);
      const [secret, job] = ['Secret', 'Job'].map((kind) => pick(objects, kind, 'plegwatch-migrate'));
      for (const object of [secret, job]) {
        expect(object?.metadata.annotations).toMatchObject({
          'helm.sh/hook': 'pre-install,pre-upgrade',
          'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
        });
      }
      expect(secret?.metadata.annotations?.['helm.sh/hook-weight']).toBe('-5');
    });
  });

  test('has the resource definition of crds/', async () => {
    const name = 'plegreports.plegwatch.dev';
    const { metadata, ...rest } = pick(await render(MINIMAL), 'CustomResourceDefinition', name);
    const source = parse(readFileSync(join(ROOT, `crds/${name}.yaml`), 'utf8'));
    expect({ ...rest, metadata: { name: metadata.name } }).toEqual(source);
  });
});

needs(
  'helm',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('on a real API server', () => {
  let server: LocalApiServer;

  const kubectl = (args: readonly string[], input = ''): Promise<ProgramResult> =>
    run(where('kubectl'), ['--kubeconfig', server.kubeconfig, ...args], input);
  const release = (command: string, values: Values): Promise<ProgramResult> =>
    helm(
      [command, 'plegwatch', CHART, '--no-hooks', '--kubeconfig', server.kubeconfig, '-n', NAMESPACE],
      values,
    );
  const uninstall = (): Promise<ProgramResult> =>
    run(where('helm'), [
      ...['uninstall', 'plegwatch', '--no-hooks', '--kubeconfig', server.kubeconfig, '-n', NAMESPACE],
    ]);
  const definition = () => kubectl(['get', 'crd', 'plegreports.plegwatch.dev', '-o', 'name']);

  beforeAll(async () => {
    server = await startApiServer();
    expect(await kubectl(['create', 'namespace', NAMESPACE])).toMatchObject({ code: 0 });
    const restricted = 'pod-security.kubernetes.io/warn=restricted';
    expect(await kubectl(['label', 'namespace', NAMESPACE, restricted])).toMatchObject({ code: 0 });
  });
  afterAll(() => server?.stop());

  test.each(VARIANTS)('every object of a release is accepted: %s', async (_name, values) => {
    const text = await template(values);
    const args = ['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'];
    const { code, stdout, stderr } = await kubectl(args, text);
    // The restricted level forbids hostPath volumes; only the agent has any.
    const warned = stderr.split('\n').filter((line) => /would violate PodSecurity/.test(line));
    expect(warned.filter((line) => !/hostPath/.test(line))).toEqual([]);
    expect(stderr.split('\n').filter((line) => line !== '' && !warned.includes(line))).toEqual([]);
    expect(code).toBe(0);
    expect(stdout.trim().split('\n')).toHaveLength(documents(text).length);
  });

  describe('an installed release', () => {
    beforeAll(async () => {
      const { code, stdout } = await release('install', MINIMAL);
      expect([code, stdout]).toEqual([0, expect.stringContaining('kubectl get plegreports')]);
    });

    const account = (name: string) => `system:serviceaccount:${NAMESPACE}:plegwatch-${name}`;
    const may = async (name: string, verb: string, what: string): Promise<string> => {
      const [resource = '', subresource] = what.split('/');
      const args = ['auth', 'can-i', verb, resource, '-A', `--as=${account(name)}`];
      const { stdout } = await kubectl(
        subresource === undefined ? args : [...args, `--subresource=${subresource}`],
      );
      return `${verb} ${what}: ${stdout.trim()}`;
    };

    test('lets the agent get nodes/metrics and nothing else', async () => {
      expect(await may('agent', 'get', 'nodes/metrics')).toMatch(/: yes$/);
      for (const [verb, what] of [
        ['get', 'nodes'],
        ['get', 'nodes/proxy'],
        ['get', 'nodes/log'],
        ['create', 'nodes/metrics'],
        ['list', 'pods'],
        ['get', 'secrets'],
        ['patch', 'plegreports.plegwatch.dev'],
      ] as const) {
        expect(await may('agent', verb, what)).toMatch(/: no$/);
      }
    });

    test('gives the controller no permission that it does not use', async () => {
      for (const [verb, what] of [
        ['patch', 'nodes'],
        ['delete', 'nodes'],
        ['get', 'nodes/proxy'],
        ['get', 'nodes/metrics'],
        ['list', 'pods'],
        ['delete', 'pods'],
        ['get', 'secrets'],
        ['deletecollection', 'plegreports.plegwatch.dev'],
        ['update', 'plegreports.plegwatch.dev/status'],
        ['patch', 'customresourcedefinitions.apiextensions.k8s.io'],
      ] as const) {
        expect(await may('controller', verb, what)).toMatch(/: no$/);
      }
    });

    test('lets the controller get pods only if the status lag is enabled', async () => {
      expect(await may('controller', 'get', 'pods')).toMatch(/: yes$/);
      const off = { ...MINIMAL, controller: { statusLag: { enabled: false, readsPerSecond: 3 } } };
      expect(await release('upgrade', off)).toMatchObject({ code: 0 });
      expect(await may('controller', 'get', 'pods')).toMatch(/: no$/);
      const { env } = podOf(await render(off), 'plegwatch-controller').containers[0];
      expect(env).toContainEqual({ name: 'PLEGWATCH_STATUS_LAG', value: 'off' });
      expect(env).toContainEqual({ name: 'PLEGWATCH_STATUS_LAG_READS_PER_SECOND', value: '3' });
      expect(await release('upgrade', MINIMAL)).toMatchObject({ code: 0 });
      expect(await may('controller', 'get', 'pods')).toMatch(/: yes$/);
    });

    test('lets the controller, with the token of its service account, send every request that it sends', async () => {
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-a' } };
      expect(await kubectl(['create', '-f', '-'], stringify(node))).toMatchObject({ code: 0 });
      await waitFor('the resource is served', async () => (await kubectl(['get', 'plegreports'])).code === 0);
      const kube = await clientOf('plegwatch-controller');
      try {
        const { items, resourceVersion } = await kube.list(NODES, { limit: 500, metadataOnly: true });
        const uid = items[0]?.metadata.uid ?? '';
        const watch = kube.watch(NODES, { resourceVersion, timeoutSeconds: 1 });
        await watch.next();
        expect((await kube.get(NODES, 'node-a'))?.metadata.uid).toBe(uid);
        await putReport(kube, 'node-a', { uid, ready: null }, statusOf(), AbortSignal.timeout(10_000));
        const reports = await kube.list(PLEG_REPORTS, { limit: 500, metadataOnly: true });
        expect(reports.items.map(({ metadata }) => metadata.ownerReferences[0]?.uid)).toEqual([uid]);
        expect(await kube.delete(PLEG_REPORTS, 'node-a', reports.items[0]?.metadata.uid ?? '')).toBe(true);
      } finally {
        kube.close();
      }
    });

    test('does not let the agent list Nodes', async () => {
      const kube = await clientOf('plegwatch-agent');
      try {
        await expect(kube.list(NODES, { limit: 1 })).rejects.toThrow(/cannot list resource "nodes"/);
      } finally {
        kube.close();
      }
    });

    /** A client with the token of a service account of the release. */
    async function clientOf(name: string): Promise<KubeClient> {
      const { stdout: token } = await kubectl(['create', 'token', name, '-n', NAMESPACE]);
      const config = parse(readFileSync(server.kubeconfig, 'utf8'));
      const file = join(home.dir, `${name}.kubeconfig`);
      writeFileSync(
        file,
        stringify({ ...config, users: [{ ...config.users[0], user: { token: token.trim() } }] }),
      );
      return createKubeClient({ kubeconfig: file });
    }

    test('can be upgraded, and leaves the resource definition behind unless crds.keep is false', async () => {
      expect(await release('upgrade', { ...MINIMAL, logLevel: 'debug' })).toMatchObject({ code: 0 });
      expect(await uninstall()).toMatchObject({ code: 0 });
      expect(await definition()).toMatchObject({ code: 0 });
      // A release of the same name adopts the definition again.
      expect(await release('install', { ...MINIMAL, crds: { keep: false } })).toMatchObject({ code: 0 });
      expect(await uninstall()).toMatchObject({ code: 0 });
      await waitFor('the resource definition is deleted', async () =>
        (await definition()).code === 0 ? undefined : true,
      );
      const left = await kubectl(['get', 'all,secrets,serviceaccounts', '-n', NAMESPACE, '-o', 'name']);
      expect(left.stdout).toBe('');
    });
  });
});

function statusOf(): ReportStatus {
  return {
    observedAt: AT,
    agent: { lastSeen: AT },
    runtime: {},
    kubelet: {},
    mode: 'Unknown',
    observed24h: { expected: 0, matched: 0, unobservable: 0, coveredSeconds: 0 },
    findings24h: [],
    missedEvents: [],
    modeHistory: [],
    conditions: [],
  };
}

interface ValuesSchema {
  readonly $comment?: string;
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, ValuesSchema>>;
  readonly definitions?: Readonly<Record<string, ValuesSchema>>;
  readonly items?: ValuesSchema;
}

/** Paths of objects that allow any key without a comment. */
function openObjects(schema: ValuesSchema, path: string): string[] {
  const isObject = [schema.type].flat().includes('object');
  const open = isObject && schema.additionalProperties === undefined && schema.$comment === undefined;
  const parts = Object.entries({
    ...schema.properties,
    ...schema.definitions,
    ...(schema.items ? { '[]': schema.items } : {}),
  });
  return [...(open ? [path] : []), ...parts.flatMap(([name, part]) => openObjects(part, `${path}/${name}`))];
}

/** Paths that only one of schema and values has. Skips free maps and optional objects. */
function keysOf(schema: ValuesSchema, values: Values, path = ''): string[] {
  const properties = schema.properties ?? {};
  const missing = Object.keys(properties).filter((key) => !(key in values));
  const unknown = Object.keys(values).filter((key) => !(key in properties));
  const nested = Object.entries(properties).flatMap(([key, part]) => {
    const value: unknown = values[key];
    if (part.$ref !== undefined || typeof value !== 'object' || value === null) return [];
    if (Array.isArray(value) || Object.keys(value).length === 0) return [];
    return keysOf(part, { ...value }, `${path}/${key}`);
  });
  return [...missing, ...unknown].map((key) => `${path}/${key}`).concat(nested);
}
