/*
 * The objects of a release of the chart: runtimes, pools of agents, namespaces, ways to migrate, a hub, network policies.
 */
import { describe, expect, test } from 'vitest';
import {
  AGENT_NAMESPACE,
  FLEET,
  HUB,
  LAKE,
  MINIMAL,
  NAMESPACE,
  pick,
  podOf,
  podsOf,
  type Rendered,
  render,
  secretsOf,
  VARIANTS,
  type Values,
  withHome,
} from '../support/chart.ts';
import { needs } from '../support/needs.ts';

withHome();

const valuesOf = (name: string): Values => new Map(VARIANTS).get(name) ?? {};

const kindsOf = (objects: readonly Rendered[]): string[] =>
  objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();

/** The node's path of the runtime's socket, and the folder that is mounted for it. */
function socketOf(
  objects: readonly Rendered[],
  name: string,
): { socket: string | undefined; folder: unknown } {
  const { containers, volumes } = podOf(objects, name);
  return {
    socket: containers[0].env
      .find((variable) => variable.name === 'PLEGWATCH_CRI_ENDPOINT')
      ?.value?.replace('unix:///host', ''),
    folder: volumes?.find((volume) => volume['name'] === 'runtime')?.['hostPath'],
  };
}

needs('helm')('a release', () => {
  describe('for a runtime', () => {
    test.each([
      ['containerd', '/run/containerd/containerd.sock'],
      ['crio', '/run/crio/crio.sock'],
      ['k3s', '/run/k3s/containerd/containerd.sock'],
      ['rke2', '/run/k3s/containerd/containerd.sock'],
      ['microk8s', '/var/snap/microk8s/common/run/containerd.sock'],
      ['k0s', '/run/k0s/containerd.sock'],
      ['isulad', '/var/run/isulad.sock'],
    ])('%s mounts the folder of its socket', async (runtime, socket) => {
      const found = socketOf(await render({ ...MINIMAL, runtime }), 'plegwatch-agent');
      expect(found).toEqual({
        socket,
        folder: { path: socket.slice(0, socket.lastIndexOf('/')), type: 'Directory' },
      });
    });

    test('uses agent.criEndpoint instead, if that is set', async () => {
      const values = { ...MINIMAL, runtime: 'k3s', agent: { criEndpoint: '/srv/cri/own.sock' } };
      expect(socketOf(await render(values), 'plegwatch-agent').socket).toBe('/srv/cri/own.sock');
    });
  });

  describe('with pools of agents', () => {
    test('has one DaemonSet for each pool and no other, with selectors that match no pod of another', async () => {
      const objects = await render(valuesOf('pools of agents'));
      const sets = objects.filter(({ kind }) => kind === 'DaemonSet');
      expect(sets.map(({ metadata }) => metadata.name)).toEqual([
        'plegwatch-agent-workers',
        'plegwatch-agent-crio',
      ]);
      expect(sets.map(({ metadata }) => metadata.labels?.['plegwatch.dev/pool'])).toEqual([
        'workers',
        'crio',
      ]);
      expect(sets).toMatchObject(
        ['workers', 'crio'].map((pool) => ({
          spec: {
            selector: { matchLabels: { 'plegwatch.dev/pool': pool } },
            template: { metadata: { labels: { 'plegwatch.dev/pool': pool } } },
          },
        })),
      );
    });

    test('merges the maps of a pool with those of agent, and replaces lists, empty ones too', async () => {
      const objects = await render(valuesOf('pools of agents'));
      const [workers, crio] = ['workers', 'crio'].map((pool) => podOf(objects, `plegwatch-agent-${pool}`));
      expect(workers?.nodeSelector).toEqual({ 'kubernetes.io/os': 'linux', pool: 'workers' });
      expect(workers?.tolerations).toEqual([{ operator: 'Exists' }]);
      expect(workers?.automountServiceAccountToken).toBe(true);
      expect(crio?.nodeSelector).toEqual({ 'kubernetes.io/os': 'linux', pool: 'crio' });
      expect(crio?.tolerations).toBeUndefined();
      expect(crio?.automountServiceAccountToken).toBe(false);
      expect(crio?.securityContext).toMatchObject({ seLinuxOptions: { type: 'spc_t' } });
      expect(socketOf(objects, 'plegwatch-agent-workers').socket).toBe('/run/containerd/containerd.sock');
      expect(socketOf(objects, 'plegwatch-agent-crio').socket).toBe('/run/crio/crio.sock');
    });

    test("takes a pool's runtime before the endpoint of all, and a pool's endpoint before its runtime", async () => {
      const objects = await render({
        ...MINIMAL,
        agent: { criEndpoint: '/all/cri.sock' },
        agentPools: [
          { name: 'a' },
          { name: 'b', runtime: 'crio' },
          { name: 'c', runtime: 'crio', criEndpoint: '/c/cri.sock' },
        ],
      });
      expect(['a', 'b', 'c'].map((pool) => socketOf(objects, `plegwatch-agent-${pool}`).socket)).toEqual([
        '/all/cri.sock',
        '/run/crio/crio.sock',
        '/c/cri.sock',
      ]);
    });

    test('has the permission to read metrics if any pool reads them', async () => {
      const role = 'ClusterRole plegwatch-agent';
      expect(kindsOf(await render(valuesOf('pools of agents')))).toContain(role);
      const none = { ...MINIMAL, agentPools: [{ name: 'a', kubelet: { enabled: false } }] };
      expect(kindsOf(await render(none))).not.toContain(role);
    });
  });

  describe('with two namespaces', () => {
    const values = { ...MINIMAL, agent: { namespace: AGENT_NAMESPACE } };

    test('puts only what the agents need into their namespace', async () => {
      const objects = await render(values);
      const there = objects.filter(({ metadata }) => metadata.namespace === AGENT_NAMESPACE);
      expect(kindsOf(there)).toEqual([
        'ConfigMap plegwatch-keys',
        'DaemonSet plegwatch-agent',
        'ResourceQuota plegwatch-agent',
        'Role plegwatch-keys-public',
        'RoleBinding plegwatch-keys-public',
        'Secret plegwatch-agent-redis',
        'ServiceAccount plegwatch-agent',
      ]);
      expect(pick(objects, 'ClusterRoleBinding', 'plegwatch-agent').subjects).toEqual([
        { kind: 'ServiceAccount', name: 'plegwatch-agent', namespace: AGENT_NAMESPACE },
      ]);
      const here = objects.filter(({ metadata }) => metadata.namespace === NAMESPACE);
      expect(kindsOf(here)).toEqual(
        expect.arrayContaining(['Secret plegwatch-database', 'Secret plegwatch-redis']),
      );
    });

    test('makes the namespace, with the level that agents need, only if it is to', async () => {
      expect(kindsOf(await render(values)).filter((name) => /^Namespace/.test(name))).toEqual([]);
      const made = await render({ ...MINIMAL, agent: { namespace: 'new', createNamespace: true } });
      expect(pick(made, 'Namespace', 'new').metadata.labels).toMatchObject({
        'pod-security.kubernetes.io/enforce': 'privileged',
      });
    });
  });

  describe('migrates', () => {
    const jobs = (objects: readonly Rendered[]) =>
      objects.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook']?.includes('install'));
    const initOf = (objects: readonly Rendered[]) => podOf(objects, 'plegwatch-controller').initContainers;

    test('with mode hook in a Job, and ends before helm does', async () => {
      const objects = await render(MINIMAL);
      expect(kindsOf(jobs(objects))).toEqual(['Job plegwatch-migrate', 'Secret plegwatch-migrate']);
      expect(pick(objects, 'Job', 'plegwatch-migrate')).toMatchObject({
        spec: { activeDeadlineSeconds: 240 },
      });
      expect(initOf(objects)).toBeUndefined();
    });

    test('with mode init in the pod of the controller, which waits for Postgres, without any hook', async () => {
      const objects = await render({
        ...MINIMAL,
        database: { url: 'postgres://c@p/p', owner: { url: 'postgres://owner@p/p' } },
        migrate: { mode: 'init' },
      });
      expect(jobs(objects)).toEqual([]);
      const [migrate, ...more] = initOf(objects) ?? [];
      expect(more).toEqual([]);
      expect(migrate?.args).toEqual(['migrate']);
      expect(migrate?.env).toContainEqual({ name: 'PLEGWATCH_DATABASE_WAIT', value: '1h' });
      const owner = pick(objects, 'Secret', 'plegwatch-database-owner').stringData?.['url'];
      expect(owner).toBe('postgres://owner@p/p');
      expect(migrate?.securityContext).toEqual(
        podOf(objects, 'plegwatch-controller').containers[0].securityContext,
      );
    });

    test.each(['off', false])('with mode %j not at all', async (mode) => {
      const objects = await render({ ...MINIMAL, migrate: { mode } });
      expect(jobs(objects)).toEqual([]);
      expect(initOf(objects)).toBeUndefined();
    });
  });

  test("needs no owner's password if it neither migrates nor maintains", async () => {
    const values = { migrate: { mode: 'off' }, maintain: { enabled: false } };
    const objects = await render({ ...valuesOf('existing Secrets only'), ...values });
    const secrets = [...podsOf(objects).values()].flatMap((pod) => [...secretsOf(pod).values()].flat());
    expect(new Set(secrets.map(({ name }) => name))).toEqual(new Set(['redis', 'agent-redis', 'database']));
  });

  test('that is a hub has nothing but the Jobs of the database, and needs neither a cluster nor a Redis', async () => {
    expect(kindsOf(await render(HUB))).toEqual(['CronJob plegwatch-maintain', 'Job plegwatch-migrate']);
    expect(HUB).not.toHaveProperty('cluster');
  });

  describe('with network policies', () => {
    interface Policy {
      readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[];
      readonly ingress: readonly { readonly from?: unknown; readonly ports: unknown }[];
    }
    const policyOf = (objects: readonly Rendered[], name: string): Policy => {
      const spec: unknown = pick(objects, 'NetworkPolicy', `plegwatch-${name}`).spec;
      return spec as Policy;
    };
    const portsOf = ({ egress }: Policy) => [
      ...new Set(egress.flatMap(({ ports }) => ports.map(({ port }) => port))),
    ];
    const DNS = [53, 5353];
    const on = { networkPolicy: { enabled: true } };

    test('lets agents reach Redis and the kubelet, and the controller Redis, Postgres and the API server', async () => {
      const objects = await render({ ...MINIMAL, ...on });
      expect(portsOf(policyOf(objects, 'agent'))).toEqual([...DNS, 6379, 26379, 10250]);
      expect(portsOf(policyOf(objects, 'controller'))).toEqual([...DNS, 6379, 26379, 5432, 6432, 443, 6443]);
      expect(portsOf(policyOf(objects, 'maintain'))).toEqual([...DNS, 5432, 6432]);
      expect(policyOf(objects, 'agent').ingress).toEqual([{ ports: [{ port: 'http' }] }]);
      expect(policyOf(objects, 'maintain').ingress).toEqual([]);
    });

    test("takes the kubelet's port from its URL", async () => {
      const kubelet = { url: 'https://[$(HOST_IP)]:10999' };
      const objects = await render({ ...MINIMAL, ...on, agent: { kubelet } });
      expect(portsOf(policyOf(objects, 'agent'))).toEqual([...DNS, 6379, 26379, 10999]);
    });

    test.each([
      ['http://collector.observability:4318', 4318],
      ['https://otlp.example.com/base', 443],
      ['http://collector', 80],
    ])('lets the controller reach the collector at %s, which it is told of', async (otlpEndpoint, port) => {
      const objects = await render({ ...MINIMAL, ...on, controller: { otlpEndpoint } });
      expect(portsOf(policyOf(objects, 'controller'))).toContain(port);
      expect(JSON.stringify(pick(objects, 'Deployment', 'plegwatch-controller').spec)).toContain(
        JSON.stringify({ name: 'PLEGWATCH_OTLP_ENDPOINT', value: otlpEndpoint }),
      );
    });

    test('lets the migration of an install reach Postgres, too', async () => {
      const objects = await render({ ...MINIMAL, ...on });
      expect(pick(objects, 'NetworkPolicy', 'plegwatch-migrate').metadata.annotations).toMatchObject({
        'helm.sh/hook': 'pre-install,pre-upgrade',
        'helm.sh/hook-weight': '-5',
      });
    });
  });

  test('has the names and labels that are set, and no name that is too long for its kind', async () => {
    const objects = await render(valuesOf('every value that is empty by default'));
    for (const { kind, metadata } of objects) {
      if (kind === 'CustomResourceDefinition') continue;
      expect(metadata.name).toMatch(/^a-name-of-the-forty-characters-allowed-x-/);
      expect(metadata.name.length).toBeLessThanOrEqual(kind === 'CronJob' ? 52 : 63);
      expect(metadata.labels).toMatchObject({ 'app.kubernetes.io/name': 'pleg', 'example.com/cost': '42' });
    }
    const renamed = await render({ ...MINIMAL, nameOverride: 'watcher' });
    expect(kindsOf(renamed)).toContain('DaemonSet plegwatch-watcher-agent');
  });

  test.each([
    ['maintain', MINIMAL],
    ['lake', LAKE],
    ['federate', FLEET],
  ])("runs %s by a schedule of UTC, whatever the zone of the cluster's controllers", async (name, values) => {
    expect(pick(await render(values), 'CronJob', `plegwatch-${name}`).spec).toMatchObject({
      timeZone: 'Etc/UTC',
    });
  });
});
