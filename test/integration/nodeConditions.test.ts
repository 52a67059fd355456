/*
 * PLEG conditions, labels, OS images and kernels of Nodes, from a real API server into a real Postgres. The tests write them as a kubelet and
 * an operator do.
 */
import { afterEach, describe, expect, test } from 'vitest';
import {
  type ConditionRecorder,
  startConditionRecorder,
} from '../../src/controller/nodes/conditionRecorder.ts';
import { type NodeInfoRecorder, startNodeInfoRecorder } from '../../src/controller/nodes/infoRecorder.ts';
import { type NodeWatch, startNodeWatch } from '../../src/controller/nodes/nodeWatch.ts';
import { PLEG_HISTORY } from '../../src/controller/nodes/plegHistory.ts';
import { READY_HISTORY } from '../../src/controller/nodes/readyHistory.ts';
import { ReportQueue } from '../../src/controller/reports/queue.ts';
import { NODES } from '../../src/kube/object.ts';
import { CLUSTER } from '../support/batches.ts';
import { runText, silent } from '../support/database.ts';
import { KubeBed } from '../support/kubeBed.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';

const BACKOFF = { firstMs: 20, maxMs: 200 };

const bed = new KubeBed();
let nodes: NodeWatch | undefined;
let recorder: ConditionRecorder | undefined;
let readyRecorder: ConditionRecorder | undefined;
let infoRecorder: NodeInfoRecorder | undefined;

needs(
  'kube-apiserver',
  'etcd',
  'postgres',
)('the Nodes of a cluster', () => {
  afterEach(stop);

  describe('unhealthy PLEG of a Node', () => {
    test('is stored as one row for its start and one for its end, however often its message is written', async () => {
      await addNode('node-a');
      start();
      await known('node-a');
      await ready('node-a', 'True', 'kubelet is posting ready status', 0);
      await ready('node-a', 'False', plegMessage('3m5.2s', '3m0s'), 10);
      await ready('node-a', 'False', plegMessage('4m5.2s', '3m0s'), 10);
      await ready('node-a', 'True', 'kubelet is posting ready status', 130);
      await waitFor('both rows are stored', async () => (await rows('node-a')).length === 2);
      expect(await rows('node-a')).toEqual([
        {
          status: 'False',
          reason: 'KubeletNotReady',
          message: plegMessage('3m5.2s', '3m0s'),
          seen: '185200',
          threshold: '180000',
          seconds: 10,
        },
        {
          status: 'True',
          reason: 'KubeletReady',
          message: 'kubelet is posting ready status',
          seen: null,
          threshold: null,
          seconds: 130,
        },
      ]);
    });

    test('that ends while no controller runs gets its end from the next one, which stores nothing twice', async () => {
      await addNode('node-b');
      start();
      await ready('node-b', 'False', plegMessage('10m3s', '10m0s'), 0);
      await waitFor('the row is stored', async () => (await rows('node-b')).length === 1);
      await stop();
      await ready('node-b', 'True', 'kubelet is posting ready status', 60);
      start();
      await waitFor('the end is stored', async () => (await rows('node-b')).length === 2);
      await stop();
      start();
      await addNode('node-after-b');
      await ready('node-after-b', 'False', plegMessage('3m1s', '3m0s'), 61);
      // Changes are recorded in order: when this row is stored, node-b has been checked again.
      await waitFor(
        'the row of the other Node is stored',
        async () => (await rows('node-after-b')).length === 1,
      );
      expect((await rows('node-b')).map(({ status, threshold }) => [status, threshold])).toEqual([
        ['False', '600000'],
        ['True', null],
      ]);
    });

    test('is stored once Postgres is available again', async () => {
      await addNode('node-c');
      start();
      await ready('node-c', 'False', plegMessage('3m6s', '3m0s'), 0);
      await waitFor('the row is stored', async () => (await rows('node-c')).length === 1);
      await bed.postgres.kill();
      await ready('node-c', 'True', 'kubelet is posting ready status', 30);
      await ready('node-c', 'False', plegMessage('3m9s', '3m0s'), 90);
      await bed.postgres.restart();
      await waitFor('three rows are stored', async () => (await rows('node-c')).length === 3);
      expect((await rows('node-c')).map(({ status, seconds }) => [status, seconds])).toEqual([
        ['False', 0],
        ['True', 30],
        ['False', 90],
      ]);
    });

    test('is stored again when Postgres is restored from an older backup, without a change of the Node', async () => {
      await addNode('node-e');
      start(100);
      await known('node-e');
      await ready('node-e', 'False', plegMessage('3m6s', '3m0s'), 0);
      await ready('node-e', 'True', 'kubelet is posting ready status', 30);
      await waitFor('both rows are stored', async () => (await rows('node-e')).length === 2);
      await stop();
      start(100);
      await ready('node-e', 'False', plegMessage('3m9s', '3m0s'), 90);
      await waitFor('three rows are stored', async () => (await rows('node-e')).length === 3);
      const before = await rows('node-e');
      // Everything that a backup from before the second change lacks, the Node's own row included.
      await runText(
        bed.store,
        `DELETE FROM store.node_condition c USING store.node n
             WHERE c.node_id = n.node_id AND n.name = $1 AND c.at > to_timestamp($2)`,
        ['node-e', MIDNIGHT / 1000 + 10],
      );
      await waitFor('the rows are stored again', async () => (await rows('node-e')).length === 3);
      expect(await rows('node-e')).toEqual(before);
    });

    test('is not stored again once it is older than the retention, after which maintenance deletes it', async () => {
      await addNode('node-f');
      await addNode('node-g');
      start(100);
      await ready('node-f', 'False', plegMessage('3m6s', '3m0s'), -10 * 86_400);
      await waitFor('the old row is stored', async () => (await rows('node-f')).length === 1);
      await ready('node-g', 'False', plegMessage('3m6s', '3m0s'), 0);
      await waitFor('the present row is stored', async () => (await rows('node-g')).length === 1);
      await runText(
        bed.store,
        `WITH shorter AS (UPDATE store.setting SET value = '7' WHERE key = 'finding_retention_days')
             DELETE FROM store.node_condition c USING store.node n WHERE c.node_id = n.node_id AND n.name IN ('node-f', 'node-g')`,
      );
      // Nodes are compared in the order in which they were recorded.
      await waitFor('the present row is stored again', async () => (await rows('node-g')).length === 1);
      expect(await rows('node-f')).toEqual([]);
    });

    test('is stored although the API server restarts', async () => {
      await addNode('node-d');
      start();
      await ready('node-d', 'False', plegMessage('3m1s', '3m0s'), 0);
      await waitFor('the row is stored', async () => (await rows('node-d')).length === 1);
      await bed.server.kill();
      await bed.server.restart();
      await waitFor('the API server accepts the condition', () =>
        ready('node-d', 'True', 'kubelet is posting ready status', 45),
      );
      await waitFor('the end is stored', async () => (await rows('node-d')).length === 2);
    });
  });

  test('a Node that is not Ready has a row for each set of causes, once however often controllers start, and again in a restored store', async () => {
    await addNode('node-h');
    start(100);
    await ready('node-h', 'True', 'kubelet is posting ready status', 0);
    await ready('node-h', 'False', 'container runtime network not ready: NetworkReady=false', 10);
    await waitFor('the first row is stored', async () => (await notReady('node-h')).length === 1);
    await ready('node-h', 'False', `[container runtime is down, ${plegMessage('3m5s', '3m0s')}]`, 10);
    await waitFor('the second row is stored', async () => (await notReady('node-h')).length === 2);
    await ready('node-h', 'True', 'kubelet is posting ready status', 130);
    const expected = [
      { causes: ['network'], seconds: 10, lasted: 5 },
      { causes: ['pleg', 'runtime'], seconds: 15, lasted: 115 },
    ];
    await waitFor('the end is stored', async () => (await notReady('node-h')).at(-1)?.lasted === 115);
    expect(await notReady('node-h')).toEqual(expected);
    await runText(bed.store, 'DELETE FROM store.ready_change WHERE status = $1', ['True']);
    await waitFor('the end is stored again', async () => (await notReady('node-h')).at(-1)?.lasted === 115);
    await stop();
    start(100);
    await addNode('node-after-h');
    await ready('node-after-h', 'False', 'node is shutting down', 0);
    await waitFor(
      'the row of the other Node is stored',
      async () => (await notReady('node-after-h')).length === 1,
    );
    expect(await notReady('node-h')).toEqual(expected);
  });

  test('a Node that was deleted before an agent ran on it is not added to the store again', async () => {
    await addNode('node-q');
    await addNode('node-r');
    start(100);
    await ready('node-q', 'False', 'container runtime network not ready: NetworkReady=false', 0);
    await waitFor('its row is stored', async () => (await notReady('node-q')).length === 1);
    await ready('node-r', 'False', 'container runtime network not ready: NetworkReady=false', 0);
    await waitFor('the other row is stored', async () => (await notReady('node-r')).length === 1);
    await bed.admin.delete(NODES, 'node-q');
    await waitFor('the watch shows the deletion', () => nodes?.get('node-q') === undefined);
    const queue = new ReportQueue(bed.store, await bed.store.ensureCluster(CLUSTER));
    await queue.markDeleted(['node-q']);
    await runText(bed.store, 'DELETE FROM store.ready_change WHERE status = $1', ['False']);
    // Nodes are compared in the order in which they were recorded.
    await waitFor('the other row is stored again', async () => (await notReady('node-r')).length === 1);
    expect(await runText(bed.store, 'SELECT name FROM store.node WHERE name = $1', ['node-q'])).toEqual([]);
  });

  test('a deleted Node whose PLEG was unhealthy is stored again in a restored store, though no agent ran on it', async () => {
    await addNode('node-s');
    start(100);
    await known('node-s');
    await ready('node-s', 'False', plegMessage('3m6s', '3m0s'), 0);
    const stored = async () => [(await rows('node-s')).length, (await notReady('node-s')).length];
    await waitFor('both histories have it', async () => `${await stored()}` === '1,1');
    await bed.admin.delete(NODES, 'node-s');
    await waitFor('the watch shows the deletion', () => nodes?.get('node-s') === undefined);
    const queue = new ReportQueue(bed.store, await bed.store.ensureCluster(CLUSTER));
    await queue.markDeleted(['node-s']);
    for (const table of ['node_condition', 'ready_change'])
      await runText(
        bed.store,
        `DELETE FROM store.${table} c USING store.node n WHERE c.node_id = n.node_id AND n.name = $1`,
        ['node-s'],
      );
    await waitFor('both have it again', async () => `${await stored()}` === '1,1');
  });

  test('labels that were asked for, OS image and kernel are one row, and another one after a change of one of them', async () => {
    await addNode('node-i', { pool: 'general', other: 'a' });
    await nodeInfo('node-i', 'Debian GNU/Linux 13 (trixie)\n', '6.12.43');
    start(100);
    await waitFor('a row is stored', async () => (await infos('node-i')).length === 1);
    await addNode('node-i', { pool: 'general', other: 'b' });
    await addNode('node-i', { pool: 'spot', other: 'b' });
    await waitFor('the change is stored', async () => (await infos('node-i')).length === 2);
    await nodeInfo('node-i', 'Debian GNU/Linux 13 (trixie)\n', '6.12.48');
    await waitFor('the upgrade is stored', async () => (await infos('node-i')).length === 3);
    const os_image = 'Debian GNU/Linux 13 (trixie)\\u000a';
    expect(await infos('node-i')).toEqual([
      { labels: { pool: 'general' }, os_image, kernel_version: '6.12.43', present: false },
      { labels: { pool: 'spot' }, os_image, kernel_version: '6.12.43', present: false },
      { labels: { pool: 'spot' }, os_image, kernel_version: '6.12.48', present: true },
    ]);
  });

  test('labels are stored once however often controllers start, and again when Postgres is restored from an older backup', async () => {
    await addNode('node-j', { pool: 'general' });
    start(100);
    await waitFor('a row is stored', async () => (await infos('node-j')).length === 1);
    await stop();
    await addNode('node-k', { pool: 'general' });
    start(100);
    // All Nodes are compared in one statement.
    await waitFor('the row of the other Node is stored', async () => (await infos('node-k')).length === 1);
    expect(await infos('node-j')).toMatchObject([{ labels: { pool: 'general' }, present: true }]);
    await runText(bed.store, 'DELETE FROM store.node_info');
    await waitFor('the row is stored again', async () => (await infos('node-j')).length === 1);
  });
});

const plegMessage = (ago: string, threshold: string): string =>
  `PLEG is not healthy: pleg was last seen active ${ago} ago; threshold is ${threshold}`;

/** Today's start: conditions have whole seconds. */
const MIDNIGHT = Math.floor(Date.now() / 86_400_000) * 86_400_000;
const rfc3339 = (seconds: number): string =>
  new Date(MIDNIGHT + seconds * 1000).toISOString().replace('.000', '');

function start(recheckMs?: number): void {
  const kube = bed.admin;
  nodes = startNodeWatch({ kube, log: silent, storedLabelKeys: ['pool'], backoff: BACKOFF });
  const conditions = {
    store: bed.store,
    cluster: CLUSTER,
    nodes,
    log: silent,
    ...(recheckMs === undefined ? {} : { recheckMs }),
  };
  recorder = startConditionRecorder({ ...conditions, history: PLEG_HISTORY });
  readyRecorder = startConditionRecorder({ ...conditions, history: READY_HISTORY });
  infoRecorder = startNodeInfoRecorder({
    store: bed.store,
    cluster: CLUSTER,
    nodes,
    log: silent,
    periodMs: 20,
    recheckMs: 100,
  });
}

/** Before the Nodes are listed, only the last one of several changes is seen. */
const known = (name: string) => waitFor(`${name} is known`, () => nodes?.get(name) !== undefined);

async function stop(): Promise<void> {
  await recorder?.stop();
  await readyRecorder?.stop();
  await infoRecorder?.stop();
  await nodes?.stop();
}

async function addNode(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
  await bed.admin.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
}

async function nodeInfo(name: string, osImage: string, kernelVersion: string): Promise<void> {
  await bed.admin.applyStatus(NODES, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    status: { nodeInfo: { ...OTHER_INFO, osImage, kernelVersion } },
  });
}

/** Other fields that the API server requires. */
const OTHER_INFO = {
  ...{ machineID: '', systemUUID: '', bootID: '', containerRuntimeVersion: '', kubeletVersion: '' },
  ...{ kubeProxyVersion: '', operatingSystem: 'linux', architecture: 'amd64' },
};

/** Writes the Ready condition, with a transition `seconds` after midnight. */
async function ready(name: string, status: string, message: string, seconds: number): Promise<true> {
  const condition = {
    type: 'Ready',
    status,
    reason: status === 'True' ? 'KubeletReady' : 'KubeletNotReady',
    message,
    lastTransitionTime: rfc3339(seconds),
    lastHeartbeatTime: rfc3339(seconds + 5),
  };
  await bed.admin.applyStatus(NODES, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    status: { conditions: [condition] },
  });
  return true;
}

type NodeConditionRow = {
  status: string;
  reason: string;
  message: string;
  seen: string | null;
  threshold: string | null;
  seconds: number;
};

async function rows(node: string): Promise<NodeConditionRow[]> {
  return runText<NodeConditionRow>(
    bed.store,
    `SELECT status, reason, message, pleg_seen_ago_ms AS seen, threshold_ms AS threshold,
                    extract(epoch FROM at - to_timestamp($3))::int AS seconds
             FROM plegwatch.node_conditions WHERE cluster = $1 AND node = $2 ORDER BY at`,
    [CLUSTER, node, MIDNIGHT / 1000],
  );
}

type NotReadyRow = { causes: string[]; seconds: number; lasted: number | null };

async function notReady(node: string): Promise<NotReadyRow[]> {
  return runText<NotReadyRow>(
    bed.store,
    `SELECT causes, extract(epoch FROM from_at - to_timestamp($3))::int AS seconds,
                    extract(epoch FROM to_at - from_at)::int AS lasted
             FROM plegwatch.not_ready_intervals WHERE cluster = $1 AND node = $2 ORDER BY from_at`,
    [CLUSTER, node, MIDNIGHT / 1000],
  );
}

type NodeInfoRow = {
  labels: Record<string, string>;
  os_image: string | null;
  kernel_version: string | null;
  present: boolean;
};

async function infos(node: string): Promise<NodeInfoRow[]> {
  return runText<NodeInfoRow>(
    bed.store,
    `SELECT labels, os_image, kernel_version, to_at IS NULL AS present
             FROM plegwatch.node_info WHERE cluster = $1 AND node = $2 ORDER BY from_at`,
    [CLUSTER, node],
  );
}
