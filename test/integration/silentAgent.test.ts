/*
 * Which agents a controller calls silent: those that sent nothing while ingest was running, by the database's clock.
 */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { PLEG_REPORTS } from '../../src/kube/object.ts';
import { senderId } from '../../src/protocol/batch.ts';
import { inboxKey } from '../../src/protocol/redisKeys.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { silent } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';
import { CLUSTER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

/** Longer than a busy machine keeps a process from running: only an agent that is dead sends nothing for this long. */
const SILENCE_S = 45;

let system: System;
let store: Store;

needs(
  'kube-apiserver',
  'etcd',
  'redis-server',
  'postgres',
)('a new controller', () => {
  beforeAll(async () => {
    system = await System.start({ kube: true });
    store = await openStore({ databaseUrl: system.postgres.url, log: silent });
  });
  afterAll(async () => {
    await store?.close();
    await system?.stop();
  });

  test('does not call an agent silent that may have reported without a controller, and keeps the silence that another one found', async () => {
    const evidence = new EvidenceFixture(store, await store.ensureCluster(CLUSTER));
    for (const name of ['perhaps', 'silent', 'reporting']) {
      await system.addNode(name);
      const id = await evidence.node(name);
      await evidence.silentFor(id, name === 'reporting' ? 0 : 1_000);
      await evidence.due(id);
    }
    await system.sql(
      `INSERT INTO store.report_condition (node_id, cluster_id, type, status, reason, message, since)
       SELECT node_id, cluster_id, 'AgentReporting', 'False', 'AgentSilent', '', now() - interval '10 minutes'
       FROM store.node WHERE name = 'silent'`,
    );
    const controller = await system.controller();
    expect(await Promise.all(['perhaps', 'silent', 'reporting'].map(reporting))).toEqual([
      'Unknown IngestBehind',
      'False AgentSilent',
      'True Reporting',
    ]);
    await system.end(controller);
  });

  test('calls an agent silent that died while there was no controller, and none that lives', async () => {
    const runtimes = await Promise.all(
      NODES.map((name, seed) =>
        startSimulatedRuntime({
          socket: system.folder(`${name}.sock`),
          seed,
          churn: { pods: 2, meanMs: 1_000, restarts: 1 },
        }),
      ),
    );
    for (const name of NODES) await system.addNode(name);
    // The views judge as soon as this controller does.
    await system.sql(`CREATE OR REPLACE FUNCTION store.silent_after() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
                      RETURN interval '${SILENCE_S} seconds'`);
    const settings = { intervalSilence: `${SILENCE_S}s` };
    let controller = await system.controller(settings);
    const agents = await Promise.all(NODES.map((name) => system.agent(name, system.folder(`${name}.sock`))));
    for (const name of NODES)
      await waitFor(`${name} reports`, async () => (await reporting(name)) === 'True Reporting' || undefined);
    await waitFor('both deliver', async () => {
      const rows = await system.sql(
        'SELECT FROM plegwatch.epochs WHERE node = ANY ($1) AND acked_seq > 50',
        NODES,
      );
      return rows.length === NODES.length || undefined;
    });
    await controller.kill();
    const [dying] = agents;
    const redis = new Redis(system.redis.url);
    await waitFor('a batch waits', async () => {
      const inboxes = await redis.keys(inboxKey(CLUSTER, '*'));
      const ids = (await Promise.all(inboxes.map((inbox) => redis.hkeys(inbox)))).flat();
      return ids.some((id) => id.startsWith(senderId('dies'))) || undefined;
    });
    redis.disconnect();
    await dying?.kill();
    const died = Date.now();
    await waitFor(
      'it has been dead for long',
      async () =>
        (
          await system.sql(
            'SELECT WHERE now() > to_timestamp($1::float8 / 1000)',
            died + (SILENCE_S + 1) * 1_000,
          )
        ).length > 0 || undefined,
    );
    const [before] = await system.sql<{ at: Date }>('SELECT now() AS at');
    controller = await system.controller(settings);
    await waitFor('its last records are stored', async () => {
      const rows = await system.sql(
        'SELECT FROM store.epoch e JOIN store.node n USING (node_id) WHERE n.name = $1 AND last_stored_at > $2',
        'dies',
        before?.at,
      );
      return rows.length > 0 || undefined;
    });
    const states = new Set<string>();
    await waitFor('the report says so', async () => {
      for (const name of NODES) states.add(`${name} ${await reporting(name)}`);
      return states.has('dies False AgentSilent') && states.has('lives True Reporting') ? true : undefined;
    });
    expect(states).not.toContain('lives False AgentSilent');
    const seen = await system.sql<{ node: string; late: boolean }>(
      `SELECT node, last_seen > $1 AS late FROM plegwatch.nodes WHERE node = ANY ($2) ORDER BY node`,
      before?.at,
      NODES,
    );
    expect(seen).toEqual([
      { node: 'dies', late: false },
      { node: 'lives', late: true },
    ]);
    for (const runtime of runtimes) await runtime.stop();
  });
});

const NODES = ['dies', 'lives'];

/** The condition as soon as there is one. */
const reporting = (name: string): Promise<string> =>
  waitFor(`the report of ${name}`, async () => {
    const status: unknown = Reflect.get(Object(await system.kube.get(PLEG_REPORTS, name)), 'status');
    const conditions: unknown = Reflect.get(Object(status), 'conditions');
    if (!Array.isArray(conditions)) return undefined;
    const found = conditions.find(({ type }) => type === 'AgentReporting');
    return found === undefined ? undefined : `${found.status} ${found.reason}`;
  });
