/*
 * The two Redis users of a cluster, as `plegwatch redis-acl` prints them: programs work with these rights, and have no more.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { run } from '../../devtools/localServices/process.ts';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { batchId } from '../../src/protocol/batch.ts';
import {
  ackReplyKey,
  flowSettingsKey,
  inboxKey,
  MAX_QUEUES,
  QUEUE_NAME,
  queueOf,
  queuePrefix,
  signsKey,
} from '../../src/protocol/redisKeys.ts';
import { aclRules, type RedisUser, redisUserName } from '../../src/redis/users.ts';
import { agentIncarnation } from '../support/batches.ts';
import { CLI } from '../support/build.ts';
import { needs } from '../support/needs.ts';
import { event } from '../support/records.ts';
import { CLUSTER, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const NODE = 'node-1';
const JOB = batchId(agentIncarnation('another-node').batch(1, [event(1)]));
const QUEUE = queueOf(NODE, 4);
const queueKey = (suffix: string, cluster = CLUSTER) =>
  `${queuePrefix(cluster, QUEUE)}:${QUEUE_NAME}:${suffix}`;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const namedAfterThemselves = (commands: readonly (readonly string[])[]): Record<string, readonly string[]> =>
  Object.fromEntries(commands.map((command) => [command.join(' '), command]));

/** Commands on the keys of a cluster that its agents never send. */
const MORE_THAN_AGENTS_MAY = (cluster: string): Readonly<Record<string, readonly string[]>> => ({
  ...namedAfterThemselves(
    [
      // Inboxes, whatever is in them.
      ...['HGETALL', 'HKEYS', 'HVALS', 'HLEN', 'HRANDFIELD', 'DUMP', 'TYPE', 'EXISTS', 'TTL'].map((name) => [
        name,
      ]),
      ...['DEL', 'UNLINK', 'PERSIST', 'TOUCH'].map((name) => [name]),
      ...['HGET', 'HMGET', 'HEXISTS', 'HSTRLEN', 'HDEL'].map((name) => [name, JOB]),
      ...['HSET', 'HMSET'].map((name) => [name, JOB, 'x']),
      ...[
        ['HSCAN', '0'],
        ['HINCRBY', JOB, '1'],
        ['HINCRBYFLOAT', JOB, '1'],
        ['EXPIRE', '1'],
        ['MOVE', '1'],
      ],
      ...[
        ['SET', 'x'],
        ['SETRANGE', '0', 'x'],
        ['LPUSH', 'x'],
      ],
      ...[
        ['SADD', 'x'],
        ['ZADD', '1', 'x'],
        ['XADD', '*', 'a', 'b'],
        ['RENAME', 'x'],
        ['COPY', 'x'],
      ],
    ].flatMap(([name = '', ...args]) => [
      [name, inboxKey(cluster, QUEUE), ...args],
      // A sign of life may take the place of another.
      ...(name === 'HSET' ? [] : [[name, signsKey(cluster, QUEUE), ...args]]),
    ]),
  ),
  ...namedAfterThemselves(
    // No queue has such a number.
    [`${MAX_QUEUES}`, '00000', '-1', '1e3', 'x', '*', ''].flatMap((number) => [
      ['HSETNX', inboxKey(cluster, number), JOB, '{}'],
      ['HSET', signsKey(cluster, number), JOB, '{}'],
    ]),
  ),
  ...namedAfterThemselves([
    // Queues, which only controllers write.
    ['HSETNX', queueKey(JOB, cluster), 'data', '{}'],
    ['HGETALL', queueKey(JOB, cluster)],
    ['HSETNX', queueKey('meta', cluster), 'paused', '1'],
    ['HSETNX', queueKey('wait', cluster), 'a', 'b'],
    ['LRANGE', queueKey('wait', cluster), '0', '-1'],
    ['LPUSH', queueKey('wait', cluster), JOB],
    ['ZADD', queueKey('delayed', cluster), '1', JOB],
    ['DEL', queueKey('active', cluster)],
    ['SET', queueKey(`${JOB}:lock`, cluster), 'x'],
    ['INCR', queueKey('id', cluster)],
  ]),
  'read flow settings of any length': ['GET', flowSettingsKey(cluster)],
  'read all replies of a node, of any length': ['HGETALL', ackReplyKey(cluster, NODE)],
  'write a reply': ['HSET', ackReplyKey(cluster, NODE), 'epoch', '{}'],
  'delete the replies': ['DEL', ackReplyKey(cluster, NODE)],
  'write the flow settings': ['SET', flowSettingsKey(cluster), '{}'],
});
/** The commands of an agent, to a cluster that may not be its own. */
const WHAT_AGENTS_DO = (cluster: string): Readonly<Record<string, readonly string[]>> => ({
  'read the flow settings': ['GETRANGE', flowSettingsKey(cluster), '0', '9'],
  'read its replies': ['HMGET', ackReplyKey(cluster, NODE), 'epoch'],
  'read how long they are': ['HSTRLEN', ackReplyKey(cluster, NODE), 'epoch'],
  'add to an inbox': ['HSETNX', inboxKey(cluster, QUEUE), JOB, '{}'],
  'show that it runs': ['HSET', signsKey(cluster, QUEUE), JOB, '{}'],
});
const THE_SERVER: Readonly<Record<string, readonly string[]>> = {
  'unload the scripts': ['SCRIPT', 'FLUSH'],
  'list all keys': ['KEYS', '*'],
  'take any key': ['RANDOMKEY'],
  'delete everything': ['FLUSHALL'],
  'read the configuration': ['CONFIG', 'GET', '*'],
  'watch what others send': ['MONITOR'],
  'end connections of others': ['CLIENT', 'KILL', 'TYPE', 'normal'],
  'list the users': ['ACL', 'LIST'],
  'give itself rights': ['ACL', 'SETUSER', redisUserName('agent', CLUSTER), '+@all'],
  'send messages': ['PUBLISH', 'channel', 'text'],
  'listen to messages': ['PSUBSCRIBE', '*'],
  'select another database': ['SELECT', '1'],
  'exchange two databases': ['SWAPDB', '0', '1'],
  'stop Redis': ['SHUTDOWN', 'NOSAVE'],
  'copy Redis': ['PSYNC', '?', '-1'],
};
const SCRIPTS: Readonly<Record<string, readonly string[]>> = {
  'send a script, such as an endless loop': ['EVAL', 'while true do end', '0'],
  'send one for a key of its own': ['EVAL', 'while true do end', '1', queueKey('wait')],
  'load a script': ['SCRIPT', 'LOAD', 'while true do end'],
  'run a script that is loaded': ['EVALSHA', createHash('sha1').update('return 1').digest('hex'), '0'],
  'run a function': ['FCALL', 'f', '0'],
};
/** Their names continue that of this one, or begin it. */
const OTHERS = ['test-1', 'test.1', 'tes', 'test-0', 'another'];

needs('redis-server', 'postgres')('the Redis users of a cluster', () => {
  let system: System;
  let admin: Redis;
  const clients = new Map<RedisUser, Redis>();

  beforeAll(async () => {
    system = await System.start({ kube: false });
    admin = new Redis(system.redis.url);
    for (const user of ['agent', 'controller'] as const)
      clients.set(user, new Redis(system.redis.urlOf(user)));
  });
  afterAll(async () => {
    for (const client of [admin, ...clients.values()]) client?.disconnect();
    await system?.stop();
  });

  /** The refusals of Redis to its users: `user command`. */
  async function refusals(): Promise<string[]> {
    const log = (await admin.call('ACL', 'LOG')) as string[][];
    const field = (entry: readonly string[], name: string) => entry[entry.indexOf(name) + 1] ?? '';
    return log.map((entry) => `${field(entry, 'username')} ${field(entry, 'object')}`);
  }

  /** Those of these commands that Redis does not refuse. */
  async function allowed(
    user: RedisUser,
    commands: Readonly<Record<string, readonly string[]>>,
  ): Promise<string[]> {
    const done: string[] = [];
    for (const [what, [name = '', ...args]] of Object.entries(commands)) {
      const answer = await clients
        .get(user)
        ?.call(name, ...args)
        .catch(String);
      if (!String(answer).includes('NOPERM')) done.push(`${what}: ${String(answer)}`);
    }
    return done;
  }

  test('an agent and a controller work with the rights of their users, and ask for no other', async () => {
    const runtime: SimulatedRuntime = await startSimulatedRuntime({
      socket: system.folder('cri.sock'),
      seed: 1,
    });
    const controller = await system.controller();
    const agent = await system.agent(NODE, runtime.socket, { intervalResend: '200ms' });
    let pods = 0;
    const runPod = () => {
      pods += 1;
      runtime.runPod({ name: `pod-${pods}`, containers: ['app'] });
    };
    const isStored = () =>
      waitFor('its events are stored and acknowledged', async () => {
        const text = 'SELECT count(*)::int4 AS events FROM plegwatch.container_events WHERE node = $1';
        const [row] = await system.sql<{ events: number }>(text, NODE);
        return (row?.events ?? 0) >= 2 * pods && (await metric(agent, 'plegwatch_unacked_records')) === 0;
      });
    await waitFor('the agent is subscribed', () => runtime.subscribers > 0);
    runPod();
    await isStored();
    // A batch is sent again while it waits in the inbox.
    const adds = () =>
      admin.info('commandstats').then((text) => /cmdstat_hsetnx:calls=(\d+)/.exec(text)?.[1]);
    await controller.kill('SIGSTOP');
    runPod();
    await waitFor('a batch waits', async () => (await admin.hlen(inboxKey(CLUSTER, QUEUE))) > 0);
    const before = Number(await adds());
    await waitFor('it is sent again', async () => Number(await adds()) > before + 1);
    await controller.kill('SIGCONT');
    await isStored();
    expect(await refusals()).toEqual([]);
    // Redis restarts without data and scripts.
    await system.redis.kill();
    await system.redis.restart();
    runPod();
    await isStored();
    const flow = flowSettingsKey(CLUSTER);
    await waitFor('the settings of the flow are written again', async () => (await admin.exists(flow)) === 1);
    await agent.stop();
    await controller.stop();
    await onlyUninstallPattern();
    expect(await refusals()).toEqual([]);
    await runtime.stop();
  });

  /** The pattern in the page about uninstalling finds every key of the cluster, and none of another one. */
  async function onlyUninstallPattern(): Promise<void> {
    const keys = await admin.keys('*');
    expect(keys).toEqual(
      expect.arrayContaining([queueKey('meta'), flowSettingsKey(CLUSTER), ackReplyKey(CLUSTER, NODE)]),
    );
    const page = readFileSync(join(import.meta.dirname, '../../docs/how-to/uninstall.md'), 'utf8');
    const pattern = /--pattern '([^']+)'/.exec(page)?.[1]?.replace('prod-eu-1', CLUSTER) ?? '';
    expect((await admin.keys(pattern)).sort()).toEqual(keys.sort());
    for (const cluster of OTHERS) {
      const foreign = [
        inboxKey(cluster, QUEUE),
        signsKey(cluster, QUEUE),
        queueKey('wait', cluster),
        flowSettingsKey(cluster),
        ackReplyKey(cluster, CLUSTER),
      ];
      for (const key of foreign) await admin.set(key, '');
      expect((await admin.keys(pattern)).sort()).toEqual(keys.sort());
      await admin.del(...foreign);
    }
  }

  test('an agent whose password Redis refuses at its start records, is not ready, and ships when it has the right one', async () => {
    const node = 'node-2';
    const runtime = await startSimulatedRuntime({ socket: system.folder('cri-2.sock'), seed: 1 });
    const controller = await system.controller();
    const redisSecretDir = system.folder('secret');
    mkdirSync(redisSecretDir);
    writeFileSync(`${redisSecretDir}/url`, system.redis.urlOf('agent').replace(/:[^:@]*@/, ':wrong@'));
    const agent = await system.agent(node, runtime.socket, { redisSecretDir, intervalRedisRetry: '1s' });
    await waitFor('the agent is subscribed', () => runtime.subscribers > 0);
    runtime.runPod({ name: 'pod-1', containers: ['app'] });
    await waitFor('it records', async () => ((await metric(agent, 'plegwatch_unacked_records')) ?? 0) > 3);
    await waitFor('it says why it is not ready', async () =>
      /not ok redis: .*WRONGPASS.* is read again before the next try/.test(
        (await agent.ask('/readyz'))?.body ?? '',
      ),
    );
    writeFileSync(`${redisSecretDir}/url`, system.redis.urlOf('agent'));
    await waitFor(
      'everything is stored',
      async () => (await metric(agent, 'plegwatch_unacked_records')) === 0,
    );
    await waitFor(
      'it is ready',
      async () => (await agent.ask('/readyz'))?.body.includes('not ok redis') === false,
    );
    await agent.stop();
    await controller.stop();
    await runtime.stop();
  });

  test.each([
    ['GETRANGE', `GETRANGE ${flowSettingsKey(CLUSTER)}`],
    ['HSTRLEN', `HSTRLEN ${ackReplyKey(CLUSTER, '')}`],
    ['HSETNX', 'HSETNX {plegwatch:test:0}:inbox'],
  ])(
    'an agent whose user lacks %s records, says which right is missing, and ships when it is granted',
    async (command, says) => {
      const user = `agent-without-${command.toLowerCase()}`;
      const rules = aclRules('agent', CLUSTER, sha256('password'));
      const lacking = rules.map((rule) => rule.replace(`+${command.toLowerCase()} `, '+ping '));
      await admin.call('ACL', 'SETUSER', user, ...lacking);
      const runtime = await startSimulatedRuntime({ socket: system.folder(`${user}.sock`), seed: 1 });
      const controller = await system.controller();
      const redisUrl = system.redis.url.replace('://', `://${user}:password@`);
      const agent = await system.agent(user, runtime.socket, { redisUrl, intervalRedisRetry: '1s' });
      await waitFor('the agent is subscribed', () => runtime.subscribers > 0);
      runtime.runPod({ name: 'pod-1', containers: ['app'] });
      await waitFor(
        'it says what is missing',
        async () => (await agent.ask('/readyz'))?.body.includes(`may not: ${says}`) === true,
      );
      await waitFor('it records', async () => ((await metric(agent, 'plegwatch_unacked_records')) ?? 0) > 3);
      await admin.call('ACL', 'SETUSER', user, ...rules);
      await waitFor(
        'everything is stored',
        async () => (await metric(agent, 'plegwatch_unacked_records')) === 0,
      );
      await agent.stop();
      await controller.stop();
      await runtime.stop();
    },
  );

  test('an agent may neither read, change nor delete what is in the inboxes and queues, nor write a reply', async () => {
    expect(await allowed('agent', MORE_THAN_AGENTS_MAY(CLUSTER))).toEqual([]);
  });

  test('neither user may look at or change the server', async () => {
    expect(await allowed('agent', THE_SERVER)).toEqual([]);
    expect(await allowed('controller', THE_SERVER)).toEqual([]);
  });

  test.each(OTHERS)('neither user may read or write a key of the cluster %s', async (other) => {
    const commands = { ...MORE_THAN_AGENTS_MAY(other), ...WHAT_AGENTS_DO(other) };
    expect(await allowed('agent', commands)).toEqual([]);
    expect(await allowed('controller', commands)).toEqual([]);
  });

  test('an agent may not send a script, so that it cannot stop Redis with an endless loop', async () => {
    expect(await allowed('agent', SCRIPTS)).toEqual([]);
  });
});

needs('redis-server')('plegwatch redis-acl', () => {
  let redis: LocalRedis;
  let admin: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    admin = new Redis(redis.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await redis.stop();
  });

  const printed = async (...args: readonly string[]): Promise<string[]> =>
    (await run(process.execPath, [CLI, 'redis-acl', '--cluster', ...args])).trim().split('\n');
  const apply = (line: string) => {
    const [name = '', ...args] = line.split(' ');
    return admin.call(name, ...args);
  };
  const hashes = [
    ...['--agent-password-sha256', sha256('agents-password')],
    ...['--controller-password-sha256', sha256('controllers-password')],
  ];

  test('prints commands that create both users with their passwords, and the second time change nothing', async () => {
    const lines = await printed('prod-eu-1', ...hashes);
    for (const line of lines) expect(await apply(line)).toBe('OK');
    for (const user of ['agent', 'controller']) {
      const client = new Redis(redis.url, {
        username: `plegwatch-prod-eu-1-${user}`,
        password: `${user}s-password`,
      });
      expect(await client.ping()).toBe('PONG');
      client.disconnect();
    }
    const before = await admin.call('ACL', 'LIST');
    for (const line of lines) await apply(line);
    expect(await admin.call('ACL', 'LIST')).toEqual(before);
  });

  test('takes back every right that a user had before, and no password', async () => {
    await admin.call(
      'ACL',
      'SETUSER',
      'plegwatch-old-agent',
      'on',
      '>first',
      '~*',
      '&*',
      '+@all',
      '(+get ~x)',
    );
    for (const line of await printed('old', ...hashes)) await apply(line);
    const client = new Redis(redis.url, { username: 'plegwatch-old-agent', password: 'first' });
    await expect(client.get('x')).rejects.toThrow('NOPERM');
    await expect(client.keys('*')).rejects.toThrow('NOPERM');
    client.disconnect();
  });

  test('prints placeholders that Redis refuses where no password is given', async () => {
    for (const line of await printed('prod-eu-1')) await expect(apply(line)).rejects.toThrow(/hash/);
  });

  test('prints the same users as lines of an aclfile', async () => {
    const commands = await printed('prod-eu-1', ...hashes);
    const lines = await printed('prod-eu-1', '--format', 'aclfile', ...hashes);
    expect(lines).toEqual(commands.map((line) => line.replace('ACL SETUSER', 'user')));
  });

  test('refuses a password where its digest belongs, and does not repeat it', async () => {
    const failure = await printed('c', '--agent-password-sha256', 'open-sesame').catch(String);
    expect(failure).toContain('64 hexadecimal digits');
    expect(String(failure).replaceAll('--agent-password-sha256 open-sesame', '')).not.toContain(
      'open-sesame',
    );
  });
});
