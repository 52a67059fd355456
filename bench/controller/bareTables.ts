/*
 * The bare tables: the same rows as a controller stores, inserted by unnest over one connection, in a transaction for each batch.
 */
import { Client } from 'pg';
import { containerKey } from '../../src/protocol/containerKey.ts';
import { cpuMs } from '../processes.ts';
import type { PreparedBatch, PreparedRecord } from './preparedBatches.ts';

interface BareInsert {
  readonly ms: number;
  /** Processor time of the backend of Postgres, in milliseconds. */
  readonly processorMs: number;
}

export class BareTables {
  readonly #databaseUrl: string;
  readonly #known = new Set<string>();

  constructor(databaseUrl: string) {
    this.#databaseUrl = databaseUrl;
  }

  /** Inserts batches of nodes that a controller has seen. */
  async insert(batches: readonly PreparedBatch[]): Promise<BareInsert> {
    const client = new Client({ connectionString: this.#databaseUrl });
    await client.connect();
    client.on('error', () => undefined);
    try {
      const ready = rowsOf(batches, await nodesOf(client), this.#known);
      const [backend] = (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows;
      const pid = backend?.pid ?? 0;
      const before = cpuMs(pid);
      const start = performance.now();
      for (const { containers, events, changes } of ready) {
        await client.query('BEGIN');
        if (containers !== null)
          await client.query({ name: 'containers', text: CONTAINERS, values: containers });
        if (events !== null) await client.query({ name: 'events', text: EVENTS, values: events });
        if (changes !== null) await client.query({ name: 'changes', text: CHANGES, values: changes });
        await client.query('COMMIT');
      }
      return { ms: performance.now() - start, processorMs: cpuMs(pid) - before };
    } finally {
      await client.end();
    }
  }
}

async function nodesOf(client: Client): Promise<ReadonlyMap<string, number>> {
  const { rows } = await client.query<{ name: string; node_id: number }>(
    'SELECT name, node_id FROM store.node',
  );
  return new Map(rows.map(({ name, node_id }) => [name, node_id]));
}

/** Rows of a context that does not exist, so that they are of no epoch. `known`: containers that have a row. */
function rowsOf(batches: readonly PreparedBatch[], nodes: ReadonlyMap<string, number>, known: Set<string>) {
  const keys = new Map<string, string>();
  const keyOf = (id: string): string => {
    const key = keys.get(id) ?? containerKey(`bare ${id}`);
    keys.set(id, key);
    return key;
  };
  return batches.map((batch) => {
    const nodeId = nodes.get(batch.node);
    const startUs = batch.wall0 - batch.mono0;
    const at = batch.records.map(({ t }) => startUs + t);
    const seqs = batch.records.map((_, i) => batch.first + i);
    const fresh = batch.objects.filter(({ id }) => !known.has(id));
    for (const { id } of fresh) known.add(id);
    const column = <R>(some: readonly R[], value: (row: R, i: number) => unknown) =>
      `{${some.map(value).join(',')}}`;
    const of = (type: PreparedRecord['type']) =>
      batch.records.flatMap((record, i) => (record.type === type ? [{ record, i }] : []));
    const common = (some: ReturnType<typeof of>) => [
      nodeId,
      column(some, ({ i }) => seqs[i]),
      column(some, ({ i }) => at[i]),
      column(some, ({ record }) => keyOf(record.containerId)),
    ];
    const events = of('container_event');
    const changes = of('relist_change');
    return {
      containers:
        fresh.length === 0
          ? null
          : [
              nodeId,
              column(fresh, ({ id }) => keyOf(id)),
              column(fresh, ({ sandbox }) => keyOf(sandbox)),
              at[0],
              fresh.map(({ id }) => id),
              fresh.map(({ podUid }) => podUid),
              fresh.map(({ namespace }) => namespace),
              fresh.map(({ pod }) => pod),
              fresh.map(({ container }) => container),
            ],
      events: events.length === 0 ? null : common(events),
      changes: changes.length === 0 ? null : common(changes),
    };
  });
}

const AT = `timestamptz 'epoch' + u.at * interval '1 microsecond'`;
const DAY = `((${AT}) AT TIME ZONE 'UTC')::date`;
const EVENTS = `INSERT INTO store.container_event (received_at, created_ns, container_key, day, node_id, context_id, seq, cluster_id, flags)
  SELECT ${AT}, 1790000000123456789, u.key, ${DAY}, $1, 0, u.seq, 1, 512 FROM unnest($2::int4[], $3::int8[], $4::int8[]) AS u (seq, at, key)`;
const CHANGES = `INSERT INTO store.relist_change (window_from, window_to, container_key, day, node_id, context_id, seq, cluster_id, states, pleg_events)
  SELECT ${AT}, ${AT}, u.key, ${DAY}, $1, 0, u.seq, 1, 50, 2 FROM unnest($2::int4[], $3::int8[], $4::int8[]) AS u (seq, at, key)`;
const CONTAINERS = `INSERT INTO store.container (container_key, sandbox_key, node_id, day, cluster_id, attempt, container_id, pod_uid, pod_namespace, pod_name, container_name)
  SELECT u.key, u.sandbox, $1, ((timestamptz 'epoch' + $4::int8 * interval '1 microsecond') AT TIME ZONE 'UTC')::date, 1, 0, u.id, store.uid_bytes(u.uid), u.namespace, u.pod, u.container
  FROM unnest($2::int8[], $3::int8[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[]) AS u (key, sandbox, id, uid, namespace, pod, container)`;
