/*
 * How many connections the programs open and what they are called, as the servers say: docs/how-to/databases.md promises it.
 */

import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../devtools/localServices/process.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { CONTROLLER_SETTINGS } from '../../src/controller/config.ts';
import { defaultsOf } from '../../src/platform/settings.ts';
import { withStore } from '../../src/store/withStore.ts';
import { runText } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { LASTING_READER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const { databaseMaxConnections } = CONTROLLER_SETTINGS;

needs('redis-server', 'postgres')('connections', () => {
  let system: System;
  let runtime: SimulatedRuntime;

  beforeAll(async () => {
    system = await System.start({ kube: false });
    runtime = await startSimulatedRuntime({ socket: system.folder('cri.sock'), seed: 1 });
  });
  afterAll(async () => {
    await system?.stop();
    await runtime?.stop();
  });

  async function redisConnections(): Promise<number> {
    const redis = new Redis(system.redis.url);
    const clients = String(await redis.client('LIST'));
    redis.disconnect();
    return clients.trim().split('\n').length - 1;
  }

  test('a controller opens at most four to Postgres, and two to Redis', async () => {
    expect(defaultsOf({ databaseMaxConnections }).databaseMaxConnections).toBe(4);
    await system.controller();
    await waitFor('it is connected', async () => (await redisConnections()) === 2);
    const agents = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const node of agents) await system.agent(node, runtime.socket, LASTING_READER);
    await waitFor('agents are subscribed', () => runtime.subscribers === agents.length);
    // An agent has one connection.
    await waitFor('each agent is connected', async () => {
      const count = await redisConnections();
      expect(count).toBeLessThanOrEqual(2 + agents.length);
      return count === 2 + agents.length;
    });
    const open =
      "SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE application_name = 'plegwatch controller'";
    let most = 0;
    const wanted = agents.length * 50 * 4;
    for (let pod = 0; pod < 50; pod += 1) runtime.runPod({ name: `pod-${pod}`, containers: ['app'] });
    await waitFor('all is stored', async () => {
      const [row] = await system.sql<{ n: number }>(open);
      most = Math.max(most, row?.n ?? 0);
      const stored = await system.sql<{ n: number }>('SELECT count(*)::int4 AS n FROM store.container_event');
      return stored[0]?.n === wanted;
    });
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(4);
    await waitFor('nobody has opened another', async () => (await redisConnections()) === 2 + agents.length);
  });

  test('the connections to Postgres of each program are called by its name', async () => {
    await system.controller();
    await system.ui(await freePort());
    for (const name of ['controller', 'ui']) {
      await waitFor(`a connection of plegwatch ${name}`, async () => {
        const found = await system.sql(
          'SELECT FROM pg_stat_activity WHERE application_name = $1 LIMIT 1',
          `plegwatch ${name}`,
        );
        return found.length === 1;
      });
    }
    const command = { databaseUrl: system.postgres.url, name: 'audit', logLevel: 'fatal', less: '' } as const;
    const rows = await withStore(command, (store) => runText(store, 'SHOW application_name'));
    expect(rows).toEqual([{ application_name: 'plegwatch audit' }]);
  });
});
