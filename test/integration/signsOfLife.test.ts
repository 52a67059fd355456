/*
 * Nodes on which nothing happens: their agents show that they run, and up to when everything is decided. Between a real Redis and a real Postgres.
 */
import { getEventListeners } from 'node:events';
import { Client } from 'pg';
import { beforeEach, expect, it } from 'vitest';
import { takeSigns } from '../../src/controller/ingest/signs.ts';
import { type Batch, encodeBatch, senderId } from '../../src/protocol/batch.ts';
import { MAX_SIGN_BYTES, queueOf, signsKey } from '../../src/protocol/redisKeys.ts';
import { agentIncarnation, type BatchIncarnation, CLUSTER } from '../support/batches.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';
import { passes } from '../support/waitFor.ts';

const QUEUES = 2;
const SECOND = 1_000_000;

needs('postgres', 'redis-server')('a sign of life', () => {
  const bed = new IngestBed(QUEUES);
  const { rows, acked } = bed;

  beforeEach(() => bed.start());

  async function set(batch: Batch, process = 1): Promise<void> {
    const key = signsKey(CLUSTER, queueOf(batch.node, QUEUES));
    const name = `${senderId(batch.node)}.${process}`;
    await bed.sender.redis.hset(key, name, JSON.stringify(await encodeBatch(batch)));
  }
  const show = (one: BatchIncarnation, decided: number, more: Partial<Batch> = {}): Promise<void> =>
    set(one.batch(6, [], { known: { decided, scraped: null }, ...more }));
  /** In seconds since the start of each epoch. */
  const decided = async () => {
    const known = await rows<{ node: string; s: number | null }>(
      `SELECT n.name AS node, extract(epoch FROM e.decided_through - e.started_at)::float8 AS s
       FROM store.epoch e JOIN store.node n USING (node_id) ORDER BY n.name`,
    );
    return known.map(({ s }) => s);
  };
  async function reporting(node: string): Promise<BatchIncarnation> {
    const one = agentIncarnation(node);
    await bed.sender.send(one.batch(1, events(1, 5)));
    await acked(one, 5);
    return one;
  }
  const taken = () =>
    passes(async () => {
      for (let queue = 0; queue < QUEUES; queue += 1)
        expect(await bed.sender.redis.hlen(signsKey(CLUSTER, queue))).toBe(0);
    });

  it('is applied without a job and without an answer, and is there once however long nobody takes it', async () => {
    const one = await reporting('node-a');
    await bed.stop();
    const replies = await bed.sender.redis.keys('plegwatch-acks:*node*');
    await bed.sender.redis.del(...replies);
    for (const s of [7, 8, 9]) await show(one, s * SECOND);
    expect(await bed.sender.redis.hlen(signsKey(CLUSTER, queueOf('node-a', QUEUES)))).toBe(1);
    await bed.start();
    await passes(async () => expect(await decided()).toEqual([9]));
    expect(await bed.sender.redis.keys('plegwatch-acks:*node*')).toEqual([]);
  });

  it('waits while Postgres is down, and one that is too long is removed meanwhile', async () => {
    const all = [await reporting('node-a'), await reporting('node-b')];
    await bed.server.part.kill();
    await passes(async () => expect(bed.ingest.health().database).toBe(false));
    for (const one of all) await show(one, 7 * SECOND);
    for (let queue = 0; queue < QUEUES; queue += 1)
      await bed.sender.redis.hset(signsKey(CLUSTER, queue), 'x.long', 'x'.repeat(MAX_SIGN_BYTES + 1));
    await passes(async () => {
      const left = await Promise.all(
        Array.from({ length: QUEUES }, (_, queue) => bed.sender.redis.hlen(signsKey(CLUSTER, queue))),
      );
      expect(left.reduce((all, n) => all + n, 0)).toBe(2);
    });
    await bed.server.part.restart();
    await passes(async () => expect(await decided()).toEqual([7, 7]));
  });

  it('leaves nothing in the controller once it is taken', async () => {
    const { signal } = new AbortController();
    const nothing = { onRemoved: () => undefined, isStoreAvailable: () => true };
    const taker = { cluster: CLUSTER, queue: 0, redis: bed.sender.redis, ...nothing };
    await takeSigns({ ...taker, read: async () => null, apply: async () => undefined }, signal);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('may declare again what was lost', async () => {
    const one = await reporting('node-a');
    await show(one, 7 * SECOND, { lost: [{ from: 2, to: 3, cause: 'spool_full' }] });
    await passes(async () => expect(await decided()).toEqual([7]));
    expect(await rows('SELECT FROM plegwatch.rejected')).toEqual([]);
  });

  it('with evidence, or one that grows when it is unpacked, is refused, and of those of one node the latest counts', async () => {
    const [one, other] = [await reporting('node-a'), await reporting('node-b')];
    await bed.stop();
    await set(one.batch(6, events(6, 7)), 3);
    await set(
      one.batch(6, [], {
        held: Array.from({ length: 1_000 }, () => ({ epoch: one.epoch, incarnation: 1, last: 5 })),
      }),
      2,
    );
    await show(one, 7 * SECOND);
    const stale = other.batch(6, [], { known: { decided: 9 * SECOND, scraped: null } });
    await set({ ...stale, wall0: stale.wall0 - SECOND }, 2);
    await show(other, 8 * SECOND);
    await bed.start();
    await taken();
    await passes(async () => expect(await decided()).toEqual([7, 8]));
    expect(await bed.storedSeqs(one)).toEqual([1, 2, 3, 4, 5]);
    expect(await rows('SELECT reason, sum(times)::int AS n FROM plegwatch.rejected GROUP BY 1')).toEqual([
      { reason: 'not_a_batch', n: 2 },
    ]);
  });

  it('that is not one, or too long, delays and hides no other', async () => {
    const all = [await reporting('node-a'), await reporting('node-b'), await reporting('node-c')];
    for (let queue = 0; queue < QUEUES; queue += 1) {
      const junk = Array.from({ length: 1_000 }, (_, n) => [`x.${n}`, n % 2 === 0 ? '{' : '']);
      await bed.sender.redis.hset(signsKey(CLUSTER, queue), ...junk.flat());
      await bed.sender.redis.hset(signsKey(CLUSTER, queue), 'x.long', 'x'.repeat(MAX_SIGN_BYTES + 1));
      await bed.sender.redis.hset(signsKey(CLUSTER, queue), 'x'.repeat(1_000), '{');
    }
    for (const one of all) await show(one, 7 * SECOND);
    await passes(async () => expect(await decided()).toEqual([7, 7, 7]));
    await taken();
    expect(await bed.metrics.registry.getSingleMetricAsString('plegwatch_inbox_removals_total')).toContain(
      `kind="bad_sign"} ${2 * QUEUES}`,
    );
  });

  it('a sign of life of a node whose row somebody holds keeps no other waiting', async () => {
    const [held, other] = [await reporting('node-a'), await reporting('node-b')];
    const holder = new Client({ connectionString: bed.databaseUrl });
    await holder.connect();
    try {
      await holder.query('BEGIN');
      await holder.query("SELECT FROM store.node WHERE name = 'node-a' FOR UPDATE");
      await show(held, 7 * SECOND);
      await taken();
      await show(other, 7 * SECOND);
      await passes(async () => expect(await decided()).toEqual([null, 7]));
    } finally {
      await holder.end();
    }
  });
});
