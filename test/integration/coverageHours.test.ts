/*
 * The hours that rates are read from hold what their minutes add up to, and the answers are those of the minutes.
 */
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repair } from '../../src/controller/store/repair.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { missedFinding, relistMinute } from '../support/records.ts';
import { writeHistory } from '../support/storedHistory.ts';

const MINUTE = 60_000_000;

/** Of all minutes: what the hours are to hold. */
const HOURS = `SELECT date_trunc('hour', minute, 'UTC') AS hour, day, node_id, context_id, cluster_id, sum(span_us) AS span_us,
    sum(CASE WHEN relists > 0 THEN span_us ELSE 0 END) AS listed_us, sum(covered_us) AS covered_us, sum(expected) AS expected,
    sum(matched) AS matched, sum(unobservable) AS unobservable
  FROM store.relist_minute GROUP BY 1, 2, 3, 4, 5`;
const DIFFERENT = `(TABLE store.coverage_hour EXCEPT ALL ${HOURS}) UNION ALL (${HOURS} EXCEPT ALL TABLE store.coverage_hour)`;

/** By context, from $1 to $2. */
const MATCHED = `SELECT x.cluster_id, x.runtime_name, x.runtime_version, x.kubelet_version, sum(m.matched) AS matched
  FROM store.relist_minute m JOIN store.context x USING (context_id)
  WHERE m.minute >= $1 AND m.minute < $2
  GROUP BY 1, 2, 3, 4 HAVING sum(m.matched) > 0`;
const ANSWERED = `SELECT c.cluster_id, r.runtime_name, r.runtime_version, r.kubelet_version, r.decided - r.missed AS matched
  FROM plegwatch.miss_rate($1, $2) r JOIN store.cluster c ON c.name = r.cluster WHERE r.decided > r.missed`;

needs('postgres')('coverage by the hour', () => {
  let server: TestServer;
  let history: string;
  let client: Client;

  beforeAll(async () => {
    server = await startServer();
    history = await server.database();
    // Something happens on each node in each minute record.
    await writeHistory(history, { nodes: 3, days: 8, lives: 145, step: 600 });
    client = new Client({ connectionString: history });
    await client.connect();
  });
  afterAll(async () => {
    await client?.end();
    await server?.stop();
  });

  it.each([
    ['whole hours', 36 * 60, 2 * 60],
    ['from within an hour until within another one', 36 * 60 - 17, 2 * 60 - 43.5],
    ['a part of one hour', 29 * 60 - 15, 29 * 60 - 55],
    ['the parts of two hours', 29 * 60 - 40, 29 * 60 - 80],
    ['one hour', 29 * 60, 28 * 60],
    ['no time', 29 * 60, 29 * 60],
    ['all days', 100 * 1440, -1440],
  ])('the miss rate of %s is that of its minutes', async (_what, from, to) => {
    // Where clocks differ by half an hour from UTC, hours begin at another time.
    for (const zone of ['UTC', 'Asia/Kolkata']) {
      await client.query(`SET TIME ZONE '${zone}'`);
      const { rows } = await client.query(
        `SELECT date_trunc('hour', now()) - $1 * interval '1 minute' AS since, date_trunc('hour', now()) - $2 * interval '1 minute' AS until`,
        [from, to],
      );
      const period = [rows[0].since, rows[0].until];
      const expected = await client.query(`${MATCHED} ORDER BY 1, 2, 3, 4`, period);
      const answered = await client.query(`${ANSWERED} ORDER BY 1, 2, 3, 4`, period);
      expect(answered.rows).toEqual(expected.rows);
      expect(expected.rows.length > 0).toBe(from !== to);
    }
  });

  it('the miss rate of all time is that of all minutes', async () => {
    const expected = await client.query('SELECT sum(matched)::text AS matched FROM store.relist_minute');
    const answered = await client.query(
      `SELECT sum(decided - missed)::text AS matched FROM plegwatch.miss_rate('-infinity', 'infinity')`,
    );
    expect(answered.rows).toEqual(expected.rows);
  });

  it('a node is ready by the minutes of seven days', async () => {
    const { rows } = await client.query(
      `SELECT count(*)::int4 AS nodes, count(m.node_id)::int4 AS observed,
              count(*) FILTER (WHERE (r.observed_hours, r.coverage, r.decided - r.missed)
                IS DISTINCT FROM (m.span_us / 3.6e9, m.covered_us / m.span_us, coalesce(m.matched, 0)))::int4 AS different
       FROM plegwatch.readiness r
       JOIN store.cluster c ON c.name = r.cluster
       JOIN store.node n ON n.cluster_id = c.cluster_id AND n.name = r.node
       LEFT JOIN (
         SELECT node_id, sum(matched)::float8 AS matched, sum(covered_us)::float8 AS covered_us, sum(span_us)::float8 AS span_us
         FROM store.relist_minute WHERE minute >= now() - interval '7 days' GROUP BY node_id
       ) m USING (node_id)`,
    );
    expect(rows).toEqual([{ nodes: 7, observed: 6, different: 0 }]);
  });

  it('evidence is as complete as its minutes', async () => {
    const { rows } = await client.query(
      `SELECT count(*)::int4 AS days, count(*) FILTER (WHERE abs(e.decided_share - m.decided_share) > 1e-12)::int4 AS different
       FROM plegwatch.evidence_completeness((SELECT min(day) FROM store.relist_minute), (SELECT max(day) FROM store.relist_minute)) e
       JOIN (
         SELECT c.name AS cluster, m.day, 1 - sum(m.unobservable)::float8 / sum(m.expected) AS decided_share
         FROM store.relist_minute m JOIN store.cluster c USING (cluster_id) GROUP BY 1, 2
       ) m USING (cluster, day)`,
    );
    expect(rows).toEqual([{ days: 16, different: 0 }]);
  });

  it('a minute is added to its hour once, however late and however often it arrives', async () => {
    const databaseUrl = await server.database();
    const node = agentIncarnation('node-a', 1, 4 * 3_600_000);
    const minutes = Array.from({ length: 150 }, (_, n) =>
      relistMinute({
        ...{ t: n * MINUTE, span: MINUTE - n, relists: n % 3, covered: n, lists: [] },
        ...{ expected: 3 * n, matched: 2 * n, unobservable: n },
      }),
    );
    const batch = (from: number, to: number) => node.batch(from + 1, minutes.slice(from, to));
    const upgraded = (from: number, to: number) => {
      const before = batch(from, to);
      return { ...before, context: { ...before.context, no: 2, kubelet: 'v1.37.0' } };
    };
    await commitAll(databaseUrl, [batch(0, 7), upgraded(90, 150), batch(40, 90), batch(40, 90)]);
    await commitAll(databaseUrl, [batch(7, 40), batch(0, 90)]);
    const other = agentIncarnation('node-b', 1, 4 * 3_600_000);
    // It passes every check and Postgres refuses it, so that its batch is rolled back and stored record by record.
    const refused = missedFinding({ proof: { v: 1, text: '\ud800' } });
    await commitAll(databaseUrl, [other.batch(1, [...minutes, refused])]);
    const counted = 'SELECT count(*)::int4 AS minutes FROM store.relist_minute';
    expect(await query(databaseUrl, counted)).toEqual([{ minutes: 300 }]);
    expect(await query(databaseUrl, DIFFERENT)).toEqual([]);
    await repair({ databaseUrl, cluster: CLUSTER, log: silent, node: 'node-b', forgetEpoch: other.epoch });
    expect(await query(databaseUrl, counted)).toEqual([{ minutes: 150 }]);
    expect(await query(databaseUrl, DIFFERENT)).toEqual([]);
  });
});
