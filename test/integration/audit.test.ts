/*
 * The audit of a real history: a built agent and controller have watched a runtime that drops events and breaks its stream. The audit finds nothing
 * wrong in the rows that they stored, and finds each falsification of the database. Every falsification is made in a transaction that is rolled back.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { delay, drop } from '../../devtools/simulator/eventFaults.ts';
import { performIfPossible } from '../../devtools/simulator/podActions.ts';
import { podScriptOf } from '../../devtools/simulator/podScript.ts';
import { PROFILES } from '../../devtools/simulator/profiles.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { runAudit } from '../../src/audit/command.ts';
import { DRIVER_TYPES, runnerOf } from '../../src/store/runner.ts';
import { auditCommand } from '../support/auditCommand.ts';
import { needs } from '../support/needs.ts';
import { CLUSTER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';
import { WatchedNode } from '../support/watchedNode.ts';

const NODE = 'node-1';
/** Enough for the misses and resolutions that are waited for, in the two minutes that it watches anyway; each audit reads all that they did. */
const SLOTS = 3;
/** Where the agent stalls again and again, the misses that stalls have nothing to do with are few. */
const PATIENCE_MS = 1_800_000;
/** How many are falsified, if need be. */
const TRIES = 40;
const seed = 11;

let system: System;
let client: Client;

type Missed = { finding_id: string; event_type: string; container_id: string };

needs('redis-server', 'postgres')('the audit of a stored history', () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    await system.controller();
    const runtime = await startSimulatedRuntime({
      // Later than `missedAfter`: these misses are resolved.
      faults: [drop({ seed, probability: 0.15 }), delay({ seed, probability: 0.05 }, 9_000)],
      breakStreamAfterMs: 50_000,
      breakStreamWith: [status.UNAVAILABLE],
      profile: PROFILES['containerd-2.1'],
      seed,
      socket: system.folder('runtime.sock'),
    });
    try {
      await watch(runtime);
    } finally {
      await runtime.stop();
    }
    client = new Client({ connectionString: system.postgres.url });
    await client.connect();
  }, 2 * PATIENCE_MS);
  afterAll(async () => {
    await client?.end();
    await system?.stop();
  });

  test('it confirms most of the missed events of a runtime that drops events, finds nothing wrong, and exits with 0', async () => {
    const { code, output } = await auditCommand({ cluster: CLUSTER, databaseUrl: system.postgres.url });
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining(', 0 differences.') });
    expect(output).not.toContain('SELECT');
    const [row] = await system.sql<{ n: number }>('SELECT count(*)::int4 AS n FROM plegwatch.findings');
    const confirmed = Number(/^(\d+) findings follow/m.exec(output)?.[1]);
    expect(confirmed).toBeGreaterThan((row?.n ?? 0) / 2);
  });

  test('it finds a finding whose kind was changed: with exit code 3, a sentence, its times and the SQL that shows it', async () => {
    const changed = `UPDATE store.finding SET kind = 'unobservable' WHERE finding_id = $1`;
    const { one } = await foundMiss(changed, () => 'of another kind');
    const { finding_id: id, container_id } = one;
    await client.query(changed, [id]);
    try {
      const { code, output } = await auditCommand({ cluster: CLUSTER, databaseUrl: system.postgres.url });
      expect(code).toBe(3);
      expect(output).toContain(`SELECT * FROM plegwatch.finding_evidence WHERE finding_id = '${id}'`);
      expect(output).toContain(container_id);
    } finally {
      await client.query(`UPDATE store.finding SET kind = 'missed' WHERE finding_id = $1`, [id]);
    }
  });

  test('its transaction is not ended while it compares what it has read, however long that takes', async () => {
    await client.query("BEGIN; SET LOCAL idle_in_transaction_session_timeout = '30s'");
    await audited();
    const { rows } = await client.query('SHOW idle_in_transaction_session_timeout');
    await client.query('ROLLBACK');
    expect(rows).toEqual([{ idle_in_transaction_session_timeout: '0' }]);
  });

  test('it finds a finding that was removed', async () => {
    await foundMiss(
      'DELETE FROM store.finding WHERE finding_id = $1',
      ({ event_type, container_id }) => `A finding is not there. Of ${event_type} of ${container_id}`,
    );
  });

  test('it finds a finding that was invented', async () => {
    const invented = `
      WITH candidate AS (
        SELECT gen_random_uuid() AS finding_id, v.received_at + interval '6 seconds', v.day, v.node_id, v.context_id, v.seq, v.cluster_id,
               'missed', 'STARTED', 'unannounced_by_list', o.container_id, store.uid_text(o.pod_uid), o.pod_namespace,
               o.pod_name, o.container_name, v.received_at - interval '1 second', v.received_at + interval '1 second', NULL::timestamptz,
               NULL::int8, NULL::int8, '{"v":1}'::jsonb
        FROM store.container_event v
        JOIN store.container o USING (node_id, container_key, day)
        WHERE v.flags & 255 = 1 AND v.flags & 1024 = 0 AND NOT EXISTS (
          SELECT FROM store.gap g, unnest(ARRAY[g.from_at, g.to_at]) AS edge
          WHERE g.scope = 'stream' AND edge BETWEEN v.received_at - interval '8 s' AND v.received_at + interval '8 s')
        ORDER BY v.seq)
      INSERT INTO store.finding SELECT * FROM candidate OFFSET (SELECT floor($1::float8 * count(*)) FROM candidate) LIMIT 1`;
    // All over the history: a long stretch may be undecided.
    const places = Array.from({ length: TRIES }, (_, n) => n / TRIES);
    await foundOne(
      places,
      (place) => auditedAfter(invented, place),
      () => 'The rules do not make this finding',
    );
  });

  test('it finds a finding whose window was moved', async () => {
    await foundMiss(
      `UPDATE store.finding SET window_from = window_from - interval '3 s', window_to = window_to - interval '3 s' WHERE finding_id = $1`,
      () => 'with another cause or window',
    );
  });

  test('it finds a miss that is called resolved although its event never came', async () => {
    await foundMiss(
      `INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at)
       SELECT finding_id, node_id, cluster_id, day, 'resolved', detected_at + interval '1 s' FROM store.finding WHERE finding_id = $1`,
      () => 'the rules make: not resolved',
    );
  });

  test('it finds a resolution that was removed', async () => {
    await foundResolution(
      `DELETE FROM store.finding_update WHERE what = 'resolved' AND finding_id = $1`,
      'is stored: not resolved; the rules make: resolved at',
    );
  });

  test('it finds a resolution whose time was moved', async () => {
    await foundResolution(
      `UPDATE store.finding_update SET at = at - interval '2 s' WHERE what = 'resolved' AND finding_id = $1`,
      'the rules make: resolved at',
    );
  });

  test('it finds a gap that was deleted', async () => {
    const lines = await falsified(
      `DELETE FROM store.gap WHERE gap_id = (SELECT gap_id FROM store.gap WHERE scope = 'stream' AND cause = 'broken' ORDER BY from_at LIMIT 1)`,
    );
    expect(lines).toContainEqual(expect.stringContaining('Neither a session nor a gap of the stream'));
  });

  test('it finds a gap that was invented to excuse a missed event', async () => {
    await foundMiss(
      `INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at)
       SELECT gen_random_uuid(), f.node_id, f.cluster_id, x.epoch, 'stream', 'agent_stalled', f.window_to + interval '2 s', f.window_to + interval '2.5 s'
       FROM store.finding f JOIN store.context x USING (context_id) WHERE f.finding_id = $1`,
      () => 'of another kind',
    );
  });

  test('it finds an event that was deleted', async () => {
    const lines = await falsified(
      `DELETE FROM store.container_event WHERE seq = (SELECT seq FROM store.container_event WHERE flags & 255 = 1 ORDER BY seq OFFSET 25 LIMIT 1)`,
    );
    expect(lines).toContainEqual(expect.stringMatching(/Session \d+ counted \d+ events/));
  });

  test('it finds an event that was inserted for a missed one', async () => {
    const { lines } = await foundMiss(
      `INSERT INTO store.container_event
       SELECT f.window_to, (extract(epoch FROM f.window_to) * 1e9)::int8, o.container_key, o.day, f.node_id, f.context_id, h.seq, f.cluster_id,
              array_position(ARRAY['CREATED', 'STARTED', 'STOPPED', 'DELETED'], f.event_type) - 1 + 512 + CASE WHEN o.sandbox_key = o.container_key THEN 1024 ELSE 0 END
       FROM store.finding f JOIN store.container o ON o.node_id = f.node_id AND o.container_id = f.container_id AND o.day = f.day
       JOIN store.relist_change h ON h.container_key = o.container_key AND h.window_to = f.window_to
       WHERE f.finding_id = $1`,
      ({ container_id }) => container_id,
    );
    expect(lines).toContainEqual(expect.stringMatching(/Session \d+ counted \d+ events/));
  });

  test('it finds a session whose bounds were moved', async () => {
    // Its first event armed it.
    const lines = await falsified(
      `UPDATE store.stream_session SET opened_at = armed_at + interval '6 s', armed_at = armed_at + interval '6 s'
       WHERE session_no = (SELECT session_no FROM store.stream_session WHERE events > 20 ORDER BY session_no DESC OFFSET 1 LIMIT 1)`,
    );
    expect(lines).toContainEqual(expect.stringMatching(/when no session was open/));
  });

  test('it finds a change whose time was moved', async () => {
    const lines = await falsified(
      `UPDATE store.relist_change SET window_to = window_to + interval '100 ms'
       WHERE seq = (SELECT seq FROM store.relist_change ORDER BY seq OFFSET 20 LIMIT 1)`,
    );
    expect(lines).toContainEqual(expect.stringContaining('No list ended at the time at which it was found'));
  });

  test('it finds a record that was added after the last one', async () => {
    const lines = await falsified(
      `INSERT INTO store.container_event
       SELECT received_at, created_ns, container_key, day, node_id, context_id, 1000000, cluster_id, flags FROM store.container_event LIMIT 1`,
    );
    expect(lines).toContainEqual(expect.stringContaining('no record of the agent has this seq'));
  });

  test('it finds a minute that was deleted', async () => {
    const lines = await falsified(
      `DELETE FROM store.relist_minute WHERE seq = (SELECT seq FROM store.relist_minute ORDER BY seq OFFSET 1 LIMIT 1)`,
    );
    expect(lines).toContainEqual(expect.stringContaining('The minutes do not follow on each other'));
  });
});

/** Lets an agent watch pods until a session has broken and some events were missed in the one after it; ends both. */
async function watch(runtime: SimulatedRuntime): Promise<void> {
  const ending = new AbortController();
  const living = Array.from({ length: SLOTS }, (_, slot) => live(runtime, slot, ending.signal));
  // It has all the time that it needs to deliver what it has.
  const agent = await system.agent(NODE, runtime.socket, { intervalHandOver: '4m' });
  const enough = async () => {
    const [row] = await system.sql<{ sessions: number; minutes: number }>(
      `SELECT (SELECT count(*)::int4 FROM store.stream_session WHERE closed_at IS NOT NULL AND events > 20) AS sessions,
              (SELECT count(*)::int4 FROM store.relist_minute) AS minutes`,
    );
    const usable = row !== undefined && row.sessions >= 2 && row.minutes >= 2;
    return (usable && (await missed()).length >= 5 && (await resolvedMisses()).length >= 3) || undefined;
  };
  await waitFor('missed events and broken sessions', enough, PATIENCE_MS);
  ending.abort();
  await Promise.all(living);
  await new WatchedNode(system, NODE, agent).settled();
  await system.end(agent);
  await waitFor('the end of the agent is stored', async () => {
    const rows = await system.sql(`SELECT FROM store.stream_session WHERE closed_at IS NULL`);
    return rows.length === 0 || undefined;
  });
}

async function live(runtime: SimulatedRuntime, slot: number, ending: AbortSignal): Promise<void> {
  for (let number = 0; !ending.aborted; number += 1) {
    const begun = performance.now();
    const script = podScriptOf({ seed, slot, number, meanMs: 2_500, restarts: 0.4, odds: {}, oddForMs: 0 });
    for (const { at, act } of script) {
      await pause(Math.max(0, begun + at - performance.now()));
      performIfPossible(runtime.pods, act);
    }
  }
}

const resolvedMisses = () =>
  system.sql<{ finding_id: string }>(
    `SELECT finding_id::text FROM store.finding f WHERE kind = 'missed' AND EXISTS (
       SELECT FROM store.finding_update u WHERE u.finding_id = f.finding_id AND u.what = 'resolved') ORDER BY detected_at`,
  );

/**
 * Missed events that never came and that lists prove, that have nothing to do with an interruption of the stream, and that happened while everything is known to be
 * decided: later ones may be missing without a fault.
 */
async function missed(): Promise<Missed[]> {
  return system.sql(
    `SELECT f.finding_id::text, f.event_type, f.container_id FROM store.finding f
     WHERE f.kind = 'missed' AND f.proof ->> 'evidence' = 'listed running'
       AND f.detected_at < (SELECT max(e.decided_through) FROM store.epoch e)
       AND NOT EXISTS (SELECT FROM store.finding_update u WHERE u.finding_id = f.finding_id AND u.what = 'resolved') AND NOT EXISTS (
       SELECT FROM store.gap g, unnest(ARRAY[g.from_at, g.to_at]) AS edge, unnest(ARRAY[f.window_to, f.detected_at]) AS judged
       WHERE g.scope = 'stream' AND edge BETWEEN judged - interval '1.5 s' AND judged + interval '1.5 s')
     ORDER BY f.detected_at`,
  );
}

/**
 * Falsifies one after another until the audit prints the sentence of one; returns it, and all that was printed then. Where the stream was
 * interrupted or an id was in doubt, the audit leaves them undecided, more often the busier the machine is.
 */
async function foundOne<T>(
  those: readonly T[],
  falsify: (one: T) => ReturnType<typeof audited>,
  sentenceOf: (one: T) => string,
): Promise<{ one: T; lines: string[] }> {
  for (const one of those.slice(0, TRIES)) {
    const { lines } = await falsify(one);
    if (lines.some((line) => line.includes(sentenceOf(one)))) return { one, lines };
  }
  throw new Error(`the audit found none of ${those.length}`);
}

const foundMiss = async (statement: string, sentenceOf: (one: Missed) => string) =>
  foundOne(await missed(), ({ finding_id }) => auditedAfter(statement, finding_id), sentenceOf);

async function foundResolution(statement: string, sentence: string): Promise<void> {
  const falsify = ({ finding_id }: { finding_id: string }) => auditedAfter(statement, finding_id);
  await foundOne(await resolvedMisses(), falsify, () => sentence);
}

async function audited(): Promise<{ differences: number; lines: string[] }> {
  const lines: string[] = [];
  const sql = runnerOf(async (query) => {
    // The falsification is in the same transaction.
    if (query.text.startsWith('SET TRANSACTION')) return { rows: [], rowCount: 0 };
    return client.query({ ...query, types: DRIVER_TYPES });
  });
  const what = { sql, cluster: CLUSTER, node: NODE, from: undefined, to: undefined };
  const differences = await runAudit({ ...what, print: (line) => lines.push(line) });
  return { differences, lines };
}

/** The audit's lines for a database in which one statement changed exactly one row. */
async function falsified(statement: string, ...values: unknown[]): Promise<string[]> {
  const { differences, lines } = await auditedAfter(statement, ...values);
  if (differences === 0) throw new Error(`no difference was found: ${lines.join('\n')}`);
  return lines;
}

async function auditedAfter(statement: string, ...values: unknown[]): ReturnType<typeof audited> {
  await client.query('BEGIN');
  try {
    const { rowCount } = await client.query(statement, values);
    expect(rowCount).toBe(1);
    return await audited();
  } finally {
    await client.query('ROLLBACK');
  }
}
