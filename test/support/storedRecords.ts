/*
 * Writes the evidence of a node straight into the store, as ingest would, for tests of its readers.
 */

import { randomUUID } from 'node:crypto';
import type { Store } from '../../src/store/store.ts';
import { runText } from './database.ts';

export interface SeedState {
  readonly stream?: string;
  readonly mode?: string;
  readonly modeReason?: string;
  /** Why lists fail. Default: they do not. */
  readonly relistReason?: string;
}

export class EvidenceFixture {
  readonly #store: Store;
  readonly #clusterId: number;
  #seq = 0;

  constructor(store: Store, clusterId: number) {
    this.#store = store;
    this.#clusterId = clusterId;
  }

  async #one<T>(text: string, values: readonly unknown[] = []): Promise<T> {
    const rows = await runText<{ one: T }>(this.#store, text, values);
    if (rows[0] === undefined) throw new Error(`no row from: ${text}`);
    return rows[0].one;
  }

  async #do(text: string, values: readonly unknown[]): Promise<void> {
    await runText(this.#store, text, values);
  }

  /** Adds a node with an epoch, a context and a state, first seen `ageS` seconds ago. Returns its id. */
  async node(name: string, ageS = 3600): Promise<number> {
    const id = await this.#one<number>(
      `INSERT INTO store.node (cluster_id, name, first_seen, last_seen, incarnation, context_no)
       VALUES ($1, $2, now() - $3 * interval '1 second', now(), 1, 1) RETURNING node_id AS one`,
      [this.#clusterId, name, ageS],
    );
    const epoch = randomUUID();
    await this.#do(
      `INSERT INTO store.epoch (node_id, cluster_id, epoch, incarnation, claimed_incarnation, node_uid, boot_id, started_mono, started_at, ack_generation, received, last_seq, complete_through, last_seen, last_new_at)
       VALUES ($1, $2, $3, 1, 1, '', '', 0, now() - $4 * interval '1 second', 1, '{[1,2)}', 1, now(), now(), now())`,
      [id, this.#clusterId, epoch, ageS],
    );
    const ctx = await this.#one<number>(
      `INSERT INTO store.context (node_id, epoch, context_no, runtime_name, runtime_version, kubelet_version, agent_version,
         relist_period_us, overdue_after_us, missed_after_us, late_after_us, cluster_id)
       VALUES ($1, $2, 1, 'containerd', '2.1.9', 'v1.36.3', '0.1.0', 5000000, 2000000, 30000000, 1000000, $3) RETURNING context_id AS one`,
      [id, epoch, this.#clusterId],
    );
    await this.#do('UPDATE store.node SET context_id = $2 WHERE node_id = $1', [id, ctx]);
    await this.state(id);
    return id;
  }

  /** Says as a controller does that everything that agents sent is stored at once. */
  async caughtUp(): Promise<void> {
    await this.#do(
      `INSERT INTO store.ingest (cluster_id, caught_up_since, said_at) VALUES ($1, now() - interval '1 day', now() + interval '1 day')`,
      [this.#clusterId],
    );
  }

  /** Lets the agent of a node be known to run for this many seconds more. */
  async runsUntil(id: number, seconds: number): Promise<void> {
    await this.#do(
      `WITH e AS (UPDATE store.epoch SET last_seen = now() + $2 * interval '1 second' WHERE node_id = $1)
       UPDATE store.node SET last_seen = now() + $2 * interval '1 second' WHERE node_id = $1`,
      [id, seconds],
    );
  }

  /** Adds the first batch of an agent to a Node that is stored without one, and makes its report due. */
  async seen(name: string): Promise<void> {
    const id = await this.#idOf(name);
    await this.#do(
      `UPDATE store.node SET first_seen = now(), last_seen = now(), incarnation = 1 WHERE node_id = $1`,
      [id],
    );
    await this.state(id);
    await this.due(id);
  }

  /** Adds a Ready condition with this message to a Node that is stored; an empty message: it is ready. Returns its id. */
  async condition(name: string, message: string): Promise<number> {
    const id = await this.#idOf(name);
    await this.#do(`SELECT store.make_partition('node_condition', (now() AT TIME ZONE 'UTC')::date)`, []);
    await this.#do(
      `INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message)
       VALUES (now(), (now() AT TIME ZONE 'UTC')::date, $1, $2, CASE $3 WHEN '' THEN 'True' ELSE 'False' END, 'Kubelet' || CASE $3 WHEN '' THEN 'Ready' ELSE 'NotReady' END, $3)`,
      [id, this.#clusterId, message],
    );
    return id;
  }

  #idOf(name: string): Promise<number> {
    return this.#one<number>('SELECT node_id AS one FROM store.node WHERE cluster_id = $1 AND name = $2', [
      this.#clusterId,
      name,
    ]);
  }

  async state(
    id: number,
    { stream = 'Active', mode = 'Unknown', modeReason = '', relistReason = '' }: SeedState = {},
  ): Promise<void> {
    await this.#do(
      `INSERT INTO store.node_state (node_id, cluster_id, incarnation, seq, stream_state, stream_since, stream_reason,
         stream_error, relist_healthy, relist_reason, model, mode, mode_since, mode_reason)
       SELECT node_id, cluster_id, 1, $2, $3, now(), '', '', $6 = '', $6, '', $4, now(), $5
       FROM store.node WHERE node_id = $1
       ON CONFLICT (node_id, incarnation) DO UPDATE SET seq = excluded.seq, stream_state = excluded.stream_state,
         stream_since = excluded.stream_since, relist_healthy = excluded.relist_healthy, relist_reason = excluded.relist_reason, mode = excluded.mode, mode_since = excluded.mode_since, mode_reason = excluded.mode_reason`,
      [id, this.#next(), stream, mode, modeReason, relistReason],
    );
  }

  /** Adds relist minutes up to now, each fully covered. */
  async minutes(id: number, count: number): Promise<void> {
    const first = this.#seq + 1;
    this.#seq += count;
    await this.#do(
      `SELECT store.make_partition('relist_minute', d::date) FROM generate_series(now() - interval '1 day', now(), '1 day') AS d`,
      [],
    );
    await this.#do(
      `INSERT INTO store.relist_minute (minute, day, node_id, context_id, seq, cluster_id, relists, errors, max_us, hist, sandboxes,
         containers, exited_sandboxes, exited_containers, sandbox_list_bytes, container_list_bytes, expected, matched, unobservable, covered_us,
         span_us, ended_at, wall_at, lists)
       SELECT at, (at AT TIME ZONE 'UTC')::date, node_id, context_id, $2 + i, cluster_id, 12, 0, 9000, '{0,0,12}', 1, 1, 0, 0, 400, 600, 4, 4, 0, 60000000,
         60000000, at + interval '1 minute', at + interval '1 minute', ''
       FROM store.node, generate_series(0, $3::int4 - 1) AS i, LATERAL (SELECT now() - ($3::int4 - i) * interval '1 minute' AS at) AS m
       WHERE node_id = $1`,
      [id, first, count],
    );
  }

  /** Adds a minute in which the kubelet's relist took twelve seconds, of which eleven were a list. */
  async slowRelist(id: number): Promise<void> {
    await this.minutes(id, 1);
    await this.#do(
      `WITH m AS (DELETE FROM store.relist_minute WHERE node_id = $1 AND seq = $2 RETURNING *)
       INSERT INTO store.relist_minute
       SELECT (jsonb_populate_record(NULL::store.relist_minute, to_jsonb(m) || jsonb_build_object('kubelet_counted_from', m.minute, 'kubelet_counted_to', m.ended_at,
         'kubelet_hist', '{0,0,0,0,0,0,0,0,0,0,0,1}'::int2[], 'kubelet_relists', 1, 'kubelet_relist_us', 12000000, 'kubelet_longest_list_us', 11000000,
         'kubelet_sandbox_lists', 1, 'kubelet_container_lists', 1, 'kubelet_sandbox_list_us', 11000000, 'kubelet_container_list_us', 1000))).* FROM m`,
      [id, this.#seq],
    );
  }

  /** Adds a missed STOPPED of a container. Returns the finding's id. */
  async missed(id: number, pod: string): Promise<string> {
    const finding = randomUUID();
    await this.#do(
      `INSERT INTO store.finding (finding_id, detected_at, day, node_id, context_id, seq, cluster_id, kind, event_type, cause,
         container_id, pod_uid, pod_namespace, pod_name, container_name, window_from, window_to, proof)
       SELECT $2, now(), (now() AT TIME ZONE 'UTC')::date, node_id, context_id, $3, cluster_id, 'missed', 'STOPPED',
         'unannounced_by_list', 'abc', 'uid of ' || $4::text, 'shop', $4, 'cart', now() - interval '40 seconds', now() - interval '35 seconds', '{}'
       FROM store.node WHERE node_id = $1`,
      [id, finding, this.#next(), pod],
    );
    return finding;
  }

  /** Adds a fallback of the kubelet, this many seconds ago. */
  async fallback(id: number, reason: string, ageS = 0): Promise<void> {
    await this.#do(
      `SELECT store.make_partition('mode_change', d::date) FROM generate_series(now() - interval '1 day', now(), '1 day') AS d`,
      [],
    );
    await this.#do(
      `INSERT INTO store.mode_change (at, not_before, day, node_id, context_id, seq, cluster_id, model, from_mode, to_mode, reason, proof)
       SELECT t.at, t.at, (t.at AT TIME ZONE 'UTC')::date, node_id, context_id, $2, cluster_id, 'EventedCache', 'Evented', 'Fallback', $3, '{}'
       FROM store.node, LATERAL (SELECT now() - $4 * interval '1 second' AS at) AS t WHERE node_id = $1`,
      [id, this.#next(), reason, ageS],
    );
  }

  /** Makes the report of the node due, as ingest does. */
  async due(id: number): Promise<void> {
    await this.#do(
      `INSERT INTO store.report_queue AS q (node_id, cluster_id, due_at, urgent) VALUES ($1, $2, now(), true)
       ON CONFLICT (node_id) DO UPDATE SET version = q.version + 1, due_at = least(q.due_at, now()), urgent = true`,
      [id, this.#clusterId],
    );
  }

  /** Stores a written report with the condition AgentReporting of this reason. */
  async reported(id: number, agentReason: string): Promise<void> {
    await this.#do(
      `INSERT INTO store.report (node_id, cluster_id, created_at, written_at, status_digest) VALUES ($1, $2, now(), now(), '')`,
      [id, this.#clusterId],
    );
    await this.#do(
      `INSERT INTO store.report_condition (node_id, cluster_id, type, status, reason, message, since)
       VALUES ($1, $2, 'AgentReporting', CASE $3 WHEN 'Reporting' THEN 'True' ELSE 'False' END, $3, '', now())`,
      [id, this.#clusterId, agentReason],
    );
  }

  /** The Node of a reported node was deleted. */
  async deleted(id: number): Promise<void> {
    await this.#do('UPDATE store.report SET node_deleted_at = now() WHERE node_id = $1', [id]);
  }

  /** Makes the reports of the nodes hours old and due again. */
  async old(ids: readonly number[]): Promise<void> {
    await this.#do(
      `UPDATE store.report SET written_at = now() - interval '5 hours' WHERE node_id = ANY ($1)`,
      [ids],
    );
    await this.#do(
      `INSERT INTO store.report_queue (node_id, cluster_id, due_at, urgent)
       SELECT node_id, cluster_id, now(), false FROM store.node WHERE node_id = ANY ($1) ON CONFLICT DO NOTHING`,
      [ids],
    );
  }

  /** Makes the agent silent for `seconds`, with a report refresh queued hours ahead, as ingest leaves it. */
  async silentFor(id: number, seconds: number): Promise<void> {
    await this.#do(`UPDATE store.node SET last_seen = now() - $2 * interval '1 second' WHERE node_id = $1`, [
      id,
      seconds,
    ]);
    await this.#do(
      `INSERT INTO store.report_queue (node_id, cluster_id, due_at, urgent) VALUES ($1, $2, now() + interval '4 hours', false)
       ON CONFLICT DO NOTHING`,
      [id, this.#clusterId],
    );
  }

  /** The number of rows that a table has for the node. */
  rows(table: 'relist_minute' | 'finding' | 'report_queue' | 'node_condition', id: number): Promise<number> {
    return this.#one<number>(`SELECT count(*)::int4 AS one FROM store.${table} WHERE node_id = $1`, [id]);
  }

  #next(): number {
    this.#seq += 1;
    return this.#seq;
  }
}
