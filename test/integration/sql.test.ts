/*
 * docs/how-to/sql.md is run: every query of it, against a database in which each question has an answer.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EvidenceRecord, KubeletMinute } from '../../src/protocol/record.ts';
import { agentIncarnation } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { event, hexId, missedFinding, nodeState, relistMinute, streamSession } from '../support/records.ts';

const text = readFileSync(new URL('../../docs/how-to/sql.md', import.meta.url), 'utf8');

/** The queries, each with its heading. */
const queries = text.split(/^## /m).flatMap((section) =>
  [...section.matchAll(/^```sql\n(.*?)^```/gms)].map(([, sql = '']) => ({
    heading: section.split('\n')[0] ?? '',
    sql,
  })),
);

const US_PER_MINUTE = 60_000_000;

const DETECTED = { t: 50_000_000, window: { from: 20_000_000, to: 21_000_000 } };

/** A record of each type: a kubelet that fell back after its stream broke, and a missed event. */
function evidence(): EvidenceRecord[] {
  const id = hexId(1);
  const short = (proof: Readonly<Record<string, unknown>>) => {
    const window = { from: 117_000_000, to: 118_000_000 };
    return missedFinding({ t: 118_000_000, kind: 'short_life', eventType: null, window, proof });
  };
  const starved = missedFinding({
    ...{ t: 50_000_000, kind: 'silent_stream', eventType: null, cause: 'starved', containerId: null },
    ...{ window: { from: 15_000_000, to: 49_000_000 }, proof: { v: 1, changes: 6, relists: 2 } },
  });
  const kubelet: KubeletMinute = {
    scraped: { from: 65_000_000, to: 115_000_000 },
    relists: 60,
    hist: [59, 0, 0, 0, 1],
    intervals: 60,
    intervalSum: 60_300_000,
    lastSeenAge: 1_400_000,
    discarded: null,
    streamErrors: 5,
    listP99: 4_200,
  };
  const minute = (no: number) =>
    relistMinute({
      t: no * US_PER_MINUTE,
      ...{ relists: 12, max: 7_000, hist: [0, 3, 9], sandboxes: 10, containers: 20, bytes: 60_000 },
      ...{ expected: 5, matched: 4, unobservable: 1, covered: 59_000_000 },
      // The kubelet is asked from the second minute on.
      ...(no === 0 ? {} : { kubelet }),
    });
  return [
    event(1, { eventType: 1 }),
    {
      type: 'relist_change',
      t: 21_000_000,
      containerId: id,
      isSandbox: false,
      window: { from: 20_000_000, to: 21_000_000 },
      oldState: 'running',
      newState: 'non-existent',
    },
    missedFinding(DETECTED),
    missedFinding({ ...DETECTED, kind: 'unannounced', eventType: 'CREATED', cause: 'never_sent' }),
    starved,
    missedFinding({ ...DETECTED, t: 50_500_000, proof: { v: 1, hint: 'stream_starved' } }),
    short({ v: 1, lifeMinMs: 201, lifeMaxMs: 603 }),
    short({ v: 1, lifeMinMs: 'not long', lifeMaxMs: 1e300 }),
    streamSession({
      ...{ t: 40_000_000, armed: 2, closed: 40_000_000, code: 'UNAVAILABLE', message: 'EOF' },
      ...{ events: 4, replayed: 1 },
    }),
    {
      type: 'gap',
      t: 40_000_000,
      gapId: randomUUID(),
      scope: 'stream',
      cause: 'broken',
      from: 40_000_000,
      to: null,
    },
    {
      type: 'mode_change',
      t: 5_000_000,
      notBefore: 1,
      model: 'EventedCache',
      from: 'Unknown',
      to: 'Evented',
      reason: 'Connected',
      proof: { v: 1, before: null, after: { errors: 0 } },
    },
    {
      type: 'mode_change',
      t: 45_000_000,
      notBefore: 35_000_000,
      model: 'EventedCache',
      from: 'Evented',
      to: 'Fallback',
      reason: 'StreamBroke',
      proof: { v: 1, before: { errors: 0 }, after: { errors: 5 } },
    },
    minute(0),
    minute(1),
  ];
}

const STATE = nodeState({
  t: 5_000_000,
  mode: 'Fallback',
  modeReason: 'StreamBroke',
  kubeletStreamErrors: 5,
});

/** As the recorder of conditions writes it. */
const UNHEALTHY = `
  INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message, pleg_seen_ago_ms, threshold_ms)
  SELECT now(), (now() AT TIME ZONE 'UTC')::date, node_id, cluster_id, 'False', 'KubeletNotReady',
         'PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s', 185000, 180000
  FROM store.node WHERE name = 'node-a'`;

describe('docs/how-to/sql.md', () => {
  it('has queries under at least three headings', () => {
    expect(new Set(queries.map(({ heading }) => heading)).size).toBeGreaterThanOrEqual(3);
  });
});

needs('postgres')('the queries of docs/how-to/sql.md', () => {
  let server: TestServer;
  let client: Client;

  beforeAll(async () => {
    server = await startServer();
    const databaseUrl = await server.database();
    const one = agentIncarnation('node-a', 1, 120_000);
    // As in production: a controller that owns nothing writes, a reader reads.
    const controller = await server.role(databaseUrl, 'controller');
    const reader = await server.role(databaseUrl, 'reader');
    await query(databaseUrl, 'SELECT store.grant_controller($1)', [new URL(controller).username]);
    await query(databaseUrl, 'SELECT store.grant_reader($1)', [new URL(reader).username]);
    const lost = [{ from: 1, to: 2, cause: 'spool_full' }];
    const next = agentIncarnation('node-a', 2, 30_000);
    await commitAll(controller, [one.batch(3, evidence(), { lost }), one.batch(1, [event(1), event(2)])]);
    await commitAll(controller, [
      next.batch(1, [event(3), { ...event(4), containerId: '' }, STATE], { prev: one.epoch }),
    ]);
    await query(controller, UNHEALTHY);
    client = new Client({ connectionString: reader });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await server.stop();
  });

  it.each(queries)('the query under "$heading" returns rows of the cluster', async ({ sql }) => {
    const { rows, fields } = await client.query(sql);
    expect(fields[0]?.name).toBe('cluster');
    expect(rows.length).toBeGreaterThan(0);
    expect(rows[0]).toMatchObject({ cluster: 'test' });
  });

  it("show the broken stream beside the fallback, and the kubelet's mode beside the miss", async () => {
    const [fallback] = (await client.query(queries[0]?.sql ?? '')).rows;
    expect(fallback).toMatchObject({
      to_mode: 'Fallback',
      reason: 'StreamBroke',
      our_stream_ended_with: 'UNAVAILABLE',
      errors_before: 0,
      errors_after: 5,
    });
    const miss = queries.find(({ heading }) => heading.startsWith('What did the stream miss'));
    const [missed] = (await client.query(miss?.sql ?? '')).rows;
    expect(missed).toMatchObject({
      pod_name: 'cart-7',
      container_name: 'app',
      event_type: 'STOPPED',
      mode: 'Evented',
    });
  });

  it('show from when to when a stream was starved, and what was missed meanwhile', async () => {
    const starved = queries.find(({ heading }) => heading.startsWith('When was a stream starved'));
    const { rows } = await client.query(starved?.sql ?? '');
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
      last_seen_age_ms: '1400',
      discarded: null,
      stream_errors: '5',
      list_p99_ms: 4.2,
      relist_period_ms: 1005,
    });
    // 59.4 of 60: nearly the whole fifth bucket, which ends at 100 ms.
    expect(rows[0].relist_p99_ms).toBeCloseTo(70);
    const nodes = await client.query('SELECT kubelet_stream_errors FROM plegwatch.nodes');
    expect(nodes.rows).toMatchObject([{ kubelet_stream_errors: '5' }]);
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
