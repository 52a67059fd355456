/*
 * The Redis and the Postgres that a trial brings, as far as they can run without their images.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, test } from 'vitest';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { CONTROLLER_SETTINGS } from '../../src/controller/config.ts';
import { flowSettingsKey } from '../../src/protocol/redisKeys.ts';
import { missingRights } from '../../src/redis/rights.ts';
import { REDIS_USERS, redisGrants } from '../../src/redis/users.ts';
import {
  CHART,
  documents,
  helm,
  pick,
  podOf,
  type Rendered,
  render,
  secretOf,
  withHome,
} from '../support/chart.ts';
import { needs } from '../support/needs.ts';

withHome();

const TRIAL = { trial: { enabled: true } };

const secretIn = (objects: readonly Rendered[], name = 'plegwatch-trial'): Readonly<Record<string, string>> =>
  pick(objects, 'Secret', name).stringData ?? {};
/** How the user of a program reaches the Redis that a test runs. */
const urlIn = (objects: readonly Rendered[], secret: string, port: number): string =>
  (secretIn(objects, secret)['redis-url'] ?? '').replace(/@.*/, `@127.0.0.1:${port}`);

needs('helm')('a trial', () => {
  test('gives every program URLs that it accepts, of servers that are in the release', async () => {
    const objects = await render(TRIAL);
    for (const [pod, service] of [
      ['agent', 'redis'],
      ['controller', 'redis'],
      ['controller', 'database'],
      ['maintain', 'database-owner'],
      ['test', 'redis'],
      ['test', 'database'],
    ] as const) {
      const { name, items = [] } = secretOf(podOf(objects, `plegwatch-${pod}`), service) ?? {};
      const secret = pod === 'agent' ? 'plegwatch-trial-agent' : 'plegwatch-trial';
      expect([name, items.map(({ path }) => path)]).toEqual([secret, ['url']]);
      const url = secretIn(objects, secret)[items[0]?.key ?? ''] ?? '';
      const setting = service === 'redis' ? 'redisUrl' : 'databaseUrl';
      expect(CONTROLLER_SETTINGS[setting].read(url)).toBe(url);
      const [host = ''] = new URL(url).hostname.split('.');
      expect(pick(objects, 'Service', host)).toMatchObject({
        spec: { ports: [{ port: Number(new URL(url).port) }] },
      });
    }
  });

  test('has the password that is set, and otherwise one that differs between releases', async () => {
    expect(secretIn(await render({ trial: { enabled: true, password: 'a-long-password' } }))).toMatchObject({
      password: 'a-long-password',
      'redis-url': expect.stringContaining('plegwatch-trial-controller:a-long-password@'),
    });
    const derived = secretIn(await render(TRIAL))['password'];
    expect(derived).toMatch(/^[0-9a-f]{32}$/);
    const other = await helm(['template', 'plegwatch', CHART, '-n', 'elsewhere'], TRIAL);
    expect(secretIn(documents(other.stdout))['password']).not.toBe(derived);
  });

  test('keeps its data on volumes or not, as trial.persistence says', async () => {
    const dataOf = async (persistence: string) =>
      podOf(
        await render({ trial: { enabled: true, persistence } }),
        'plegwatch-trial-postgres',
      ).volumes?.find(({ name }) => name === 'data');
    expect(await dataOf('always')).toEqual({
      name: 'data',
      persistentVolumeClaim: { claimName: 'plegwatch-trial-postgres' },
    });
    expect(await dataOf('never')).toEqual({ name: 'data', emptyDir: {} });
  });

  test('never has two servers on one volume: a StatefulSet starts the next pod when the one before is gone', async () => {
    const servers = (await render(TRIAL)).filter(
      ({ kind, metadata }) => kind !== 'Service' && /-trial-(redis|postgres)$/.test(metadata.name),
    );
    const one = { kind: 'StatefulSet', spec: { replicas: 1 } };
    expect(servers).toMatchObject([one, one]);
  });
});

needs('helm', 'redis-server')('the Redis of a trial', () => {
  const folder = temporaryFolder('trial-redis', undefined);
  let redis: LocalRedis | undefined;
  afterAll(async () => {
    await redis?.stop();
    folder.remove();
  });

  describe('with its arguments', () => {
    test('lets only the users of agents and controller in, with the rights that redis-acl prints, and keeps what it holds over a kill', async () => {
      const objects = await render(TRIAL);
      const users = join(folder.dir, 'users.acl');
      writeFileSync(users, secretIn(objects)['redis-users'] ?? '');
      const [{ args }] = podOf(objects, 'plegwatch-trial-redis').containers;
      const inPod = new Map([
        ['/users/users.acl', users],
        ['/data', folder.dir],
      ]);
      const own = args.map((arg) => inPod.get(arg) ?? arg);
      redis = await startRedis({ clusters: [], args: [...own, '--appendfsync', 'always'] });
      const stranger = new Redis(redis.url);
      stranger.on('error', () => undefined);
      await expect(stranger.ping()).rejects.toThrow('NOAUTH');
      stranger.disconnect();

      const { port } = redis;
      const names = { agent: 'plegwatch-trial-agent', controller: 'plegwatch-trial' } as const;
      for (const user of REDIS_USERS) {
        const client = new Redis(urlIn(objects, names[user], port));
        expect(await client.acl('WHOAMI')).toBe(`plegwatch-trial-${user}`);
        expect(await missingRights(client, redisGrants(user, 'trial'))).toEqual({ needs: [], grants: [] });
        await expect(client.config('GET', '*')).rejects.toThrow('NOPERM');
        expect(await client.info('memory')).toContain('maxmemory_policy:noeviction');
        client.disconnect();
      }
      const client = () => new Redis(urlIn(objects, names.controller, port));
      const first = client();
      await first.set(flowSettingsKey('trial'), 'value');
      first.disconnect();
      await redis.kill();
      await redis.restart();
      const again = client();
      expect(await again.get(flowSettingsKey('trial'))).toBe('value');
      again.disconnect();
    });
  });
});
