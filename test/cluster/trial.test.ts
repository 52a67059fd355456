/*
 * The trial that the chart brings, on a real cluster, by the documentation's own command. Redis and Postgres run from images that
 * stand in for the official ones: no registry can be reached.
 */
import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CHECKOUT } from '../../devtools/checkout.ts';
import { type Cluster, startCluster } from '../../devtools/cluster/cluster.ts';
import { documentedCommands, REGISTRY } from '../../devtools/cluster/documentedCommands.ts';
import { type TemporaryFolder, temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { LAKE_VIEWS } from '../../src/analysis/export/views.ts';
import { VERSION } from '../../src/platform/version.ts';
import { leftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';
import { CLUSTER, NAMESPACE, WITHIN_MS } from './bed.ts';
import { writeTrialImages } from './trialImages.ts';

const TIMEOUT = `--timeout=${WITHIN_MS / 1_000}s`;

needs(
  'root',
  ...(['containerd-2.1', 'runc', 'etcd', 'kubelet', 'kube-controller-manager', 'kube-scheduler'] as const),
  ...([
    'kube-proxy',
    'coredns',
    'cni-ptp',
    'nft',
    'helm',
    'postgres',
    'redis-server',
    'image-node',
    'buildah',
    'registry',
    'skopeo',
  ] as const),
)('a trial', () => {
  let cluster: Cluster;
  let folder: TemporaryFolder;

  beforeAll(async () => {
    folder = temporaryFolder('trial-images', undefined);
    cluster = await startCluster({ report: (step) => console.log(step) });
    await cluster.registry.push(
      join(CHECKOUT, `dist/image/plegwatch-${VERSION}.tar`),
      `plegwatch:${VERSION}`,
    );
    for (const image of writeTrialImages(folder.dir)) {
      for (const node of cluster.nodes) await node.importImage(image);
    }
  });
  afterAll(async () => {
    await cluster?.stop();
    folder?.remove();
    expect(leftovers()).toEqual([]);
  });

  const password = () =>
    cluster.kubectl('-n', NAMESPACE, 'get', 'secret', 'plegwatch-trial', '-o', 'jsonpath={.data.password}');

  const evented = () =>
    waitFor(
      'both nodes are Evented',
      async () => {
        const path = 'jsonpath={range .items[*]}{.status.mode} {end}';
        return (await cluster.kubectl('get', 'plegreports', '-o', path)).trim() === 'Evented Evented';
      },
      WITHIN_MS,
    );

  it('needs one command in an empty cluster to end in a report of both nodes with MODE Evented', async () => {
    const [install = ''] =
      /^helm install (?:.*\\\n)*.*\n/m.exec(documentedCommands('docs/how-to/trial.md')) ?? [];
    const began = performance.now();
    await cluster.shell(install);
    await evented();
    console.log(`${((performance.now() - began) / 1_000).toFixed(1)} s from helm install to the table`);
    console.log(await cluster.kubectl('get', 'plegreports'));
    expect(await cluster.shell(`helm -n ${NAMESPACE} test plegwatch 2>&1`)).toMatch(
      /ok +crd +the cluster has the resource/,
    );
  });

  it('keeps its password over an upgrade, and both nodes become Evented again', async () => {
    const before = await password();
    await cluster.shell(`
      helm -n ${NAMESPACE} upgrade plegwatch helm/plegwatch --reset-then-reuse-values --set logLevel=debug
      kubectl -n ${NAMESPACE} rollout status deployment/plegwatch-controller ${TIMEOUT}
      kubectl -n ${NAMESPACE} rollout status daemonset/plegwatch-agent ${TIMEOUT}`);
    expect(await password()).toBe(before);
    // A new agent says nothing of the mode before its first scrape.
    await evented();
  });

  it('a Job of its CronJob exports a lake into a volume that belongs to root', async () => {
    const [node] = cluster.nodes;
    if (node === undefined) throw new Error('a cluster without nodes');
    const path = '/var/lib/volumes/lake';
    mkdirSync(node.path(path), { recursive: true });
    await cluster.shell(`
      kubectl create -f - <<< '${JSON.stringify(volumeAndClaim(node.name, path))}'
      helm -n ${NAMESPACE} upgrade plegwatch helm/plegwatch --reset-then-reuse-values --set lake.enabled=true \
        --set lake.volume.persistentVolumeClaim.claimName=lake
      kubectl -n ${NAMESPACE} create job first --from=cronjob/plegwatch-lake
      kubectl -n ${NAMESPACE} wait --for=condition=complete job/first ${TIMEOUT}`);
    expect(readdirSync(node.path(path))).toEqual(LAKE_VIEWS);
    await cluster.shell(`
      kubectl -n ${NAMESPACE} delete job first --cascade=foreground ${TIMEOUT}
      kubectl -n ${NAMESPACE} delete pvc lake ${TIMEOUT}
      kubectl delete pv lake ${TIMEOUT}`);
  });

  it('leaves neither pods nor Services nor Secrets behind', async () => {
    await uninstall();
    const left = await cluster.kubectl('-n', NAMESPACE, 'get', 'all,secrets,pvc', '-o', 'name');
    expect(left.trim()).toBe('');
  });

  it('on volumes of the default StorageClass its data survives the pods of its Redis and Postgres, and agents in pools send on', async () => {
    const servers = ['redis', 'postgres'] as const;
    const folders = makeVolumes(
      cluster,
      servers.map((server) => `plegwatch-trial-${server}`),
    );
    await cluster.shell(`kubectl create -f - <<< '${JSON.stringify(folders.objects)}'`);
    const pools = cluster.nodes.map(({ name }) => ({
      name: `on-${name}`,
      nodeSelector: { 'kubernetes.io/hostname': name },
    }));
    const began = Date.now();
    await cluster.shell(`
      helm install plegwatch helm/plegwatch --namespace ${NAMESPACE} --create-namespace --set trial.enabled=true \
        --set image.repository=${REGISTRY}/plegwatch --set-json 'agentPools=${JSON.stringify(pools)}'`);
    await allStored(began);
    await evented();
    const agents = await cluster.kubectl('-n', NAMESPACE, 'get', 'daemonset', '-o', 'name');
    expect(agents.trim().split('\n')).toEqual(
      pools.map(({ name }) => `daemonset.apps/plegwatch-agent-${name}`),
    );
    const [redis = '', postgres = ''] = folders.paths;
    // Neither server replaces what it finds: the same files are the same data.
    const data = () =>
      [join(redis, 'appendonlydir'), join(postgres, 'pgdata/PG_VERSION')].map((path) => statSync(path).ino);
    const before = { data: data(), epochs: await epochs() };
    await cluster.shell(`
      kubectl -n ${NAMESPACE} delete pod -l 'app.kubernetes.io/component in (trial-redis, trial-postgres)' --wait ${TIMEOUT}
      kubectl -n ${NAMESPACE} rollout status statefulset/plegwatch-trial-postgres ${TIMEOUT}
      kubectl -n ${NAMESPACE} rollout status statefulset/plegwatch-trial-redis ${TIMEOUT}`);
    // Nobody migrates it again: only a database that is still there can be read.
    await allStored(Date.now());
    expect({ data: data(), epochs: await epochs() }).toEqual(before);
    await uninstall();
  });

  it('a migration that fails ends helm install with its cause, changes nothing else, and the next try succeeds', async () => {
    const redisOf = (user: 'agent' | 'controller') =>
      `redis://plegwatch-${CLUSTER}-${user}:${user.toUpperCase()}-PASSWORD@redis.example:6379`;
    const values = (
      password: string,
    ) => `--namespace ${NAMESPACE} --create-namespace --set cluster=${CLUSTER} \
      --set image.repository=${REGISTRY}/plegwatch \
      --set redis.url=${redisOf('controller')} --set redis.agent.url=${redisOf('agent')} \
      --set database.url=postgres://plegwatch:${password}@db.example:5432/plegwatch`;
    const failed = await cluster.shell(
      `helm install plegwatch helm/plegwatch ${values('WRONG')} \
        --set migrate.activeDeadlineSeconds=180 2>&1 && exit 1 || true`,
    );
    console.log(failed);
    expect(failed).toContain('Job Failed');
    expect(failed).toContain('DATABASE_REFUSED');
    expect(failed).toContain('password authentication failed');
    expect(await cluster.kubectl('-n', NAMESPACE, 'get', 'deployment,daemonset', '-o', 'name')).toBe('');
    const began = Date.now();
    await cluster.shell(`helm upgrade --install plegwatch helm/plegwatch ${values('PASSWORD')}`);
    await allStored(began);
    await evented();
    await uninstall();
  });

  const uninstall = () =>
    cluster.shell(`
      helm -n ${NAMESPACE} uninstall plegwatch --wait ${TIMEOUT}
      kubectl -n ${NAMESPACE} wait --for=delete pod --all ${TIMEOUT}`);

  /** The reports as the database has them, not Kubernetes. */
  const stored = async (): Promise<StoredReport[]> => {
    const report = ['exec', 'deployment/plegwatch-controller', '--', 'plegwatch', 'report', '-o', 'json'];
    const { items } = JSON.parse(await cluster.kubectl('-n', NAMESPACE, ...report)) as {
      items: StoredReport[];
    };
    expect(items).toHaveLength(cluster.nodes.length);
    return items;
  };
  /** Asked until they can be read: a busy machine may take the endpoint of Postgres away for a moment. */
  const epochs = () =>
    waitFor(
      'the epochs can be read',
      async () => (await stored()).map(({ metadata, status }) => `${metadata.name} ${status.agent.epoch}`),
      WITHIN_MS,
    );
  /** Waits until what the agents of all nodes observed after this moment is stored: reports in Kubernetes outlive a release. */
  const allStored = (since: number) =>
    waitFor(
      'the agents of all nodes have their records stored',
      async () => (await stored()).every(({ status }) => Date.parse(status.completeThrough ?? '') > since),
      WITHIN_MS,
    );
});

interface StoredReport {
  readonly metadata: { readonly name: string };
  readonly status: { readonly agent: { readonly epoch?: string }; readonly completeThrough?: string };
}

/** A folder of a node: a volume of the kind that the kubelet gives to the group of a pod. */
function volumeAndClaim(node: string, path: string): object {
  const storage = { storageClassName: 'none', accessModes: ['ReadWriteOnce'] };
  const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }];
  const volume = {
    ...{ ...storage, capacity: { storage: '1Gi' }, local: { path } },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
  };
  const claim = { ...storage, volumeName: 'lake', resources: { requests: { storage: '1Gi' } } };
  const items = [
    { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'lake' }, spec: volume },
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
      ...{ metadata: { name: 'lake', namespace: NAMESPACE }, spec: claim },
    },
  ];
  return { apiVersion: 'v1', kind: 'List', items };
}

/**
 * A default StorageClass and a volume for each claim, in a folder of the first node: nothing in this cluster provisions them. Returns the
 * objects, and the folders as this machine sees them.
 */
function makeVolumes(cluster: Cluster, claims: readonly string[]): { objects: object; paths: string[] } {
  const [node] = cluster.nodes;
  if (node === undefined) throw new Error('a cluster without nodes');
  const storageClassName = 'by-hand';
  const volumes = claims.map((name) => {
    const path = `/var/lib/volumes/${name}`;
    mkdirSync(node.path(path), { recursive: true });
    // Kubernetes gives volumes of this kind to nobody.
    chmodSync(node.path(path), 0o777);
    const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node.name] }];
    const spec = {
      storageClassName,
      capacity: { storage: '20Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path },
      claimRef: { namespace: NAMESPACE, name },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    };
    return { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec };
  });
  const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  const storageClass = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: storageClassName, annotations: isDefault },
    provisioner: 'kubernetes.io/no-provisioner',
  };
  return {
    objects: { apiVersion: 'v1', kind: 'List', items: [storageClass, ...volumes] },
    paths: claims.map((name) => node.path(`/var/lib/volumes/${name}`)),
  };
}
