/*
 * PLEG conditions of Nodes, from a real API server into a real Postgres. The tests write the conditions as a kubelet does, with a patch of
 * the status.
 */
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type LocalPostgres, startPostgres } from '../../devtools/localServices/postgres.ts';
import { createKubeClient, type KubeClient } from '../../src/controller/kube/client.ts';
import { type NodeWatch, startNodeWatch } from '../../src/controller/kube/nodes.ts';
import { NODES } from '../../src/controller/kube/object.ts';
import {
  type ConditionRecorder,
  startConditionRecorder,
} from '../../src/controller/nodeConditions/recorder.ts';
import { migrate } from '../../src/controller/store/migrate.ts';
import { openStore, type Store } from '../../src/controller/store/store.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';

const log = pino({ level: 'silent' });
const CLUSTER = 'test';
const BACKOFF = { firstMs: 20, maxMs: 200 };

let server: LocalApiServer;
let postgres: LocalPostgres;
let store: Store;
let admin: KubeClient;
let nodes: NodeWatch | undefined;
let recorder: ConditionRecorder | undefined;

needs(
  'kube-apiserver',
  'etcd',
  'postgres',
)('unhealthy PLEG of a Node', () => {
  beforeAll(async () => {
    [server, postgres] = await Promise.all([startApiServer(), startPostgres({ settings: { fsync: 'off' } })]);
    admin = await createKubeClient({ kubeconfig: server.kubeconfig });
    await migrate({ databaseUrl: postgres.url, queues: 1, log });
    store = await openStore({ databaseUrl: postgres.url, log });
  });
  afterEach(stop);
  afterAll(async () => {
    await store?.close();
    admin?.close();
    await server?.stop();
    await postgres?.stop();
  });

  test('is stored as one row for its start and one for its end, however often its message is written', async () => {
    await addNode('node-a');
    start();
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
    await postgres.kill();
    await ready('node-c', 'True', 'kubelet is posting ready status', 30);
    await ready('node-c', 'False', plegMessage('3m9s', '3m0s'), 90);
    await postgres.restart();
    await waitFor('three rows are stored', async () => (await rows('node-c')).length === 3);
    expect((await rows('node-c')).map(({ status, seconds }) => [status, seconds])).toEqual([
      ['False', 0],
      ['True', 30],
      ['False', 90],
    ]);
  });

  test('is stored although the API server restarts', async () => {
    await addNode('node-d');
    start();
    await ready('node-d', 'False', plegMessage('3m1s', '3m0s'), 0);
    await waitFor('the row is stored', async () => (await rows('node-d')).length === 1);
    await server.kill();
    await server.restart();
    await waitFor('the API server accepts the condition', () =>
      ready('node-d', 'True', 'kubelet is posting ready status', 45),
    );
    await waitFor('the end is stored', async () => (await rows('node-d')).length === 2);
  });
});

const plegMessage = (ago: string, threshold: string): string =>
  `PLEG is not healthy: pleg was last seen active ${ago} ago; threshold is ${threshold}`;

/** Today's start: conditions have whole seconds. */
const MIDNIGHT = Math.floor(Date.now() / 86_400_000) * 86_400_000;
const rfc3339 = (seconds: number): string =>
  new Date(MIDNIGHT + seconds * 1000).toISOString().replace('.000', '');

function start(): void {
  const kube = admin;
  nodes = startNodeWatch({ kube, log, backoff: BACKOFF });
  recorder = startConditionRecorder({ store, cluster: CLUSTER, nodes, log });
}

async function stop(): Promise<void> {
  await recorder?.stop();
  await nodes?.stop();
}

async function addNode(name: string): Promise<void> {
  await admin.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
}

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
  await admin.applyStatus(NODES, {
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
  const { rows: found } = await store.run<NodeConditionRow>(
    {
      text: `SELECT status, reason, message, pleg_seen_ago_ms AS seen, threshold_ms AS threshold,
                    extract(epoch FROM at - to_timestamp($3))::int AS seconds
             FROM plegwatch.node_conditions WHERE cluster = $1 AND node = $2 ORDER BY at`,
    },
    [CLUSTER, node, MIDNIGHT / 1000],
  );
  return found;
}
