/*
 * What is said of pools where a Node was deleted and where there are very many nodes, on a real Postgres.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hourOf, readPoolHours } from '../../src/analysis/hours/hours.ts';
import { changeSince } from '../../src/analysis/hours/worse.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { neighboursAnswer } from '../../src/ui/answers/pool.ts';
import { createReader } from '../../src/ui/answers/reader.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';

const HOUR_MS = 3_600_000;

let server: TestServer;
let databaseUrl: string;
let store: Store;

needs('postgres')('pools', () => {
  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
    store = await openStore({ databaseUrl, log: silent });
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  it('a Node that was deleted is no node without a reporting agent, and nothing of it lasts after that', async () => {
    const cluster = await store.ensureCluster('east');
    const end = hourOf(new Date()).getTime();
    const ago = (hours: number) => new Date(end - hours * HOUR_MS);
    const add = `INSERT INTO store.node (cluster_id, name, first_seen, last_seen) VALUES ($1, $2, $3, $4) RETURNING node_id`;
    await query(databaseUrl, add, [cluster, 'stays', ago(72), new Date()]);
    const [gone] = await query<{ node_id: number }>(databaseUrl, add, [cluster, 'gone', ago(72), ago(10)]);
    await query(
      databaseUrl,
      `INSERT INTO store.report (node_id, cluster_id, node_deleted_at) VALUES ($1, $2, $3)`,
      [gone?.node_id, cluster, ago(10)],
    );
    await query(
      databaseUrl,
      `INSERT INTO store.ready_change (node_id, cluster_id, at, status, reason, causes) VALUES ($1, $2, $3, 'False', 'KubeletNotReady', '{pleg}')`,
      [gone?.node_id, cluster, ago(12)],
    );
    const { rows } = await store.run(readPoolHours, [null, ago(48), new Date(end), 3600, 10]);
    expect(rows).toMatchObject([{ cluster: 'east', pool: null, nodes: 1, silent: 0 }]);
    const slow = (rows[0]?.slow ?? []).flatMap((nodes, hour) => (nodes > 0 ? [48 - hour] : []));
    expect(slow).toEqual([12, 11]);
    expect(rows[0]?.knownSeconds.slice(-11)).toEqual([7200, ...Array.from({ length: 10 }, () => 3600)]);
    expect(changeSince(rows, end).sentence).not.toContain('without a reporting agent');
  });

  it('any node of a very large pool is compared with those next to it by name', async () => {
    const cluster = await store.ensureCluster('large');
    const nameOf = (n: number) => `node-${String(n).padStart(4, '0')}`;
    await query(
      databaseUrl,
      `INSERT INTO store.node (cluster_id, name, first_seen, last_seen)
       SELECT $1, 'node-' || lpad(i::text, 4, '0'), now() - interval '1 day', now() FROM generate_series(1, 1200) AS i`,
      [cluster],
    );
    const reader = createReader(store, undefined, 1)(new AbortController().signal);
    const beside = async (node: string) => {
      const { nodes, leftOut, empty } = await neighboursAnswer(
        reader,
        new URLSearchParams({ cluster: 'large', node }),
      );
      return { first: nodes[0]?.node, last: nodes.at(-1)?.node, n: nodes.length, leftOut, empty };
    };
    const all = { n: 201, leftOut: 999, empty: null };
    expect(await beside(nameOf(1))).toEqual({ first: nameOf(1), last: nameOf(201), ...all });
    expect(await beside(nameOf(600))).toEqual({ first: nameOf(500), last: nameOf(700), ...all });
    expect(await beside(nameOf(1150))).toEqual({ first: nameOf(1000), last: nameOf(1200), ...all });
  });
});
