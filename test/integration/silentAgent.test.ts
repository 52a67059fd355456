/*
 * Which agents a controller calls silent: those that sent nothing while ingest was running, by the database's clock.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PLEG_REPORTS } from '../../src/controller/kube/object.ts';
import { openStore, type Store } from '../../src/controller/store/store.ts';
import { silent } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';
import { CLUSTER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

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
    await system.controller();
    expect(await Promise.all(['perhaps', 'silent', 'reporting'].map(reporting))).toEqual([
      'Unknown IngestBehind',
      'False AgentSilent',
      'True Reporting',
    ]);
  });
});

/** The condition as soon as there is one. */
const reporting = (name: string): Promise<string> =>
  waitFor(`the report of ${name}`, async () => {
    const status: unknown = Reflect.get(Object(await system.kube.get(PLEG_REPORTS, name)), 'status');
    const conditions: unknown = Reflect.get(Object(status), 'conditions');
    if (!Array.isArray(conditions)) return undefined;
    const found = conditions.find(({ type }) => type === 'AgentReporting');
    return found === undefined ? undefined : `${found.status} ${found.reason}`;
  });
