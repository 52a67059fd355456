/*
 * The chart on a real API server: it accepts every object, and the programs' requests succeed with the permissions that the chart
 * grants.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { where } from '../../devtools/localServices/where.ts';
import { startElection } from '../../src/controller/leader/election.ts';
import { LEASE_TIMES } from '../../src/controller/leader/lease.ts';
import { putReport } from '../../src/controller/reports/nodeReports.ts';
import type { ReportStatus } from '../../src/controller/reports/status.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { leasesOf, NODES, PLEG_REPORTS } from '../../src/kube/object.ts';
import { aborted } from '../../src/platform/stopSignal.ts';
import {
  AGENT_NAMESPACE,
  CHART,
  documents,
  helm,
  home,
  MINIMAL,
  NAMESPACE,
  type ProgramResult,
  podOf,
  type Rendered,
  render,
  run,
  template,
  VARIANTS,
  type Values,
  withHome,
} from '../support/chart.ts';
import { needs } from '../support/needs.ts';
import { passes, waitFor } from '../support/waitFor.ts';

withHome();

const AT = '2026-11-20T12:00:00Z';
/** Service accounts: the default one, which no controller manager makes here, and the one that a variant names. */
const ACCOUNTS = ['account', 'default'];

needs(
  'helm',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('on a real API server', () => {
  let server: LocalApiServer;
  let admin: KubeClient;

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
    admin = await createKubeClient({ kubeconfig: server.kubeconfig });
    for (const namespace of [NAMESPACE, AGENT_NAMESPACE]) {
      expect(await kubectl(['create', 'namespace', namespace])).toMatchObject({ code: 0 });
      for (const account of ACCOUNTS)
        expect(await kubectl(['create', 'serviceaccount', account, '-n', namespace])).toMatchObject({
          code: 0,
        });
    }
    const restricted = 'pod-security.kubernetes.io/warn=restricted';
    expect(await kubectl(['label', 'namespace', NAMESPACE, restricted])).toMatchObject({ code: 0 });
  });
  afterAll(async () => {
    admin?.close();
    await server?.stop();
  });

  describe('every object of a release', () => {
    const isAccount = ({ kind }: Rendered) => kind === 'ServiceAccount';
    let accounts = '';
    beforeAll(async () => {
      // A pod is accepted only where its account exists, which a dry run does not make.
      const objects = (await Promise.all(VARIANTS.map(([, values]) => render(values)))).flat();
      const bare = objects.filter(isAccount).map(({ kind, metadata: { name, namespace } }) => ({
        ...{ apiVersion: 'v1', kind, metadata: { name, namespace } },
      }));
      const items = new Map(bare.map((account) => [JSON.stringify(account), account])).values();
      accounts = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...items] });
      expect(await kubectl(['create', '-f', '-'], accounts)).toMatchObject({ code: 0 });
    });
    afterAll(async () => {
      expect(await kubectl(['delete', '-f', '-'], accounts)).toMatchObject({ code: 0 });
    });

    test.each(VARIANTS)(
      'is accepted, and no pod has the account of another release: %s',
      async (_name, values) => {
        const text = await template(values);
        const objects = documents(text);
        const own = objects.filter(isAccount).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
        own.push(...ACCOUNTS.map((account) => `${NAMESPACE}/${account}`));
        for (const { metadata, spec } of objects.filter(({ kind }) => kind === 'Pod'))
          expect(own).toContain(`${metadata.namespace}/${spec.serviceAccountName}`);
        const args = ['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'];
        const { code, stdout, stderr } = await kubectl(args, text);
        // The restricted level forbids hostPath volumes; only the agent has any.
        const warned = stderr.split('\n').filter((line) => /would violate PodSecurity/.test(line));
        expect(warned.filter((line) => !/hostPath/.test(line))).toEqual([]);
        expect(stderr.split('\n').filter((line) => line !== '' && !warned.includes(line))).toEqual([]);
        expect(code).toBe(0);
        expect(stdout.trim().split('\n')).toHaveLength(objects.length);
      },
    );
  });

  describe('an installed release', () => {
    beforeAll(async () => {
      const { code, stdout } = await release('install', MINIMAL);
      expect([code, stdout]).toEqual([0, expect.stringContaining('kubectl get plegreports')]);
    });

    const ACCOUNT_GROUP = 'system:serviceaccounts';
    /** The server authorizes by a role a moment after it was stored. */
    const authorizes = (isAllowed: boolean, name: string, verb: string, what: string): Promise<void> => {
      const [, plural = '', group = '', subresource = ''] = /^(\w+)\.?([\w.]*)\/?(\w*)$/.exec(what) ?? [];
      const user = {
        ...{ username: `system:serviceaccount:${NAMESPACE}:plegwatch-${name}`, uid: '', extra: {} },
        groups: [ACCOUNT_GROUP, `${ACCOUNT_GROUP}:${NAMESPACE}`, 'system:authenticated'],
      };
      const right = { verb, resource: { plural, group, version: 'v1' }, subresource };
      return passes(async () =>
        expect([verb, what, await admin.mayUser(user, right)]).toEqual([verb, what, isAllowed]),
      );
    };
    const may = (name: string, verb: string, what: string) => authorizes(true, name, verb, what);
    const mayNot = (name: string, verb: string, what: string) => authorizes(false, name, verb, what);

    test('lets the agent get nodes/metrics and nothing else', async () => {
      await may('agent', 'get', 'nodes/metrics');
      for (const [verb, what] of [
        ['get', 'nodes'],
        ['get', 'nodes/proxy'],
        ['get', 'nodes/log'],
        ['create', 'nodes/metrics'],
        ['list', 'pods'],
        ['get', 'secrets'],
        ['list', 'events.events.k8s.io'],
        ['delete', 'events.events.k8s.io'],
        ['patch', 'plegreports.plegwatch.dev'],
      ] as const) {
        await mayNot('agent', verb, what);
      }
    });

    test('gives the controller no permission that it does not use', async () => {
      await may('controller', 'get', 'pods');
      for (const [verb, what] of [
        ['patch', 'nodes'],
        ['delete', 'nodes'],
        ['patch', 'nodes/status'],
        ['get', 'nodes/proxy'],
        ['get', 'nodes/metrics'],
        ['list', 'pods'],
        ['delete', 'pods'],
        ['get', 'secrets'],
        ['deletecollection', 'plegreports.plegwatch.dev'],
        ['update', 'plegreports.plegwatch.dev/status'],
        ['patch', 'customresourcedefinitions.apiextensions.k8s.io'],
      ] as const) {
        await mayNot('controller', verb, what);
      }
    });

    test('lets the controller get pods only if the status lag is enabled', async () => {
      await may('controller', 'get', 'pods');
      const off = { ...MINIMAL, controller: { statusLag: { enabled: false, readsPerSecond: 3 } } };
      expect(await release('upgrade', off)).toMatchObject({ code: 0 });
      await mayNot('controller', 'get', 'pods');
      const { env } = podOf(await render(off), 'plegwatch-controller').containers[0];
      expect(env).toContainEqual({ name: 'PLEGWATCH_STATUS_LAG', value: 'off' });
      expect(env).toContainEqual({ name: 'PLEGWATCH_STATUS_LAG_READS_PER_SECOND', value: '3' });
      expect(await release('upgrade', MINIMAL)).toMatchObject({ code: 0 });
      await may('controller', 'get', 'pods');
    });

    test('lets the controller patch nodes/status only if it publishes conditions, and removes them by the upgrade that ends that, once', async () => {
      const hooks = async () => {
        const args = ['get', 'hooks', 'plegwatch', '--kubeconfig', server.kubeconfig, '-n', NAMESPACE];
        const { stdout } = await run(where('helm'), args);
        return documents(stdout)
          .filter(({ metadata }) => metadata.name === 'plegwatch-node-conditions')
          .map(({ kind, metadata }) => `${kind} ${metadata.annotations?.['helm.sh/hook']}`);
      };
      const kinds = ['ClusterRole', 'ClusterRoleBinding', 'Job', 'ServiceAccount'];
      const on = { ...MINIMAL, controller: { nodeConditions: { enabled: true } } };
      expect(await release('upgrade', on)).toMatchObject({ code: 0 });
      await may('controller', 'patch', 'nodes/status');
      await mayNot('controller', 'patch', 'nodes');
      expect((await hooks()).sort()).toEqual(kinds.map((kind) => `${kind} post-delete`));
      expect(await release('upgrade', MINIMAL)).toMatchObject({ code: 0 });
      await mayNot('controller', 'patch', 'nodes/status');
      expect((await hooks()).sort()).toEqual(kinds.map((kind) => `${kind} post-upgrade`));
      expect(await release('upgrade', MINIMAL)).toMatchObject({ code: 0 });
      expect(await hooks()).toEqual([]);
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
        await putReport(
          kube,
          'node-a',
          {
            uid,
            labels: {},
            info: { labels: {}, osImage: '', kernelVersion: '' },
            createdAt: null,
            ready: null,
            published: [],
          },
          statusOf(),
          AbortSignal.timeout(240_000),
        );
        const reports = await kube.list(PLEG_REPORTS, { limit: 500, metadataOnly: true });
        expect(reports.items.map(({ metadata }) => metadata.ownerReferences[0]?.uid)).toEqual([uid]);
        for (const verb of ['create', 'patch']) await may('controller', verb, 'events.events.k8s.io');
        expect(await kube.delete(PLEG_REPORTS, 'node-a', reports.items[0]?.metadata.uid ?? '')).toBe(true);
      } finally {
        kube.close();
      }
    });

    test('lets the controller make the Lease, hold it, and release it', async () => {
      const kube = await clientOf('plegwatch-controller');
      const name = 'plegwatch-controller';
      let leads = false;
      const election = startElection({
        kube,
        lease: { namespace: NAMESPACE, name },
        log: pino({ level: 'silent' }),
        times: { ...LEASE_TIMES, releaseWithinMs: 240_000 },
        isFit: () => true,
        async lead(signal) {
          leads = true;
          await aborted(signal);
        },
      });
      try {
        await waitFor('it leads', () => leads || undefined);
      } finally {
        await election.stop();
      }
      const lease = await kube.get(leasesOf(NAMESPACE), name);
      expect(lease).toMatchObject({ spec: { leaseTransitions: 1 } });
      expect(lease).not.toMatchObject({ spec: { holderIdentity: expect.stringMatching(/./) } });
      await expect(kube.get(leasesOf(NAMESPACE), 'of-others')).rejects.toThrow(
        /cannot get resource "leases"/,
      );
      kube.close();
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
      expect(left.stdout.trim().split('\n')).toEqual(ACCOUNTS.map((account) => `serviceaccount/${account}`));
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
