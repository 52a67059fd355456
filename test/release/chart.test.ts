/*
 * The chart as helm renders it: what it refuses, and what its objects say.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { AGENT_SETTINGS } from '../../src/agent/config.ts';
import { NODE_FLAGS } from '../../src/agent/observe/stream/readerProcess.ts';
import { CONTROLLER_SETTINGS } from '../../src/controller/config.ts';
import { REMOVAL_RIGHTS } from '../../src/controller/nodeConditions/removal.ts';
import { controllerRights } from '../../src/controller/rights.ts';
import { DOCTOR_SETTINGS } from '../../src/doctor/settings.ts';
import type { KubeRight } from '../../src/kube/rights.ts';
import {
  defaultsOf,
  REQUIRED,
  type Setting,
  type SettingTable,
  variableOf,
} from '../../src/platform/settings.ts';
import { FEDERATE_SETTINGS, MAINTAIN_SETTINGS, MIGRATE_SETTINGS } from '../../src/store/settings.ts';
import { accessKindOf, UI_SETTINGS } from '../../src/ui/settings.ts';
import {
  AGENT_NAMESPACE,
  CHART,
  FLEET,
  HUB,
  helm,
  LAKE,
  MINIMAL,
  NAMESPACE,
  pick,
  podOf,
  podsOf,
  READERS,
  type Rendered,
  ROOT,
  render,
  SELF_SIGNED,
  secretOf,
  secretsOf,
  template,
  templateAgain,
  VARIANTS,
  type Values,
  withHome,
} from '../support/chart.ts';
import { needs } from '../support/needs.ts';

withHome();

interface GrantedRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** As verb, resource, group, namespace and name. */
const grantedBy = (roles: readonly Rendered[]): string[] =>
  roles
    .flatMap(({ rules, metadata: { namespace = '' } }) =>
      (rules as GrantedRule[]).flatMap(({ apiGroups, resources, verbs, resourceNames = [''] }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) =>
            verbs.flatMap((verb) =>
              resourceNames.map((name) => [verb, resource, group, namespace, name].join(' ')),
            ),
          ),
        ),
      ),
    )
    .sort();

function grantOf({
  verb,
  resource: { plural, group, namespace = '' },
  subresource,
  name = '',
}: KubeRight): string {
  const resource = subresource === undefined ? plural : `${plural}/${subresource}`;
  // Events about Nodes are in a namespace, and the right to write them is not bound to one.
  return [verb, resource, group, plural === 'events' ? '' : namespace, name].join(' ');
}

/** The Secret that the controller fills with its keys. No pod mounts it. */
const KEYS = 'plegwatch-keys';

const PROGRAMS = new Set(['agent', 'controller', 'migrate', 'maintain', 'federate', 'export', 'report']);

needs('helm')('a rendered release', () => {
  test.each([false, true])(
    'grants the controller exactly what it needs of the API server, where it publishes conditions on Nodes: %s',
    async (publishesConditions) => {
      const nodeConditions = { enabled: publishesConditions };
      const objects = await render({
        ...MINIMAL,
        agent: { namespace: AGENT_NAMESPACE },
        controller: { nodeConditions },
      });
      const granted = grantedBy([
        pick(objects, 'ClusterRole', 'plegwatch-controller'),
        pick(objects, 'Role', 'plegwatch-controller'),
        pick(objects, 'Role', 'plegwatch-keys'),
        pick(objects, 'Role', 'plegwatch-keys-public'),
      ]);
      const needed = controllerRights({
        measuresStatusLag: true,
        publishesConditions,
        lease: { namespace: NAMESPACE, name: 'plegwatch-controller' },
        keys: { name: 'plegwatch-keys', secretNamespace: NAMESPACE, configMapNamespace: AGENT_NAMESPACE },
      });
      expect(needed.map(grantOf).sort()).toEqual(granted);
    },
  );

  test('removes conditions on Nodes after it is deleted, by a Job that may do nothing else', async () => {
    const name = 'plegwatch-node-conditions';
    expect((await render(MINIMAL)).filter(({ metadata }) => metadata.name === name)).toEqual([]);
    const objects = await render({ ...MINIMAL, controller: { nodeConditions: { enabled: true } } });
    const all = objects.filter(({ metadata }) => metadata.name === name);
    expect(all.map(({ kind }) => kind).sort()).toEqual([
      'ClusterRole',
      'ClusterRoleBinding',
      'Job',
      'ServiceAccount',
    ]);
    for (const { metadata } of all) {
      expect(metadata.annotations).toMatchObject({
        'helm.sh/hook': 'post-delete',
        'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
      });
    }
    expect(grantedBy([pick(objects, 'ClusterRole', name)])).toEqual(REMOVAL_RIGHTS.map(grantOf).sort());
    const pod = podOf(objects, name);
    expect(pod.containers[0].args).toEqual(['remove-node-conditions']);
  });

  test('takes 0 without a unit for a spool that is synced after every write', async () => {
    const [{ env }] = podOf(
      await render({ ...MINIMAL, agent: { spool: { fsync: 0 } } }),
      'plegwatch-agent',
    ).containers;
    expect(env).toContainEqual({ name: 'PLEGWATCH_SPOOL_FSYNC', value: '0' });
  });

  describe('is refused, with a message that names the value,', () => {
    const { cluster, ...nameless } = MINIMAL;
    expect(cluster).toBeDefined();
    const GROUP = { name: 'eu', existingSecret: 'reader-eu' };
    const federate = { enabled: true, database: { existingSecret: 'fleet' } };
    const agent = (values: Values): Values => ({ ...MINIMAL, agent: values });
    const cases: [string, Values, RegExp][] = [
      [
        'with a page for everybody, and no proxy that says who asks',
        { ...MINIMAL, ui: { enabled: true, proxy: { authorization: 'proxy' } } },
        /ui\.proxy\.authorization proxy needs ui\.proxy\.userHeader/,
      ],
      [
        'with a page behind a proxy, and nobody who says which of its users may read',
        { ...HUB, ui: { enabled: true, proxy: { userHeader: 'X-User', addresses: ['10.0.0.0/8'] } } },
        /ui\.enabled needs cluster, whose API server says who may read/,
      ],
      [
        'with a fleet of no group',
        { ...FLEET, federate: { ...federate, groups: [] } },
        /federate\.groups is required/,
      ],
      [
        'with two groups of one name',
        { ...FLEET, federate: { ...federate, groups: [GROUP, GROUP] } },
        /two groups are called eu/,
      ],
      [
        'with a group whose name plegwatch federate refuses',
        { ...FLEET, federate: { ...federate, groups: [{ ...GROUP, name: 'EU' }] } },
        /'\/federate\/groups\/0\/name'.*does not match/,
      ],
      [
        'with a group without a Secret',
        { ...FLEET, federate: { ...federate, groups: [{ name: 'eu' }] } },
        /'\/federate\/groups\/0'.*existingSecret/,
      ],
      [
        'with a reader of a fleet who has no user in a group',
        { ...FLEET, federate: { ...Object(FLEET['federate']), readers: [{ role: 'a', groups: [GROUP] }] } },
        /federate\.readers: the role a needs a Secret for each of the groups eu, us, and for no other/,
      ],
      ['with a lake without a volume', { ...MINIMAL, lake: { enabled: true } }, /lake\.volume is required/],
      [
        'with a lake without a database',
        { ...LAKE, database: { existingSecret: '' } },
        /database is required: set database\.url or database\.existingSecret/,
      ],
      [
        'with a fleet without a database',
        { ...FLEET, federate: { enabled: true, groups: [GROUP] } },
        /federate\.database is required/,
      ],
      [
        'with a fleet of a trial',
        { trial: { enabled: true }, federate: { enabled: true, groups: [GROUP] } },
        /a trial has one: set trial\.enabled to false/,
      ],
      ['without a cluster', nameless, /cluster is required: the name of this cluster/],
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
        agent({ kubelet: { ...SELF_SIGNED, identity: 'skip' } }),
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
        'with so few rows of a node that its own records would not fit',
        { ...MINIMAL, controller: { nodeRowsPerDay: 999 } },
        /'\/controller\/nodeRowsPerDay'.*minimum/,
      ],
      [
        'without a Redis',
        { ...MINIMAL, redis: {} },
        /redis is required: set redis\.url or redis\.existingSecret/,
      ],
      [
        "without the agents' user of Redis",
        { ...MINIMAL, redis: { existingSecret: 'redis' } },
        /redis\.agent is required: set redis\.agent\.url or redis\.agent\.existingSecret/,
      ],
      [
        'with one Secret for the Redis users of agents and controller',
        { ...MINIMAL, redis: { existingSecret: 's', agent: { existingSecret: 's' } } },
        /are the same Secret, s: every node can read all of the agents' one/,
      ],
      [
        'with an unknown scheme of the Redis URL',
        { ...MINIMAL, redis: { url: 'redis+clusters://redis:6379' } },
        /redis\.url must be a URL such as redis:\/\//,
      ],
      ['with an unknown runtime', { ...MINIMAL, runtime: 'docker' }, /'\/runtime': value must be one of/],
      [
        'with an unknown way to migrate',
        { ...MINIMAL, migrate: { mode: 'job' } },
        /'\/migrate\/mode': value must be one of/,
      ],
      [
        'with a pool of agents without a name',
        { ...MINIMAL, agentPools: [{ runtime: 'crio' }] },
        /'\/agentPools\/0': missing property 'name'/,
      ],
      [
        'with a key that pools do not have',
        { ...MINIMAL, agentPools: [{ name: 'a', namespace: 'b' }] },
        /'\/agentPools\/0'.*'namespace' not allowed/,
      ],
      [
        'with two pools of one name',
        { ...MINIMAL, agentPools: [{ name: 'a' }, { name: 'a' }] },
        /agentPools: two pools are called a/,
      ],
      [
        'with a ServiceAccount that is neither created nor named',
        agent({ serviceAccount: { create: false } }),
        /set agent\.serviceAccount\.name to a ServiceAccount that exists/,
      ],
      [
        'with a namespace to create and no name of it',
        agent({ createNamespace: true }),
        /agent\.createNamespace is true: set agent\.namespace/,
      ],
      [
        'with signatures that are required and agents of another release',
        { ...MINIMAL, attribution: { mode: 'require' }, agent: { enabled: false } },
        /attribution\.mode is require, but nothing would be refused/,
      ],
      [
        'with signatures that are required and a controller of another release',
        { ...MINIMAL, attribution: { mode: 'require' }, controller: { enabled: false } },
        /attribution\.mode is require, but nothing would be refused/,
      ],
      [
        'with a migration in the pod of a controller that is not there',
        { ...MINIMAL, controller: { enabled: false }, migrate: { mode: 'init' } },
        /migrate\.mode init runs in the pod of the controller.*use hook/,
      ],
      [
        "with the release's own namespace to create",
        agent({ createNamespace: true, namespace: 'default' }),
        /agent\.namespace is the release's own, default: name another one/,
      ],
      [
        'with an event that is missed before it is overdue',
        agent({ overdueAfter: '45s' }),
        /agent\.missedAfter \(30s\) must be longer than overdueAfter \(45s\)/,
      ],
      [
        'with a pool in which an event is missed before it is overdue',
        { ...MINIMAL, agentPools: [{ name: 'a', missedAfter: '1500ms' }] },
        /agent\.missedAfter of the pool a \(1500ms\) must be longer/,
      ],
      [
        'with a tag in the repository of the image',
        { ...MINIMAL, image: { repository: 'registry.example/plegwatch:0.1.0' } },
        /'\/image\/repository'.*does not match/,
      ],
      [
        'with a schedule that is not one of cron',
        { ...MINIMAL, maintain: { schedule: 'daily' } },
        /'\/maintain\/schedule'.*does not match/,
      ],
      [
        'with an alert to leave out that there is not',
        { ...MINIMAL, monitoring: { rules: { disabled: ['PlegwatchVersion'] } } },
        /monitoring\.rules\.disabled: there is no alert PlegwatchVersion, only PlegwatchEventMissed, /,
      ],
      [
        'with certificates for a Redis without TLS',
        { ...MINIMAL, redis: { ...Object(MINIMAL['redis']), tls: { caSecret: 'ca' } } },
        /redis\.url does not begin with rediss/,
      ],
      [
        'with a trial and certificates',
        { trial: { enabled: true }, database: { tls: { mode: 'verify-full' } } },
        /the servers of a trial have no TLS: leave database\.tls empty/,
      ],
      [
        'with a trial and a Redis of its own',
        { ...MINIMAL, trial: { enabled: true } },
        /trial\.enabled brings a Redis and a Postgres: leave redis\.url/,
      ],
      ['without a database', { ...MINIMAL, database: {} }, /database is required: set database\.url or /],
      [
        'with two sources of a URL',
        { ...MINIMAL, redis: { url: 'redis://:p@r', existingSecret: 's' } },
        /set either redis\.url or redis\.existingSecret, not both/,
      ],
    ];

    test.each(cases)('%s', async (_rule, values, message) => {
      const { code, stderr } = await helm(['template', 'plegwatch', CHART], values);
      expect(stderr).toMatch(message);
      expect(code).not.toBe(0);
    });

    test.each([
      ['relistPeriod', '199ms', '200ms', '60s', '60001ms'],
      ['overdueAfter', '99ms', '100ms', '1m', '61s'],
      ['missedAfter', '499ms', '500ms', '10m', '601s'],
      ['lateAfter', '0s', '1ms', '10m', '1h'],
      ['kubeletLateAfter', '1999ms', '2s', '10m', '601s'],
      ['spoolFsync', undefined, '0', '1m', '1.1m'],
      ['spoolRetention', undefined, '0s', '720h', '721h'],
    ] as const)('with a time that the agent refuses: %s', async (setting, below, least, most, above) => {
      // A value of a group is named after it: spoolFsync is spool.fsync.
      const group = ['spool', 'kubelet'].find((each) => setting.startsWith(each)) ?? '';
      const key = setting.slice(group.length).replace(/^./, (first) => first.toLowerCase());
      const resultOf = (value: string) => {
        const values: Values = group === '' ? { [key]: value } : { [group]: { [key]: value } };
        const others = { overdueAfter: '100ms', missedAfter: '10m', ...values };
        return helm(['template', 'plegwatch', CHART], agent(others));
      };
      for (const value of [below, above]) {
        if (value === undefined) continue;
        expect(() => AGENT_SETTINGS[setting].read(value)).toThrow();
        const { code, stderr } = await resultOf(value);
        expect([code, stderr]).toEqual([1, expect.stringMatching(`${key} must be from .* and is ${value}`)]);
      }
      for (const value of [least, most]) {
        AGENT_SETTINGS[setting].read(value);
        expect(await resultOf(value)).toMatchObject({ code: 0 });
      }
    });

    test('with a password of a trial that a URL cannot hold, and the message does not contain it', async () => {
      const values = { trial: { enabled: true, password: 'hunter2/hunter2' } };
      const { code, stderr } = await helm(['template', 'plegwatch', CHART], values);
      expect(stderr).toMatch(/trial\.password must have at least 8 characters/);
      expect(stderr).not.toContain('hunter2');
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
    const programs: [pod: string, command: string, table: SettingTable, values: Values][] = [
      ['agent', 'agent', AGENT_SETTINGS, MINIMAL],
      ['controller', 'controller', CONTROLLER_SETTINGS, MINIMAL],
      ['migrate', 'migrate', MIGRATE_SETTINGS, MINIMAL],
      ['maintain', 'maintain', MAINTAIN_SETTINGS, MINIMAL],
      ['federate', 'federate', FEDERATE_SETTINGS, FLEET],
      ['test', 'doctor', DOCTOR_SETTINGS, MINIMAL],
    ];

    test.each(programs)(
      'the pod %s to valid settings of plegwatch %s, equal to its defaults if there are any',
      async (pod, command, table, values) => {
        const [container] = podOf(await render(values), `plegwatch-${pod}`).containers;
        expect(container.args).toEqual([command]);
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

    test('the page to valid settings of plegwatch ui, with the API server or behind a proxy', async () => {
      const addresses = ['10.0.0.0/8', 'fd00::7'];
      const proxy = { userHeader: 'X-User', addresses };
      for (const [ui, access] of [
        [{}, 'token'],
        [{ mcp: true }, 'token'],
        [{ proxy }, 'proxy'],
        [{ proxy: { ...proxy, groupsHeader: 'X-Groups' } }, 'proxy'],
        [{ proxy: { ...proxy, authorization: 'proxy' } }, 'trusted-proxy'],
      ] as const) {
        const pod = podOf(await render({ ...MINIMAL, ui: { enabled: true, ...ui } }), 'plegwatch-ui');
        const [{ args, env }] = pod.containers;
        expect(args).toEqual(['ui']);
        const given = (key: string) => env.find(({ name }) => name === variableOf(key))?.value;
        const known: readonly [string, Setting<unknown>][] = Object.entries(UI_SETTINGS);
        for (const [key, { read }] of known) read(given(key));
        expect(UI_SETTINGS.mcp.read(given('mcp'))).toBe('mcp' in ui);
        const settings = {
          cluster: UI_SETTINGS.cluster.read(given('cluster')),
          kubeconfig: undefined,
          userHeader: UI_SETTINGS.userHeader.read(given('userHeader')),
          groupsHeader: UI_SETTINGS.groupsHeader.read(given('groupsHeader')),
          authorization: UI_SETTINGS.authorization.read(given('authorization')),
          proxyAddress: UI_SETTINGS.proxyAddress.read(given('proxyAddress')),
          pageAddress: UI_SETTINGS.pageAddress.read(given('pageAddress')),
        };
        expect(accessKindOf(settings, true)).toBe(access);
      }
    });

    test('the controller with the row quota of a node as a plain number, however large it is', async () => {
      const quotaOf = async (values: Readonly<Record<string, unknown>>) =>
        podOf(await render(values), 'plegwatch-controller').containers[0].env.find(
          ({ name }) => name === 'PLEGWATCH_NODE_ROWS_PER_DAY',
        );
      expect(await quotaOf(MINIMAL)).toMatchObject({ value: '10000000' });
      const large = { ...MINIMAL, controller: { nodeRowsPerDay: 1_000_000_000 } };
      expect(await quotaOf(large)).toMatchObject({ value: '1000000000' });
    });

    test.each([
      [{}, 'auto'],
      [{ mode: 'accept' }, 'accept'],
      [{ mode: 'off' }, undefined],
      [{ mode: false }, undefined],
    ])('the controller with the mode of attribution %o: %s', async (attribution, mode) => {
      const objects = await render({ ...MINIMAL, attribution });
      const { env } = podOf(objects, 'plegwatch-controller').containers[0];
      expect(env.find(({ name }) => name === 'PLEGWATCH_ATTRIBUTION')?.value).toBe(mode);
      expect(env.some(({ name }) => name === 'PLEGWATCH_KEY_SECRET')).toBe(mode !== undefined);
    });

    test('the agent in an order in which every variable follows those it refers to', async () => {
      const names = podOf(await render(MINIMAL), 'plegwatch-agent').containers[0].env.map(({ name }) => name);
      expect(names.indexOf('HOST_IP')).toBeGreaterThan(-1);
      expect(names.indexOf('HOST_IP')).toBeLessThan(names.indexOf('PLEGWATCH_KUBELET_URL'));
    });
  });

  describe('runs an agent that', () => {
    test('keeps its memory small by the options that its reader has too', async () => {
      const [{ env }] = podOf(await render(MINIMAL), 'plegwatch-agent').containers;
      expect(env).toContainEqual({ name: 'NODE_OPTIONS', value: NODE_FLAGS.join(' ') });
    });

    test('has a memory limit far above its use and none of its processor, and is killed within 11 s when it hangs', async () => {
      const [{ resources, livenessProbe }] = podOf(await render(MINIMAL), 'plegwatch-agent').containers;
      expect(resources.limits).toEqual({ memory: '512Mi' });
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

    test('is admitted where pods of its priority need a quota that names it, as on GKE', async () => {
      const quotasOf = async (values: Values) =>
        (await render({ ...MINIMAL, ...values })).filter(({ kind }) => kind === 'ResourceQuota');
      const [quota, ...others] = await quotasOf({
        agentPools: [{ name: 'a' }, { name: 'b', priorityClassName: 'own' }, { name: 'c' }],
      });
      expect(others).toEqual([]);
      expect(quota?.spec).toEqual({
        hard: { pods: '1G' },
        scopeSelector: {
          matchExpressions: [
            { scopeName: 'PriorityClass', operator: 'In', values: ['system-node-critical'] },
          ],
        },
      });
      expect(await quotasOf({ agent: { priorityClassName: '' } })).toEqual([]);
    });

    test('has longer to end than it tries to deliver what it has', async () => {
      const { terminationGracePeriodSeconds = 30 } = podOf(await render(MINIMAL), 'plegwatch-agent');
      const { intervalHandOver } = defaultsOf({ intervalHandOver: AGENT_SETTINGS.intervalHandOver });
      expect(terminationGracePeriodSeconds * 1e6).toBeGreaterThanOrEqual(2 * intervalHandOver);
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

    test("mounts the folder of the kubelet's CA, so that a missing file keeps no pod away, and sets the node's name before the server name", async () => {
      const { containers, volumes } = podOf(
        await render({ ...MINIMAL, agent: { kubelet: SELF_SIGNED } }),
        'plegwatch-agent',
      );
      const [{ env, volumeMounts }] = containers;
      expect(volumes).toContainEqual({
        name: 'kubelet-ca',
        hostPath: { path: '/var/lib/kubelet/pki', type: 'DirectoryOrCreate' },
      });
      expect(volumeMounts).toContainEqual({ name: 'kubelet-ca', mountPath: '/host-kubelet', readOnly: true });
      const files = '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt,/host-kubelet/kubelet.crt';
      expect(env).toContainEqual({ name: 'PLEGWATCH_KUBELET_CA_FILE', value: files });
      expect(env).toContainEqual({ name: 'PLEGWATCH_KUBELET_IDENTITY', value: 'auto' });
      const valueFrom = { fieldRef: { fieldPath: 'status.hostIP' } };
      expect(env).toContainEqual(expect.objectContaining({ name: 'PLEGWATCH_HOST_IP', valueFrom }));
      expect(env).toContainEqual({ name: 'PLEGWATCH_KUBELET_SERVER_NAME', value: '$(PLEGWATCH_NODE)' });
      const names = env.map(({ name }) => name);
      expect(names.indexOf('PLEGWATCH_NODE')).toBeLessThan(names.indexOf('PLEGWATCH_KUBELET_SERVER_NAME'));
    });

    test("mounts only the folder of the PodsAPI's socket, read-only, and nothing of it where that is switched off", async () => {
      const podOfValues = async (kubelet: Values) =>
        podOf(await render({ ...MINIMAL, agent: { kubelet } }), 'plegwatch-agent');
      const watching = await podOfValues({
        podsApiHostPath: '/var/lib/k0s/kubelet/pods-api',
        lateAfter: '5s',
      });
      expect(watching.volumes).toContainEqual({
        name: 'pods-api',
        hostPath: { path: '/var/lib/k0s/kubelet/pods-api', type: 'DirectoryOrCreate' },
      });
      const [{ env, volumeMounts }] = watching.containers;
      expect(volumeMounts).toContainEqual({
        name: 'pods-api',
        mountPath: '/host/var/lib/k0s/kubelet/pods-api',
        readOnly: true,
      });
      expect(env).toContainEqual({
        name: 'PLEGWATCH_PODS_API',
        value: 'unix:///host/var/lib/k0s/kubelet/pods-api/pods-api.sock',
      });
      expect(env).toContainEqual({ name: 'PLEGWATCH_KUBELET_LATE_AFTER', value: '5s' });
      for (const kubelet of [{ podsApiHostPath: '' }, { enabled: false }]) {
        const { containers, volumes } = await podOfValues(kubelet);
        expect(volumes?.map(({ name }) => name)).not.toContain('pods-api');
        expect(containers[0].volumeMounts.map(({ name }) => name)).not.toContain('pods-api');
        expect(containers[0].env).toContainEqual({ name: 'PLEGWATCH_PODS_API', value: 'off' });
      }
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
    const pods = podsOf(await render({ ...MINIMAL, federate: READERS['federate'], lake: LAKE['lake'] }));
    expect([...pods.keys()].sort()).toEqual(
      ['agent', 'controller', 'federate', 'lake', 'maintain', 'migrate', 'test'].map(
        (name) => `plegwatch-${name}`,
      ),
    );
    for (const [name, { containers, initContainers = [], securityContext }] of pods) {
      for (const container of [...containers, ...initContainers])
        expect(container.securityContext, name).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      expect(securityContext.seccompProfile, name).toEqual({ type: 'RuntimeDefault' });
      expect(securityContext.runAsUser === 0, name).toBe(name === 'plegwatch-agent');
    }
  });

  describe('with a fleet database', () => {
    test('runs plegwatch federate after each install and upgrade, and by a CronJob in the same way', async () => {
      const objects = await render(FLEET);
      const job = pick(objects, 'Job', 'plegwatch-federate');
      expect(job.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'post-install,post-upgrade' });
      const cron = pick(objects, 'CronJob', 'plegwatch-federate');
      expect(cron.spec.jobTemplate.spec).toEqual(job.spec);
      // Nothing but that may be about databases of others.
      expect([...podsOf(objects).keys()]).toEqual(['plegwatch-federate']);
      expect(podsOf(await render(MINIMAL)).has('plegwatch-federate')).toBe(false);
    });

    test('has a folder for each group, with the files of its Secret', async () => {
      const { containers, volumes } = podOf(await render(FLEET), 'plegwatch-federate');
      const [{ env, volumeMounts }] = containers;
      expect(env).toContainEqual({ name: 'PLEGWATCH_GROUPS_DIR', value: '/etc/plegwatch/groups' });
      for (const name of ['eu', 'us'])
        expect(volumeMounts).toContainEqual({
          ...{ name: `federate-${name}`, mountPath: `/etc/plegwatch/groups/${name}`, readOnly: true },
        });
      expect(volumes).toContainEqual({ name: 'federate-eu', secret: { secretName: 'reader-eu' } });
      const items = [{ key: 'uri', path: 'url' }];
      expect(volumes).toContainEqual({ name: 'federate-us', secret: { secretName: 'reader-us', items } });
    });

    test('gives each reader its users of the groups after that, one after the other', async () => {
      const { initContainers = [], containers, volumes } = podOf(await render(READERS), 'plegwatch-federate');
      const runs = [...initContainers, ...containers];
      expect(
        runs.map(({ args, env }) => [args, env.find(({ name }) => name === variableOf('reader'))?.value]),
      ).toEqual([
        [['federate'], undefined],
        [['federate'], 'grafana'],
        [['federate'], 'On Call'],
      ]);
      const [owner] = podOf(await render(FLEET), 'plegwatch-federate').containers;
      expect(runs[0]).toEqual(owner);
      expect(runs[2]?.volumeMounts).toContainEqual({
        ...{ name: 'reader-1-eu', mountPath: '/etc/plegwatch/groups/eu', readOnly: true },
      });
      expect(volumes).toContainEqual({ name: 'reader-1-eu', secret: { secretName: 'reader-eu' } });
    });

    test('lets that pod reach the ports of databases and nothing else', async () => {
      const policies = (await render(FLEET)).filter(({ kind }) => kind === 'NetworkPolicy');
      expect(policies.map(({ metadata }) => metadata.name)).toEqual(['plegwatch-federate']);
      const [policy] = policies;
      expect(JSON.parse(JSON.stringify(policy?.spec))).toMatchObject({
        ingress: [],
        egress: [{ ports: expect.arrayContaining([{ port: 5432 }, { port: 6432 }]) }],
      });
      expect(policy?.metadata.annotations).toBeUndefined();
    });
  });

  describe('has Secrets:', () => {
    const variants = new Map(VARIANTS);
    const valuesOf = (name: string) => variants.get(name) ?? {};

    test('every Secret that a pod refers to is made by the chart or named by the user', async () => {
      for (const [name, values] of VARIANTS) {
        const objects = await render(values);
        const made = objects
          .filter(({ kind, metadata }) => kind === 'Secret' && !metadata.name.endsWith('-keys'))
          .map(({ metadata }) => metadata.name);
        const named = [...podsOf(objects).values()].flatMap((pod) =>
          [...secretsOf(pod).values()].flat().map((secret) => secret.name),
        );
        const users = ['redis', 'agent-redis', 'database', 'owner'];
        users.push('redis-ca', 'redis-client', 'agent-client', 'database-ca', 'owner-client');
        users.push('reader-eu', 'reader-us');
        expect(new Set(named.filter((secret) => !users.includes(secret))), name).toEqual(new Set(made));
      }
    });

    test('agents, controller and database owner can each have a Secret of their own', async () => {
      const objects = await render(valuesOf('URLs only'));
      const urlOf = (name: string, service: string) =>
        pick(objects, 'Secret', secretOf(podOf(objects, `plegwatch-${name}`), service)?.name ?? '')
          .stringData?.['url'];
      expect(urlOf('agent', 'redis')).toBe('redis://agent:b@redis');
      expect(urlOf('controller', 'redis')).toBe('redis+cluster://controller:a@redis-0:6379,redis-1:6379');
      expect(urlOf('controller', 'database')).toBe('postgres://controller@postgres/p');
      expect(urlOf('migrate', 'database-owner')).toBe('postgres://owner@postgres/p');
      expect(urlOf('maintain', 'database-owner')).toBe('postgres://owner@postgres/p');
    });

    test('an existing Secret is used by its name and key, and the chart makes none', async () => {
      const objects = await render(valuesOf('existing Secrets only'));
      const made = objects.filter(({ kind }) => kind === 'Secret');
      expect(made.map(({ metadata, stringData }) => [metadata.name, stringData])).toEqual([
        [KEYS, undefined],
      ]);
      expect(secretOf(podOf(objects, 'plegwatch-agent'), 'redis')).toEqual({
        name: 'agent-redis',
        items: [{ key: 'agent', path: 'url' }],
      });
      expect(secretOf(podOf(objects, 'plegwatch-migrate'), 'database-owner')).toEqual({ name: 'owner' });
    });

    test('a Secret is mounted and never an environment variable, which could not be rotated', async () => {
      for (const [name, values] of VARIANTS) {
        for (const pod of podsOf(await render(values)).values()) {
          const own = [...pod.containers, ...(pod.initContainers ?? [])].filter(({ args = [] }) =>
            PROGRAMS.has(args[0] ?? ''),
          );
          expect(JSON.stringify(own), name).not.toContain('secretKeyRef');
        }
      }
    });

    test('certificates and the files of a Secret are where the settings say', async () => {
      const objects = await render(valuesOf('Secrets of operators, with certificates'));
      const agent = podOf(objects, 'plegwatch-agent');
      const dir = '/etc/plegwatch/redis';
      expect(agent.containers[0].volumeMounts).toContainEqual({
        name: 'redis',
        mountPath: dir,
        readOnly: true,
      });
      expect(agent.containers[0].env).toEqual(
        expect.arrayContaining([
          { name: 'PLEGWATCH_REDIS_SECRET_DIR', value: dir },
          { name: 'PLEGWATCH_REDIS_URL', value: 'rediss://redis:6379' },
          { name: 'PLEGWATCH_REDIS_CA_FILE', value: `${dir}/tls/ca.crt` },
          { name: 'PLEGWATCH_REDIS_CERT_FILE', value: `${dir}/tls/tls.crt` },
          { name: 'PLEGWATCH_REDIS_KEY_FILE', value: `${dir}/tls/tls.key` },
        ]),
      );
      expect(secretsOf(agent).get('redis')).toEqual([
        {
          name: 'agent-redis',
          items: [
            { key: 'pass', path: 'password' },
            { key: 'user', path: 'username' },
          ],
        },
        { name: 'redis-ca', items: [{ key: 'ca.crt', path: 'tls/ca.crt' }] },
        {
          name: 'agent-client',
          items: [
            { key: 'tls.crt', path: 'tls/tls.crt' },
            { key: 'tls.key', path: 'tls/tls.key' },
          ],
        },
      ]);
      const names = (pod: string, volume: string) =>
        secretsOf(podOf(objects, `plegwatch-${pod}`))
          .get(volume)
          ?.map(({ name }) => name);
      expect(names('controller', 'redis')).toEqual(['redis', 'redis-ca', 'redis-client']);
      expect(names('controller', 'database')).toEqual(['database', 'database-ca']);
      expect(names('migrate', 'database-owner')).toEqual(['owner', 'database-ca', 'owner-client']);
      const [migrate] = podOf(objects, 'plegwatch-migrate').containers;
      expect(migrate.env).toEqual(
        expect.arrayContaining([
          { name: 'PLEGWATCH_DATABASE_SSLMODE', value: 'verify-full' },
          { name: 'PLEGWATCH_DATABASE_POOL_MODE', value: 'transaction' },
          { name: 'PLEGWATCH_QUEUES', value: '32' },
          { name: 'PLEGWATCH_EVENT_RETENTION_DAYS', value: '7' },
          { name: 'PLEGWATCH_FINDING_RETENTION_DAYS', value: '90' },
          { name: 'PLEGWATCH_CONTROLLER_ROLES', value: 'one,two' },
        ]),
      );
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

  test('helm test runs the doctor with the access and the service account of the controller', async () => {
    const objects = await render(MINIMAL);
    const [controller, tested] = ['plegwatch-controller', 'plegwatch-test'].map((name) =>
      podOf(objects, name),
    );
    expect(tested?.containers?.map(({ args }) => args)).toEqual([['doctor']]);
    expect(tested?.serviceAccountName).toBe(controller?.serviceAccountName);
    const accessOf = (pod: typeof tested) =>
      pod?.containers?.[0]?.env?.filter(
        ({ name }) => /REDIS|DATABASE|CLUSTER/.test(name) && !/MAX_CONN/.test(name),
      );
    expect(accessOf(tested)).toEqual(accessOf(controller));
    expect(tested?.volumes).toEqual(controller?.volumes);
  });

  test.each(VARIANTS)('is the same every time: %s', async (_name, values) => {
    expect(await templateAgain(values)).toBe(await template(values));
  });

  test('has the resource definition of crds/', async () => {
    const name = 'plegreports.plegwatch.dev';
    const { metadata, ...rest } = pick(await render(MINIMAL), 'CustomResourceDefinition', name);
    const source = parse(readFileSync(join(ROOT, `crds/${name}.yaml`), 'utf8'));
    expect({ ...rest, metadata: { name: metadata.name } }).toEqual(source);
  });
});
