/*
 * Nodes that an API server knows, with agents that a store knows: some report each minute, the others have been silent for an hour. Batches are real,
 * as agents send them; no agent runs.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { NODES } from '../../src/kube/object.ts';
import { forEachConcurrent } from '../../src/platform/permits.ts';
import type { Batch } from '../../src/protocol/batch.ts';
import type { EvidenceRecord, RecordOf } from '../../src/protocol/record.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import {
  agentIncarnation,
  type BatchIncarnation,
  createSender,
  type Sender,
} from '../../test/support/batches.ts';
import { createCommitter } from '../../test/support/committed.ts';
import { silent } from '../../test/support/database.ts';
import { nodeState, relistMinute, streamSession } from '../../test/support/records.ts';
import type { System } from '../../test/support/system.ts';

const MINUTE_MS = 60_000;
const MINUTE_US = 60e6;
/** For how long each agent has run. */
const MINUTES = 15;
const QUEUES = 4;
const BATCHES_AT_ONCE = 512;
/** On a busy machine a transaction may time out. */
const MAX_TRIES = 10;
const NODES_AT_ONCE = 8;
const SENT_AT_ONCE = 16;

export class ReportedFleet {
  readonly #system: System;
  readonly #store: Store;
  readonly #sender: Sender;
  readonly #agents = new Map<string, Agent>();
  readonly #stop = new AbortController();
  #sending: Promise<void> = Promise.resolve();

  private constructor(system: System, store: Store) {
    this.#system = system;
    this.#store = store;
    this.#sender = createSender(system.redis.url, QUEUES);
  }

  static async create(system: System): Promise<ReportedFleet> {
    return new ReportedFleet(system, await openStore({ databaseUrl: system.postgres.url, log: silent }));
  }

  /** Adds nodes whose agents have run for a quarter of an hour, first to the store, then to Kubernetes. */
  async add(names: readonly string[]): Promise<void> {
    const agents = names.map(
      (name, i) => new Agent(name, MINUTES * MINUTE_MS + (i * MINUTE_MS) / names.length),
    );
    await this.#commit(agents.map((agent) => agent.first()));
    for (const agent of agents) this.#agents.set(agent.name, agent);
    await forEachConcurrent(NODES_AT_ONCE, names, async (name) => {
      await this.#system.kube.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
    });
  }

  /** The agents of these nodes ended an hour ago. */
  async silence(names: readonly string[]): Promise<void> {
    for (const name of names) this.#agents.delete(name);
    await this.#system.sql(
      `WITH silent AS (
         UPDATE store.node SET last_seen = now() - interval '1 hour' WHERE name = ANY ($1) RETURNING node_id
       )
       UPDATE store.epoch e SET last_seen = now() - interval '1 hour' FROM silent s WHERE e.node_id = s.node_id`,
      names,
    );
  }

  /** Stores the minutes that have ended, so that no agent seems silent. */
  async catchUp(): Promise<void> {
    const due = () =>
      [...this.#agents.values()].map((agent) => agent.nextMinute()).filter((batch) => batch !== null);
    for (let batches = due(); batches.length > 0; batches = due()) await this.#commit(batches);
  }

  /** From now on each agent sends each of its minutes when it has ended. */
  startMinutes(): void {
    this.#sending = this.#sendMinutes();
  }

  /** The kubelet of this node falls back now. Resolves to when the agent sent that, once it is in its queue. */
  async fallBack(name: string): Promise<number> {
    const agent = this.#agents.get(name);
    if (agent === undefined) throw new Error(`${name} has no agent`);
    const sentAt = performance.now();
    await this.#sender.send(agent.fallBack());
    return sentAt;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#sending;
    await this.#sender.close();
    await this.#store.close();
  }

  async #commit(batches: readonly Batch[]): Promise<void> {
    const commit = await createCommitter(this.#store);
    let left = [...batches];
    for (let tries = 0; left.length > 0; tries += 1) {
      if (tries === MAX_TRIES) throw new Error(`${left.length} batches were not stored`);
      const failed: Batch[] = [];
      for (let from = 0; from < left.length; from += BATCHES_AT_ONCE) {
        const some = left.slice(from, from + BATCHES_AT_ONCE);
        const outcomes = await commit(some);
        failed.push(...some.filter((_, i) => outcomes[i] !== 'committed'));
      }
      left = failed;
    }
  }

  async #sendMinutes(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await forEachConcurrent(SENT_AT_ONCE, [...this.#agents.values()], async (agent) => {
        const batch = agent.nextMinute();
        if (batch !== null) await this.#sender.send(batch);
      });
      await delay(200, null, { signal }).catch(() => undefined);
    }
  }
}

class Agent {
  readonly name: string;
  readonly #incarnation: BatchIncarnation;
  readonly #startedAt: number;
  #seq = 1;
  #minute = 0;

  constructor(name: string, agoMs: number) {
    this.name = name;
    this.#startedAt = Date.now() - agoMs;
    this.#incarnation = agentIncarnation(name, 1, agoMs);
  }

  first() {
    const minutes: EvidenceRecord[] = [];
    for (let n = 0; n < MINUTES; n += 1) minutes.push(this.#takeMinute());
    return this.#batch([streamSession(), nodeState({ mode: 'Evented' }), ...minutes]);
  }

  /** Null while no further minute has ended. */
  nextMinute() {
    const endsAt = this.#startedAt + (this.#minute + 1) * MINUTE_MS;
    return Date.now() < endsAt ? null : this.#batch([this.#takeMinute()]);
  }

  fallBack() {
    const t = (Date.now() - this.#startedAt) * 1000;
    const change: RecordOf<'mode_change'> = {
      type: 'mode_change',
      ...{
        t,
        notBefore: t - 1,
        model: 'EventedCache',
        from: 'Evented',
        to: 'Fallback',
        reason: 'StreamBroke',
      },
      proof: { v: 1 },
    };
    const state = { t, mode: 'Fallback', modeSince: t, modeReason: 'StreamBroke' };
    return this.#batch([change, nodeState(state)]);
  }

  #batch(records: readonly EvidenceRecord[]) {
    const first = this.#seq;
    this.#seq += records.length;
    return this.#incarnation.batch(first, records);
  }

  #takeMinute(): RecordOf<'relist_minute'> {
    const t = this.#minute * MINUTE_US;
    this.#minute += 1;
    return relistMinute({
      t,
      wall: this.#startedAt * 1000 + t + MINUTE_US,
      relists: 12,
      max: 5_000,
      hist: [0, 4, 8],
      sandboxes: 30,
      containers: 30,
      sandboxListBytes: 15_000,
      containerListBytes: 25_000,
      expected: 4,
      matched: 4,
      covered: MINUTE_US,
      decided: t,
      kubelet: {
        scraped: { from: t, to: t + 45e6 },
        relists: 1,
        hist: [1],
        intervals: 1,
        intervalSum: 300e6,
        lastSeenAge: 31e6,
        discarded: 0,
        streamErrors: 0,
        listP99: 4_950,
        resident: 120e6,
      },
    });
  }
}
