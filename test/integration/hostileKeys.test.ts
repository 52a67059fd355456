/*
 * Queues whose keys were written by somebody who should not have: each is repaired, the repair is counted, and batches that honest
 * agents send again arrive. Most of it takes more rights than an agent's Redis user has, for a Redis that was set up with a wider one.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { encodeBatch, MAX_JOB_BYTES } from '../../src/protocol/batch.ts';
import { QUEUE_NAME, queueOf, queuePrefix } from '../../src/protocol/redisKeys.ts';
import {
  agentIncarnation,
  type BatchIncarnation,
  CLUSTER,
  createSender,
  type Sender,
} from '../support/batches.ts';
import { Fleet } from '../support/fleet.ts';
import { needs } from '../support/needs.ts';
import { QUEUE_KEYS } from '../support/queueKeys.ts';
import { events } from '../support/records.ts';
import { answerOf, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const QUEUES = 4;
const NODES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const SOON = { intervalSweep: '1s', intervalJobLock: '2s' };
const FAR = Date.now() * 4_096 * 2;

let system: System;
let controller: LocalPlegwatch;
let sender: Sender;
let pid: number;
let incarnations: BatchIncarnation[] = [];
let batches = 0;

const queueKey = (queue: number): string => `${queuePrefix(CLUSTER, queue)}:${QUEUE_NAME}`;
const keyOf = (node: string, name: string): string => `${queueKey(queueOf(node, QUEUES))}:${name}`;
const everyKey = (name: string): string[] =>
  Array.from({ length: QUEUES }, (_, n) => `${queueKey(n)}:${name}`);
const repairs = async (kind: string): Promise<number> =>
  (await metric(controller, `plegwatch_queue_repairs_total{kind="${kind}"}`)) ?? 0;

/** Sends a batch of each node as an agent does, again and again until it is acknowledged. */
async function arrives(): Promise<void> {
  for (const incarnation of incarnations) {
    const { node } = incarnation;
    let tries = 0;
    await waitFor(`the batch of ${node} is acknowledged`, async () => {
      tries += 1;
      const batch = incarnation.batch(1, events(1, 5));
      await sender.send(batch, `${node}.${batches}.${tries}`).catch(() => undefined);
      return (await sender.reply(incarnation))?.ackedSeq === 5;
    });
  }
  await waitFor('the queues are empty', async () => (await sender.left()) === 0);
}

/** A job as an agent may write it. */
async function addJob(id: string, data: string, node: string): Promise<void> {
  await sender.redis.hset(keyOf(node, id), { name: 'batch', data, opts: '{}', timestamp: '1', delay: '0' });
}

needs('redis-server', 'postgres')('a queue that a stranger writes to', () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    controller = await system.controller(SOON);
    sender = createSender(system.redis.url, QUEUES);
    pid = controller.pid;
  });
  beforeEach(() => {
    batches += 1;
    incarnations = NODES.map((name) => agentIncarnation(`${name}-${batches}`));
  });
  afterAll(async () => {
    expect(controller.pid).toBe(pid);
    expect((await answerOf(controller, '/livez'))?.status).toBe(200);
    await sender?.close();
    await system?.stop();
  });

  test('with a job that is delayed for decades handles it at once', async () => {
    await addJob('decades', 'x', 'a');
    await sender.redis.zadd(keyOf('a', 'delayed'), FAR, 'decades');
    await waitFor('it is handled', async () => (await sender.left()) === 0);
    expect(await repairs('foreign_delay')).toBe(1);
    await arrives();
  });

  for (const bytes of [MAX_JOB_BYTES + 1, 480 * 1024 * 1024]) {
    test(`with a job of ${bytes} bytes removes it without fetching it`, async () => {
      const before = await repairs('bad_job');
      const id = `large-${bytes}`;
      await sender.redis.hset(keyOf('a', id), 'data', Buffer.alloc(bytes, 'x'));
      await sender.redis.lpush(keyOf('a', 'wait'), id);
      await sender.redis.zadd(keyOf('a', 'marker'), 0, '0');
      await arrives();
      expect(await repairs('bad_job')).toBe(before + 1);
      expect(await sender.redis.exists(keyOf('a', id))).toBe(0);
    });
  }

  const makers: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    hash: (key) => sender.redis.hset(key, 'x', 'y'),
    list: (key) => sender.redis.lpush(key, 'x'),
    'sorted set': (key) => sender.redis.zadd(key, 1, 'x'),
    stream: (key) => sender.redis.xadd(key, '*', 'x', 'y'),
    string: (key) => sender.redis.incr(key),
  };
  for (const [type, make] of Object.entries(makers)) {
    test(`whose keys are each a ${type} where they were absent carries batches on`, async () => {
      const before = (await repairs('wrong_type')) + (await repairs('unused_key'));
      for (const key of QUEUE_KEYS.flatMap(everyKey)) await make(key).catch(() => undefined);
      await arrives();
      expect((await repairs('wrong_type')) + (await repairs('unused_key'))).toBeGreaterThan(before);
    });
  }

  test('whose stream of events has no id left carries batches on', async () => {
    for (const key of everyKey('events'))
      await sender.redis.xadd(key, '18446744073709551615-18446744073709551615', 'x', 'y');
    await arrives();
  });

  test('that is paused and limited carries batches on', async () => {
    for (const key of everyKey('meta'))
      await sender.redis.hset(key, {
        paused: 1,
        concurrency: 0,
        max: 0,
        duration: 1e12,
        'opts.maxLenEvents': 'x',
      });
    await arrives();
    expect(await repairs('setting')).toBeGreaterThanOrEqual(QUEUES);
  });

  test('a job in no list is handled, so that its id is free for a batch that is sent again', async () => {
    const [incarnation = agentIncarnation('none')] = incarnations;
    const batch = incarnation.batch(1, events(1, 5));
    await addJob('known-id', 'a job that a stranger put there', incarnation.node);
    await waitFor('the batch is acknowledged under that id', async () => {
      await sender.send(batch, 'known-id');
      return (await sender.reply(incarnation))?.ackedSeq === 5;
    });
    expect(await repairs('orphan')).toBeGreaterThan(0);
  });

  test('whose active jobs have locks that never expire takes them again', async () => {
    const before = await repairs('forged_lock');
    for (const [n, make] of Object.values(makers).entries()) {
      await addJob(`locked-${n}`, 'x', 'a');
      await make(keyOf('a', `locked-${n}:lock`));
      await sender.redis.lpush(keyOf('a', 'active'), `locked-${n}`);
    }
    for (const key of everyKey('stalled-check')) await sender.redis.incr(key);
    await waitFor('they are handled', async () => (await sender.left()) === 0);
    expect(await repairs('forged_lock')).toBeGreaterThanOrEqual(before + 5);
    await arrives();
  });

  test('entries that are no jobs are removed, and never what they name', async () => {
    await addJob('twice', 'x', 'a');
    const entries = [
      ...QUEUE_KEYS,
      'twice',
      'twice',
      'twice:lock',
      '0:1',
      '',
      '../../x',
      'none',
      'x'.repeat(10_000),
    ];
    for (const list of ['wait', 'active'])
      for (const entry of entries) await sender.redis.lpush(keyOf('a', list), entry);
    for (let n = 0; n < 5_000; n += 1000)
      await sender.redis.lpush(
        keyOf('a', 'wait'),
        ...Array.from({ length: 1_000 }, (_, i) => `none-${n + i}`),
      );
    for (const id of ['decades-1', 'wait', 'missing'])
      await sender.redis.zadd(keyOf('a', 'delayed'), FAR, id);
    await sender.redis.zadd(keyOf('a', 'marker'), FAR, 'x', -FAR, 'y');
    await arrives();
  });

  test('a job that claims a parent, a schedule or too many fields changes nothing else', async () => {
    const parent = `${queueKey(0)}:parent`;
    await sender.redis.hset(parent, { data: 'the parent', name: 'parent' });
    const claims = {
      parentKey: parent,
      parent: JSON.stringify({ id: 'parent', queueKey: queueKey(0), fpof: true }),
      rjk: 'for-ever',
      deid: 'all',
      defa: 'failed',
      atm: '9223372036854775807',
    };
    await addJob('child', 'x', 'a');
    await sender.redis.hset(keyOf('a', 'child'), claims);
    await addJob('many', 'x', 'a');
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`field-${n}`, 'x']));
    await sender.redis.hset(keyOf('a', 'many'), many);
    for (const child of ['dependencies', 'unsuccessful', 'processed'])
      await sender.redis.zadd(keyOf('a', `child:${child}`), 1, 'x');
    await sender.redis.lpush(keyOf('a', 'wait'), 'child', 'many');
    await arrives();
    expect(await repairs('job_fields')).toBeGreaterThan(0);
    await waitFor('nothing is left', async () => {
      const left = await sender.redis.keys(`${queuePrefix(CLUSTER, 0).slice(0, -2)}*`);
      return left.every((key) => /:(id|meta|events|marker|stalled-check)$/.test(key));
    });
  });

  test('the repair of each queue is in the log, with its queue and its kind', () => {
    expect(controller.log()).toMatch(
      /"queue":\d,"reason":"wrong_type","name":"wait".*"msg":"queue repaired"/,
    );
  });

  test('a batch in a queue whose number is too high is stored', async () => {
    const [incarnation] = incarnations;
    if (incarnation === undefined) throw new Error('there is no node');
    const lost = createSender(system.redis.urlOf('controller'), QUEUES + 1);
    const batch = incarnation.batch(1, events(1, 5));
    await lost.sendData(QUEUES, await encodeBatch(batch), `${incarnation.node}.${batches}`);
    await waitFor('it is acknowledged', async () => (await sender.reply(incarnation))?.ackedSeq === 5);
    // It is in the other queue before it is removed here.
    await waitFor(
      'the queue is gone',
      async () => (await lost.redis.exists(`${queueKey(QUEUES)}:wait`)) === 0,
    );
    await waitFor('that is counted', async () => (await repairs('dead_queue')) > 0);
    await lost.close();
  });

  test('an agent whose add was refused half-way sends the batch under another id', async () => {
    const fleet = await Fleet.start(system, ['refused'], {});
    try {
      await waitFor('the first records are acknowledged', async () =>
        fleet.agents.length > 0
          ? (await metric(fleet.agents[0] ?? controller, 'plegwatch_unacked_records')) === 0
          : false,
      );
      await controller.kill();
      const events = keyOf('refused', 'events');
      await sender.redis.del(events);
      await sender.redis.hset(events, 'x', 'y');
      const [node] = fleet.nodes;
      node?.runtime.runPod({ name: 'second', containers: ['app'] });
      await waitFor('a job was left behind', async () => (await orphans()) > 0);
      await sender.redis.del(events);
      await waitFor(
        'the batch is in the queue',
        async () => (await sender.redis.llen(keyOf('refused', 'wait'))) > 0,
      );
      await controller.restart();
      pid = controller.pid;
      await system.sql('DELETE FROM store.rejected');
      await fleet.expectEverythingOnce();
    } finally {
      await fleet.stop();
    }

    async function orphans(): Promise<number> {
      const keys = await sender.redis.keys(
        `${queuePrefix(CLUSTER, queueOf('refused', QUEUES)).slice(0, -1)}*evidence:*.*`,
      );
      return keys.length;
    }
  });
});
