/*
 * The chart's checks of a cluster before it changes anything, what it keeps of an earlier release, and the Pod Security levels that its pods meet, on
 * a real API server.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { where } from '../../devtools/localServices/where.ts';
import {
  CHART,
  helm,
  MINIMAL,
  type ProgramResult,
  podsOf,
  render,
  run,
  VARIANTS,
  type Values,
  withHome,
} from '../support/chart.ts';
import { needs } from '../support/needs.ts';

withHome();

const TRIAL: Values = { trial: { enabled: true } };
const POD_SECURITY = 'pod-security.kubernetes.io/enforce';

needs(
  'helm',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('the chart in a cluster', () => {
  let server: LocalApiServer;
  let namespaces = 0;

  const kubectl = (args: readonly string[], input = ''): Promise<ProgramResult> =>
    run(where('kubectl'), ['--kubeconfig', server.kubeconfig, ...args], input);
  /**
   * Runs helm without the hooks, whose Jobs nobody would run here, and without its own check of each object, for which it would read the server's whole API. The
   * agents of each namespace have a folder of their own.
   */
  const release = (
    command: string,
    namespace: string,
    values: Values,
    name = 'plegwatch',
    spool = `/var/lib/${namespace}`,
  ): Promise<ProgramResult> => {
    const place = ['--kubeconfig', server.kubeconfig, '-n', namespace];
    const set = ['--set', `agent.spool.hostPath=${spool}`];
    return helm(
      [command, name, CHART, '--no-hooks', '--disable-openapi-validation', ...place, ...set],
      values,
    );
  };
  const namespaceWith = async (level?: string): Promise<string> => {
    const name = `n${++namespaces}`;
    const metadata = { name, labels: level === undefined ? {} : { [POD_SECURITY]: level } };
    await create({ apiVersion: 'v1', kind: 'Namespace', metadata });
    return name;
  };
  const create = async (object: object): Promise<void> => {
    expect(await kubectl(['create', '-f', '-'], JSON.stringify(object))).toMatchObject({ code: 0 });
  };
  const get = async (namespace: string, ...what: readonly string[]): Promise<string> =>
    (await kubectl(['get', '-n', namespace, ...what])).stdout;
  /** No test sees the definition of another one. */
  const withoutDefinition = (values: Values): Values => ({ ...values, crds: { enabled: false } });

  beforeAll(async () => {
    server = await startApiServer();
  });
  afterAll(() => server?.stop());

  describe('refuses to install', () => {
    const refused = async (namespace: string, values: Values, ...parts: readonly string[]): Promise<void> => {
      const { code, stderr } = await release('install', namespace, values);
      for (const part of parts) expect(stderr).toContain(part);
      expect(code).not.toBe(0);
      expect(await get(namespace, 'daemonsets,deployments,secrets', '-o', 'name')).toBe('');
    };

    test.each(['baseline', 'restricted'])(
      'agents in a namespace that enforces %s, and says what to do',
      async (level) => {
        const namespace = await namespaceWith(level);
        await refused(
          namespace,
          withoutDefinition(MINIMAL),
          `enforces the Pod Security level ${level}`,
          'agent.namespace',
          `kubectl label namespace ${namespace} --overwrite ${POD_SECURITY}=privileged`,
        );
      },
    );

    test('a migration whose Secret is missing or lacks its key, and says which', async () => {
      const namespace = await namespaceWith();
      const values = withoutDefinition({
        cluster: 'c',
        redis: { existingSecret: 'redis', agent: { existingSecret: 'agent-redis' } },
        database: { existingSecret: 'db', existingSecretKeys: { url: 'uri' } },
      });
      const needed = `the Secret db with the key uri in the namespace ${namespace}`;
      await refused(namespace, values, needed, 'there is none: create it first');
      await create({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'db', namespace },
        stringData: { url: 'x' },
      });
      const { code, stderr } = await release('install', namespace, values);
      expect([code, stderr]).toEqual([1, expect.stringContaining('that Secret does not have it')]);
      const waiting = { ...values, fullnameOverride: 'waits', migrate: { mode: 'init' } };
      expect(await release('install', namespace, waiting)).toMatchObject({ code: 0 });
    });

    test('agents that would wait for those of another release, and with a folder of their own they install', async () => {
      const [first, second] = [await namespaceWith(), await namespaceWith()];
      const values = withoutDefinition({ ...MINIMAL, fullnameOverride: 'sharing' });
      const other = withoutDefinition({ ...MINIMAL, fullnameOverride: 'waiting' });
      expect(await release('install', first, values)).toMatchObject({ code: 0 });
      const { code, stderr } = await release('install', second, other, 'plegwatch-2', `/var/lib/${first}`);
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(
          `the release ${first}/plegwatch has agents with the folder /var/lib/${first}`,
        ),
      ]);
      expect(await release('install', second, other, 'plegwatch-2')).toMatchObject({ code: 0 });
      expect(await release('upgrade', first, values)).toMatchObject({ code: 0 });
    });

    test('a resource definition that another release owns, and its cure makes it install', async () => {
      const [first, second] = [await namespaceWith(), await namespaceWith()];
      expect(await release('install', first, MINIMAL)).toMatchObject({ code: 0 });
      // Lost and made again, by helm or by hand: the next upgrade goes on.
      const definition = 'plegreports.plegwatch.dev';
      const gone = () => kubectl(['delete', 'crd', definition, '--wait']);
      expect(await gone()).toMatchObject({ code: 0 });
      expect(await release('upgrade', first, MINIMAL)).toMatchObject({ code: 0 });
      expect(await gone()).toMatchObject({ code: 0 });
      const file = join(import.meta.dirname, `../../crds/${definition}.yaml`);
      expect(await kubectl(['apply', '--server-side', '-f', file])).toMatchObject({ code: 0 });
      expect(await release('upgrade', first, MINIMAL)).toMatchObject({ code: 0 });
      const again = () => release('install', second, MINIMAL, 'plegwatch-2');
      const { code, stderr } = await again();
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(`belongs to the release ${first}/plegwatch`),
      ]);
      expect(stderr).toContain('set crds.enabled to false');
      const cure = /kubectl annotate .*managed-by=Helm/.exec(stderr)?.[0] ?? '';
      for (const command of cure.split(' && ')) {
        expect(await kubectl(command.split(' ').slice(1))).toMatchObject({ code: 0 });
      }
      expect(await again()).toMatchObject({ code: 0 });
    });
  });

  test('the agents can be beside a controller in a namespace that enforces restricted', async () => {
    const [agents, own] = [await namespaceWith('privileged'), await namespaceWith('restricted')];
    const values = withoutDefinition({ ...TRIAL, fullnameOverride: 'beside', agent: { namespace: agents } });
    expect(await release('install', own, values)).toMatchObject({ code: 0 });
  });

  test('a namespace for the agents is made with the release and goes with it', async () => {
    const own = await namespaceWith('restricted');
    const agent = { namespace: 'made-for-agents', createNamespace: true };
    const values = withoutDefinition({ ...MINIMAL, fullnameOverride: 'makes', agent });
    expect(await release('install', own, values)).toMatchObject({ code: 0 });
    expect(await get('made-for-agents', 'daemonsets', '-o', 'name')).toBe('daemonset.apps/makes-agent\n');
    expect(await release('upgrade', own, values)).toMatchObject({ code: 0 });
    const uninstall = ['uninstall', 'plegwatch', '--no-hooks', '--kubeconfig', server.kubeconfig, '-n', own];
    expect(await run(where('helm'), uninstall)).toMatchObject({ code: 0 });
    expect(await get('made-for-agents', 'daemonsets', '-o', 'name')).toBe('');
  });

  describe('a trial', () => {
    const secretOf = async (namespace: string, name: string): Promise<Record<string, string>> => {
      const { data }: { data: Record<string, string> } = JSON.parse(
        await get(namespace, 'secret', name, '-o', 'json'),
      );
      return Object.fromEntries(
        Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
      );
    };
    const volumes = (namespace: string) => get(namespace, 'pvc', '-o', 'name');

    test('has random passwords that upgrades keep, of which the namespace of the agents has only theirs', async () => {
      const [own, agents] = [await namespaceWith(), await namespaceWith()];
      const values = withoutDefinition({ ...TRIAL, fullnameOverride: 't1', agent: { namespace: agents } });
      expect(await release('install', own, values)).toMatchObject({ code: 0 });
      const before = await secretOf(own, 't1-trial');
      expect(before['password']).toMatch(/^[A-Za-z0-9]{32}$/);
      expect(before).toEqual({
        password: before['password'],
        'redis-url': `redis://plegwatch-trial-controller:${before['password']}@t1-trial-redis.${own}.svc:6379`,
        'redis-users': expect.stringMatching(/^user default off\n/),
        'database-url': `postgres://plegwatch:${before['password']}@t1-trial-postgres.${own}.svc:5432/plegwatch`,
      });
      expect(await release('upgrade', own, { ...values, logLevel: 'debug' })).toMatchObject({ code: 0 });
      expect(await secretOf(own, 't1-trial')).toEqual(before);
      const theirs = await secretOf(agents, 't1-trial-agent');
      const [, agentPassword = ''] =
        /^redis:\/\/plegwatch-trial-agent:(\w{32})@/.exec(theirs['redis-url'] ?? '') ?? [];
      expect(theirs).toEqual({
        'redis-url': `redis://plegwatch-trial-agent:${agentPassword}@t1-trial-redis.${own}.svc:6379`,
      });
      expect([before['password'], '']).not.toContain(agentPassword);
      const other = withoutDefinition({ ...TRIAL, fullnameOverride: 't2' });
      const elsewhere = await namespaceWith();
      expect(await release('install', elsewhere, other)).toMatchObject({ code: 0 });
      expect((await secretOf(elsewhere, 't2-trial'))['password']).not.toBe(before['password']);
    });

    test('uses volumes from its first install on if the cluster has a default StorageClass then', async () => {
      const [without, withClass] = [await namespaceWith(), await namespaceWith()];
      const values = (name: string) => withoutDefinition({ ...TRIAL, fullnameOverride: name });
      expect(await release('install', without, values('t3'))).toMatchObject({ code: 0 });
      expect(await volumes(without)).toBe('');
      await create({
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: {
          name: 'standard',
          annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
        },
        provisioner: 'example.com/none',
      });
      expect(await release('install', withClass, values('t4'))).toMatchObject({ code: 0 });
      const both = 'persistentvolumeclaim/t4-trial-postgres\npersistentvolumeclaim/t4-trial-redis\n';
      expect(await volumes(withClass)).toBe(both);
      expect(await release('upgrade', without, values('t3'))).toMatchObject({ code: 0 });
      expect(await volumes(without)).toBe('');
      expect(await kubectl(['delete', 'storageclass', 'standard'])).toMatchObject({ code: 0 });
      expect(await release('upgrade', withClass, values('t4'))).toMatchObject({ code: 0 });
      expect(await volumes(withClass)).toBe(both);
    });
  });

  describe('Pod Security admission', () => {
    /** The answer to a pod of each workload in a namespace that enforces the level. */
    async function admitted(level: string, values: Values): Promise<Map<string, string>> {
      const namespace = await namespaceWith(level);
      const specs = [...podsOf(await render(values))];
      const names = new Set(specs.map(([, { serviceAccountName = 'default' }]) => serviceAccountName));
      await create(
        listOf(
          'ServiceAccount',
          [...names].map((name) => ({ metadata: { name, namespace } })),
        ),
      );
      const pods = specs.map(([name, spec]) => ({
        ...{ metadata: { name, namespace }, spec: { ...spec, restartPolicy: 'Always' } },
      }));
      const trial = ['create', '--dry-run=server', '-f', '-'];
      const { stdout, stderr } = await kubectl(trial, JSON.stringify(listOf('Pod', pods)));
      const isAdmitted = (name: string) => stdout.includes(`pod/${name} created`);
      return new Map(specs.map(([name]) => [name, isAdmitted(name) ? 'yes' : stderr]));
    }
    const listOf = (kind: string, items: readonly object[]) => ({
      ...{
        apiVersion: 'v1',
        kind: 'List',
        items: items.map((item) => ({ apiVersion: 'v1', kind, ...item })),
      },
    });
    const variants: [string, Values][] = VARIANTS.filter(([name]) =>
      /required|trial$|pod of the controller/.test(name),
    ).map(([name, values]) => [name, values]);

    test.each(variants)(
      'lets every pod but the agent into a restricted namespace: %s',
      async (_name, values) => {
        const answers = await admitted('restricted', values);
        expect(answers.get('plegwatch-agent')).toMatch(/violates PodSecurity "restricted/);
        answers.delete('plegwatch-agent');
        expect(answers.size).toBeGreaterThan(1);
        expect(new Set(answers.values())).toEqual(new Set(['yes']));
      },
    );

    test('keeps the agent out of a baseline namespace, because of its host paths only', async () => {
      const agents = {
        ...MINIMAL,
        controller: { enabled: false },
        maintain: { enabled: false },
        migrate: { mode: 'off' },
      };
      const refusal = (await admitted('baseline', agents)).get('plegwatch-agent');
      expect(refusal).toMatch(
        /violates PodSecurity "baseline:latest": hostPath volumes \(volumes "runtime", "spool", "pods-api"\)\n/,
      );
      expect([...(await admitted('privileged', agents)).values()]).toEqual(['yes']);
    });
  });
});
