/*
 * Pools where a Node was deleted and where there are very many nodes, on a real Postgres.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hourOf, readPoolHours } from '../../src/analysis/hours/hours.ts';
import { changeSince } from '../../src/analysis/hours/worse.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { neighboursAnswer, poolAnswers } from '../../src/ui/answers/pool.ts';
import { createReader } from '../../src/ui/answers/reader.ts';
import { readObservedDays } from '../../src/ui/answers/statements.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { documentedSql } from '../support/documentedQuestions.ts';
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
    expect(await query(databaseUrl, documentedSql('Which nodes have no working agent?'))).toEqual([]);
    const judged = await query(databaseUrl, 'SELECT node FROM plegwatch.readiness');
    expect(judged).toEqual([{ node: 'stays' }]);
  });

  /** An epoch of a node, which an agent ran from the one to the other time and in which it read the metrics of the kubelet. */
  const addEpoch = async (node: number, incarnation: number, from: Date, to: Date) => {
    const epoch = randomUUID();
    await query(
      databaseUrl,
      `INSERT INTO store.epoch (node_id, cluster_id, epoch, incarnation, claimed_incarnation, node_uid, boot_id, started_mono, started_at, ack_generation,
                                last_seq, kubelet_seen_from, kubelet_seen_to, last_seen, last_new_at)
       SELECT node_id, cluster_id, $2, $3, $3, '', '', 0, $4, 1, 0, $4, $5, $5, $5 FROM store.node WHERE node_id = $1`,
      [node, epoch, incarnation, from, to],
    );
    return epoch;
  };

  it('a Node that came back under its name as another machine is not known in between', async () => {
    const cluster = await store.ensureCluster('back');
    const end = hourOf(new Date()).getTime();
    const ago = (hours: number) => new Date(end - hours * HOUR_MS);
    const [node] = await query<{ node_id: number }>(
      databaseUrl,
      `INSERT INTO store.node (cluster_id, name, first_seen, last_seen, replaced_at) VALUES ($1, 'back', $2, $3, $4) RETURNING node_id`,
      [cluster, ago(8), new Date(), ago(9)],
    );
    await query(
      databaseUrl,
      `INSERT INTO store.report (node_id, cluster_id, created_at) SELECT node_id, cluster_id, $2 FROM store.node WHERE node_id = $1`,
      [node?.node_id, ago(100)],
    );
    const knownHours = async () => {
      const { rows } = await store.run(readPoolHours, [['back'], ago(48), new Date(end), 3600, 10]);
      return (rows[0]?.knownSeconds ?? []).flatMap((seconds, hour) => (seconds > 0 ? [48 - hour] : []));
    };
    await addEpoch(node?.node_id ?? 0, 1, ago(30), ago(24));
    await addEpoch(node?.node_id ?? 0, 2, ago(8), new Date());
    const hours = (first: number, last: number) =>
      Array.from({ length: first - last + 1 }, (_, n) => first - n);
    expect(await knownHours()).toEqual([...hours(30, 25), ...hours(8, 1)]);
    // No agent ran on the new machine yet: it is known, and not observed.
    await query(databaseUrl, `UPDATE store.node SET first_seen = NULL, last_seen = NULL WHERE node_id = $1`, [
      node?.node_id,
    ]);
    await query(databaseUrl, `DELETE FROM store.epoch WHERE node_id = $1 AND incarnation = 2`, [
      node?.node_id,
    ]);
    expect(await knownHours()).toEqual([...hours(30, 25), ...hours(9, 1)]);
  });

  it('days on which an agent could not read the metrics of its kubelet are not observed, also in the middle of its run', async () => {
    const cluster = await store.ensureCluster('forbidden');
    const today = Math.floor(Date.now() / (24 * HOUR_MS)) * 24 * HOUR_MS;
    const ago = (days: number) => new Date(today - days * 24 * HOUR_MS);
    const [node] = await query<{ node_id: number }>(
      databaseUrl,
      `INSERT INTO store.node (cluster_id, name, first_seen, last_seen) VALUES ($1, 'node', $2, now()) RETURNING node_id`,
      [cluster, ago(10)],
    );
    const epoch = await addEpoch(node?.node_id ?? 0, 1, ago(9.5), ago(0.5));
    await query(
      databaseUrl,
      `INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at)
       SELECT gen_random_uuid(), $1, $2, $3, 'kubelet', g.cause, g.from_at, g.to_at
       FROM (VALUES ('Forbidden', $4::timestamptz, $5::timestamptz), ('Timeout', $5, $6)) AS g (cause, from_at, to_at)`,
      [node?.node_id, cluster, epoch, ago(7.5), ago(5), ago(3.5)],
    );
    const { rows } = await store.run(readObservedDays, [['forbidden'], ago(12), ago(0)]);
    const seen = rows.map(({ day, nodes }) => [
      Math.round((today - Date.parse(day)) / (24 * HOUR_MS)),
      nodes,
    ]);
    expect(seen).toEqual(
      [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1].map((day) => [
        day,
        [10, 9, 8, 4, 3, 2, 1].includes(day) ? 1 : 0,
      ]),
    );
  });

  it('a pool of the past is judged by whether there was a stream then, not by whether there is one now', async () => {
    const cluster = await store.ensureCluster('past');
    const ago = (days: number) => new Date(Date.now() - days * 24 * HOUR_MS);
    const add = async (name: string, now: string, then?: string) => {
      const [node] = await query<{ node_id: number }>(
        databaseUrl,
        `INSERT INTO store.node (cluster_id, name, first_seen, last_seen, incarnation) VALUES ($1, $2, $3, now(), 1) RETURNING node_id`,
        [cluster, name, ago(10)],
      );
      const epoch = await addEpoch(node?.node_id ?? 0, 1, ago(10), new Date());
      await query(
        databaseUrl,
        `INSERT INTO store.node_state (node_id, cluster_id, incarnation, seq, stream_state, stream_since, stream_reason, stream_error, relist_healthy,
                                       relist_reason, model, mode, mode_since, mode_reason)
         VALUES ($1, $2, 1, 1, $3, $4, '', '', true, '', 'EventedCache', 'Evented', $4, 'Connected')`,
        [node?.node_id, cluster, now, ago(1)],
      );
      if (then === undefined) return;
      await query(
        databaseUrl,
        `INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at) VALUES (gen_random_uuid(), $1, $2, $3, 'stream', $4, $5, $6)`,
        [node?.node_id, cluster, epoch, then, ago(8), ago(1)],
      );
    };
    await add('off-then', 'Active', 'off');
    await add('unsafe-now', 'Unsafe');
    const reader = createReader(store, undefined, 1)(new AbortController().signal);
    const reasons = async (from: Date, to: Date) => {
      const period = { from: from.toISOString(), to: to.toISOString() };
      const { nodes } = await poolAnswers(reader)(
        new URLSearchParams({ by: 'cluster', cluster: 'past', ...period }),
      );
      return nodes.map(({ node, reason }) => [node, reason]);
    };
    expect(await reasons(ago(5), ago(4))).toEqual([
      ['off-then', 'there is no event stream: Off'],
      ['unsafe-now', 'the stream was watched for 0 % of the time'],
    ]);
    expect(await reasons(ago(0.5), ago(0))).toEqual([
      ['off-then', 'the stream was watched for 0 % of the time'],
      ['unsafe-now', 'there is no event stream: Unsafe'],
    ]);
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
