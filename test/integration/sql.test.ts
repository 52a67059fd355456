/*
 * The questions of docs/how-to/questions.md about one node: every query, against a database in which each question has an answer.
 */
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentIncarnation } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { documentedSql, NODE_QUESTIONS } from '../support/documentedQuestions.ts';
import { evidence, STATE, UNHEALTHY } from '../support/evidence.ts';
import { needs } from '../support/needs.ts';
import { event } from '../support/records.ts';

/** As the report writer adds a Node without an agent. */
const WITHOUT_AGENT = `INSERT INTO store.node (cluster_id, name) SELECT cluster_id, 'node-b' FROM store.cluster WHERE name = 'test'`;

needs('postgres')('the questions of docs/how-to/questions.md about one node', () => {
  let server: TestServer;
  let client: Client;

  beforeAll(async () => {
    server = await startServer();
    const databaseUrl = await server.database();
    const one = agentIncarnation('node-a', 1, 120_000);
    // As in production: a controller that owns nothing writes, a reader reads.
    const controller = await server.role(databaseUrl, 'controller');
    const reader = await server.reader(databaseUrl);
    await query(databaseUrl, 'SELECT store.grant_controller($1)', [new URL(controller).username]);
    const lost = [{ from: 1, to: 2, cause: 'spool_full' }];
    const next = agentIncarnation('node-a', 2, 30_000);
    await commitAll(controller, [one.batch(3, evidence(), { lost }), one.batch(1, [event(1), event(2)])]);
    await commitAll(controller, [
      next.batch(1, [event(3), { ...event(4), containerId: '' }, STATE], { prev: one.epoch }),
    ]);
    await query(controller, UNHEALTHY);
    await query(controller, WITHOUT_AGENT);
    client = new Client({ connectionString: reader });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await server.stop();
  });

  it('are at least ten', () => {
    expect(NODE_QUESTIONS.length).toBeGreaterThanOrEqual(10);
  });

  it.each(NODE_QUESTIONS)('"$heading" returns rows of the cluster', async ({ sql }) => {
    const { rows, fields } = await client.query(sql);
    expect(fields[0]?.name).toBe('cluster');
    expect(rows.length).toBeGreaterThan(0);
    expect(rows[0]).toMatchObject({ cluster: 'test' });
  });

  it("show the broken stream beside the fallback, and the kubelet's mode beside the miss", async () => {
    const [fallback] = (await client.query(documentedSql('Which kubelets fell back in 30 days'))).rows;
    expect(fallback).toMatchObject({
      to_mode: 'Fallback',
      reason: 'StreamBroke',
      our_stream_ended_with: 'UNAVAILABLE',
      errors_before: 0,
      errors_after: 5,
    });
    const [missed] = (await client.query(`SELECT * FROM plegwatch.findings WHERE kind = 'missed'`)).rows;
    expect(missed).toMatchObject({
      pod_name: 'cart-7',
      container_name: 'app',
      event_type: 'STOPPED',
      mode: 'Evented',
    });
  });

  it('show from when to when a stream was starved, and what was missed meanwhile', async () => {
    const { rows } = await client.query(documentedSql('When was a stream starved'));
    expect(rows).toMatchObject([
      { starved_from: expect.any(Date), missed_meanwhile: '1', of_these_lost: '1' },
    ]);
  });

  it("show the kubelet's own metrics for the minutes in which it was scraped", async () => {
    const { rows } = await client.query('SELECT * FROM plegwatch.kubelet_minutes');
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({
      relists: '60',
      hist: [59, 0, 0, 0, 1],
      last_seen_age_ms: 1400,
      discarded: null,
      stream_errors: 5,
      list_p99_ms: 4.2,
      // 1.5 s of 50 s between the scrapes.
      cpu_share: 0.03,
      resident_bytes: '120000000',
      relist_period_ms: 1005,
      ...{ sandbox_lists: '60', sandbox_list_errors: '0', sandbox_list_ms: 30 },
      ...{ container_lists: '60', container_list_errors: '0', container_list_ms: 50 },
      ...{ sandbox_statuses: '2', sandbox_status_errors: '0', sandbox_status_ms: 3 },
      ...{ container_statuses: '4', container_status_errors: '1', container_status_ms: 7 },
    });
    // 59.4 of 60: nearly the whole fifth bucket, which ends at 100 ms.
    expect(rows[0].relist_p99_ms).toBeCloseTo(70);
    const nodes = await client.query(
      'SELECT kubelet_stream_errors FROM plegwatch.nodes WHERE last_seen IS NOT NULL',
    );
    expect(nodes.rows).toMatchObject([{ kubelet_stream_errors: '5' }]);
  });

  it('show how large each list was, how much of it had exited, and the pressure of the node, which is not known of every minute', async () => {
    const { rows } = await client.query('SELECT * FROM plegwatch.relist_minutes ORDER BY minute');
    const sizes = {
      exited_sandboxes: 1,
      exited_containers: 11,
      sandbox_list_bytes: 12_000,
      container_list_bytes: 48_000,
    };
    expect(rows).toMatchObject([
      { ...sizes, cpu_some: null, io_full: null, memory_full: null },
      // Up to a hundredth of the time is none.
      { ...sizes, cpu_some: 0.5, io_some: 0.25, io_full: 0.125, memory_some: 0, memory_full: 0 },
    ]);
  });

  it("compute the chance that relisting misses a short life from the kubelet's own period", async () => {
    const { rows } = await client.query('SELECT * FROM plegwatch.short_lives ORDER BY life_max_ms');
    expect(rows).toMatchObject([
      { life_min_ms: 201, life_max_ms: 603, relist_period_ms: 1005 },
      // A proof that no agent of ours writes.
      { life_min_ms: null, chance_max: null, chance_min: 0 },
    ]);
    expect(rows[0].chance_min).toBeCloseTo(0.4);
    expect(rows[0].chance_max).toBeCloseTo(0.8);
  });

  it('aggregate minutes from sums and histograms, never from averaged percentiles', async () => {
    const { rows } = await client.query(
      'SELECT sum(expected)::int AS expected, sum(matched)::int AS matched, min(p99_ms) AS p99, max(max_ms) AS max FROM plegwatch.relist_minutes',
    );
    expect(rows[0]).toMatchObject({ expected: 10, matched: 8, max: 7 });
    expect(rows[0].p99).toBeGreaterThan(2);
    expect(rows[0].p99).toBeLessThanOrEqual(3);
  });
});
