/*
 * How fast a controller drains its queues, beside the bare tables in the same run: the same rows, inserted by unnest over one
 * connection, in a transaction for each batch. Run by `make bench-controller`.
 *
 * The controller is stopped while the queues are filled, so that neither the senders nor its start count.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Client } from 'pg';
import { startPlegwatch } from '../devtools/localServices/plegwatch.ts';
import { CONTROLLER_ROLE, createControllerRole, startPostgres } from '../devtools/localServices/postgres.ts';
import { run } from '../devtools/localServices/process.ts';
import { startRedis } from '../devtools/localServices/redis.ts';
import { containerKey } from '../src/controller/ingest/containerKey.ts';
import { connectRedis } from '../src/platform/redis.ts';
import { type Batch, batchId, encodeBatch } from '../src/protocol/batch.ts';
import type { ContainerIdentity, RecordOf } from '../src/protocol/record.ts';
import { QUEUE_NAME, queueOf, queuePrefix } from '../src/protocol/redisKeys.ts';
import { millis } from '../src/protocol/units.ts';
import { agentIncarnation, CLUSTER } from '../test/support/batches.ts';
import { childrenOf, cpuMs, loadAverage } from './processes.ts';
import { ROOT } from './system.ts';
import { printed, type TableRow } from './table.ts';

const QUEUES = 16;
const NODES = 100;
/** Each pod has a sandbox and a container, with four events each and as many changes as relists of a real node find. */
const EVENTS_OF_ID = 4;
const CHANGES_OF_ID = 3;

type BatchRecord = RecordOf<'container_event'> | RecordOf<'relist_change'>;
type Prepared = Batch & { readonly records: readonly BatchRecord[] };

const SIZES = [
  { records: 20, batches: 3_000 },
  { records: 500, batches: 400 },
];

async function main(): Promise<void> {
  const redis = await startRedis();
  const postgres = await startPostgres({
    settings: { fsync: 'off', shared_buffers: '512MB', max_wal_size: '4GB' },
  });
  const client = connectRedis(
    { redisUrl: redis.url },
    { maxRetry: millis(1_000), onError: () => undefined, patient: true },
  );
  try {
    const databaseUrl = await createControllerRole(postgres.url);
    const cli = join(ROOT, 'dist', 'cli.js');
    const grant = ['--controller-roles', `${CONTROLLER_ROLE}=${CLUSTER}`, '--queues', `${QUEUES}`];
    await run(process.execPath, [cli, 'migrate', '--database-url', postgres.url, ...grant]);
    const controller = await startPlegwatch({
      cli,
      command: 'controller',
      settings: {
        cluster: CLUSTER,
        redisUrl: redis.urlOf('controller', CLUSTER),
        databaseUrl,
        noKube: 'true',
      },
    });
    try {
      const queues = Array.from(
        { length: QUEUES },
        (_, queue) =>
          new Queue(QUEUE_NAME, {
            connection: client,
            prefix: queuePrefix(CLUSTER, queue),
            skipMetasUpdate: true,
          }),
      );
      const left = async (): Promise<number> => {
        const counts = await Promise.all(
          queues.map((queue) => queue.getJobCounts('wait', 'active', 'delayed')),
        );
        return counts.flatMap((one) => Object.values(one)).reduce((sum, n) => sum + n, 0);
      };
      const rows: TableRow[] = [];
      for (const { records, batches } of SIZES) {
        const prepared = prepare(records, batches);
        const jobs = await Promise.all(
          prepared.all.map(async (batch) => ({
            queue: queueOf(batch.node, QUEUES),
            name: 'batch',
            data: await encodeBatch(batch),
            opts: { jobId: batchId(batch), removeOnComplete: true, removeOnFail: true },
          })),
        );
        const add = async (some: typeof jobs) => {
          await Promise.all(queues.map((queue, no) => queue.addBulk(some.filter((job) => job.queue === no))));
        };
        // Epochs, contexts and partitions are there before.
        await add(jobs.slice(0, NODES));
        while ((await left()) > 0) await delay(50);
        process.kill(controller.pid, 'SIGSTOP');
        await add(jobs.slice(NODES));
        const used = {
          controller: cpuMs(controller.pid),
          postgres: cpuOfTree(postgres.pid),
          redis: cpuMs(redis.pid),
        };
        const load = loadAverage();
        const began = performance.now();
        process.kill(controller.pid, 'SIGCONT');
        while ((await left()) > 0) await delay(50);
        const drained = rateOf(jobs.length - NODES, began);
        const per = (ms: number) => `${((1_000 * ms) / (jobs.length - NODES) / records).toFixed(1)} us`;
        const costs = [
          per(cpuMs(controller.pid) - used.controller),
          per(cpuSince(postgres.pid, used.postgres)),
          per(cpuMs(redis.pid) - used.redis),
        ];
        const bare = await insertBare(databaseUrl, prepared.all, records);
        rows.push({
          what: `drained, batches of ${records} records`,
          figure: `${Math.round(drained)} batches/s, ${Math.round(drained * records)} records/s, ${(drained / bare.rate).toFixed(2)} x bare tables`,
          budget: '>= 0.7 x',
          met: drained >= 0.7 * bare.rate,
        });
        rows.push({ what: '  CPU a record: controller, Postgres, Redis', figure: costs.join(', ') });
        rows.push({
          what: '  bare tables',
          figure: `${Math.round(bare.rate)} batches/s, ${Math.round(bare.rate * records)} records/s, Postgres ${bare.cpu}`,
        });
        rows.push({ what: '  load average before', figure: load.toFixed(2) });
      }
      process.stdout.write(printed(rows));
      process.stdout.write(
        `${cpus().length} cores (${cpus()[0]?.model}), Node ${process.versions.node}, ${NODES} nodes, ${QUEUES} queues, Postgres without fsync, all on one machine\n`,
      );
      for (const queue of queues) await queue.close();
    } finally {
      await controller.stop();
    }

    async function insertBare(url: string, batches: readonly Prepared[], records: number) {
      const bare = new Client({ connectionString: url });
      await bare.connect();
      bare.on('error', () => undefined);
      const ready = rowsOf(batches, await nodesOf(bare));
      const [backend] = (await bare.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows;
      const pid = backend?.pid ?? 0;
      const before = cpuMs(pid);
      const start = performance.now();
      for (const { containers, events, changes } of ready) {
        await bare.query('BEGIN');
        if (containers !== null)
          await bare.query({ name: 'containers', text: CONTAINERS, values: containers });
        if (events !== null) await bare.query({ name: 'events', text: EVENTS, values: events });
        if (changes !== null) await bare.query({ name: 'changes', text: CHANGES, values: changes });
        await bare.query('COMMIT');
      }
      const rate = rateOf(ready.length, start);
      const cpu = `${((1_000 * (cpuMs(pid) - before)) / ready.length / records).toFixed(1)} us`;
      await bare.end();
      return { rate, cpu };
    }
  } finally {
    client.disconnect();
    await postgres.stop();
    await redis.stop();
  }
}

/** The CPU time of a process and of each of its children, in milliseconds. */
const cpuOfTree = (pid: number): ReadonlyMap<number, number> =>
  new Map([pid, ...childrenOf(pid)].map((each) => [each, cpuMs(each)]));

/** Of those that run now: a child that has ended since did nothing. */
const cpuSince = (pid: number, before: ReadonlyMap<number, number>): number =>
  [...cpuOfTree(pid)].reduce((sum, [each, ms]) => sum + ms - (before.get(each) ?? 0), 0);

const rateOf = (count: number, began: number): number => (1_000 * count) / (performance.now() - began);

/** Batches in the order in which nodes take turns. */
function prepare(records: number, batches: number): { all: Prepared[] } {
  const perNode = Math.ceil(batches / NODES) + 1;
  const nodes = Array.from({ length: NODES }, (_, node) => {
    const name = `node-${records}-${node}`;
    const one = agentIncarnation(name);
    const stream = recordsOf(name, perNode * records);
    return Array.from({ length: perNode }, (_, i) => {
      const some = stream.records.slice(i * records, (i + 1) * records);
      const ids = new Set(some.map(({ containerId }) => containerId));
      const objects = [...ids].flatMap((id) => stream.identities.get(id) ?? []);
      const sandboxes = objects.flatMap(({ sandbox }) =>
        ids.has(sandbox) ? [] : (stream.identities.get(sandbox) ?? []),
      );
      return { ...one.batch(i * records + 1, some, { objects: [...objects, ...sandboxes] }), records: some };
    });
  });
  return { all: Array.from({ length: perNode }, (_, i) => nodes.flatMap((own) => own[i] ?? [])).flat() };
}

function recordsOf(node: string, count: number) {
  const records: BatchRecord[] = [];
  const identities = new Map<string, ContainerIdentity>();
  for (let pod = 0; records.length < count; pod += 1) {
    const [sandbox, container] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')];
    const names = {
      podUid: randomUUID(),
      namespace: `team-${pod % 7}`,
      pod: `shop-${node}-${pod}`,
      attempt: 0,
    };
    identities.set(sandbox, { ...names, id: sandbox, sandbox, isSandbox: true, container: '' });
    identities.set(container, { ...names, id: container, sandbox, isSandbox: false, container: 'app' });
    const ids = [sandbox, container];
    for (let stage = 0; stage < EVENTS_OF_ID; stage += 1) {
      for (const containerId of ids) {
        const t = records.length * 1_000;
        const isSandbox = containerId === sandbox;
        records.push({
          type: 'container_event',
          t,
          containerId,
          eventType: stage,
          createdNs: '1790000000123456789',
          isSandbox,
          replayed: false,
          hasSandboxStatus: true,
        });
        if (stage >= CHANGES_OF_ID) continue;
        records.push({
          type: 'relist_change',
          t,
          containerId,
          isSandbox,
          oldState: 'running',
          newState: 'exited',
          window: { from: t, to: t + 1 },
        });
      }
    }
  }
  return { records: records.slice(0, count), identities };
}

async function nodesOf(client: Client): Promise<ReadonlyMap<string, number>> {
  const { rows } = await client.query<{ name: string; node_id: number }>(
    'SELECT name, node_id FROM store.node',
  );
  return new Map(rows.map(({ name, node_id }) => [name, node_id]));
}

/** Rows of a context that does not exist, so that they are of no epoch. */
function rowsOf(batches: readonly Prepared[], nodes: ReadonlyMap<string, number>) {
  const known = new Set<string>();
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
    const of = (type: BatchRecord['type']) =>
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
              column(fresh, ({ isSandbox }) => (isSandbox ? 2 : 0)),
              fresh.map(({ id }) => id),
              fresh.map(({ podUid }) => podUid),
              fresh.map(({ namespace }) => namespace),
              fresh.map(({ pod }) => pod),
              fresh.map(({ container }) => container || null),
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
const CONTAINERS = `INSERT INTO store.container (container_key, sandbox_key, node_id, day, cluster_id, flags, attempt, container_id, pod_uid, pod_namespace, pod_name, container_name)
  SELECT u.key, u.sandbox, $1, ((timestamptz 'epoch' + $4::int8 * interval '1 microsecond') AT TIME ZONE 'UTC')::date, 1, u.flags, 0, u.id, u.uid, u.namespace, u.pod, u.container
  FROM unnest($2::int8[], $3::int8[], $5::int2[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[]) AS u (key, sandbox, flags, id, uid, namespace, pod, container)`;

await main();
