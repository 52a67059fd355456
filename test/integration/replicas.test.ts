/*
 * Two built controllers that share the queues and a Lease: one leads, and when it dies or is frozen the other one writes the reports.
 * Evidence of a simulated fleet is stored meanwhile, each record once.
 *
 * PLEGWATCH_REPLICA_MINUTES is for how long each of the two is done again and again, and PLEGWATCH_REPLICA_NODES the size of the fleet: `make
 * test-long` sets both. With PLEGWATCH_REPLICA_STARTS its nodes have 30 pods each, and this many start each second on all of them together: `make
 * fleet CONTROLLERS=2` does that with the large fleet.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { PLEG_REPORTS } from '../../src/kube/object.ts';
import { ApiFront } from '../support/apiFront.ts';
import { agentIncarnation, createSender, type Sender } from '../support/batches.ts';
import { LeaderWrites } from '../support/leaderWrites.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { FleetProcesses, largeFleet, smallFleet } from '../support/simulatedFleet.ts';
import { metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const EVENTS = 5;
const MINUTES = Number(process.env['PLEGWATCH_REPLICA_MINUTES'] ?? 0);
const FLEET_NODES = Number(process.env['PLEGWATCH_REPLICA_NODES'] ?? 4);
/** 0: few pods of seconds on each node. */
const STARTS_A_SECOND = Number(process.env['PLEGWATCH_REPLICA_STARTS'] ?? 0);
/** Between two kills of the same controller, which is ready again in between. */
const KILL_EVERY_MS = 3_000;
const LIMIT_MS = 600_000 + 2 * MINUTES * 60_000 + FLEET_NODES * 1_000;

let system: System;
let sender: Sender;
let fleet: FleetProcesses;
const controllers: LocalPlegwatch[] = [];
const fronts: ApiFront[] = [];
const writes = new LeaderWrites();
let reportedNodes = 0;
let frozen: number[] = [];

needs(
  'redis-server',
  'postgres',
  'kube-apiserver',
  'etcd',
)('two controllers', () => {
  beforeAll(async () => {
    system = await System.start({ kube: true });
    sender = createSender(system.redis.url, 4);
    for (const _ of [1, 2]) {
      const front = await ApiFront.start(system.api);
      fronts.push(front);
      writes.add(front);
      controllers.push(await system.controller({ lease: 'default/plegwatch', kubeconfig: front.kubeconfig }));
    }
    for (let n = 0; n < FLEET_NODES; n += 1) await system.addNode(FleetProcesses.nameOf(n));
    const size = STARTS_A_SECOND > 0 ? largeFleet(FLEET_NODES, STARTS_A_SECOND) : smallFleet(FLEET_NODES);
    fleet = await FleetProcesses.start(system, size);
    await waitFor('all nodes run', () => fleet.totals?.nodes === FLEET_NODES, LIMIT_MS);
  }, LIMIT_MS);
  afterEach(() => {
    thaw(...frozen);
    frozen = [];
  });
  afterAll(async () => {
    await fleet?.stop();
    await sender?.close();
    for (const front of fronts) await front.stop();
    await system?.stop();
  });

  test(
    'one leads, which has the metrics about Nodes, and writes the reports',
    async () => {
      await leaderOf(controllers);
      // First reports of a large fleet go before it.
      await reported('together');
      // On a busy machine the other one may lead meanwhile.
      await waitFor('the leader has counted the nodes, and nobody else', async () => {
        const counted: string[] = [];
        for (const each of controllers) {
          const body = (await each.ask('/metrics'))?.body ?? '';
          const leads = /^plegwatch_leader 1$/m.test(body);
          counted.push(`${leads} ${body.includes('plegwatch_nodes_by_agent{reason="Reporting"}')}`);
        }
        return counted.sort().join() === 'false false,true true';
      });
      for (const each of controllers)
        await waitFor('it is ready', async () => (await each.ask('/readyz'))?.status === 200);
    },
    LIMIT_MS,
  );

  test(
    'the other one leads when the leader is frozen, and the one that wakes up writes nothing',
    async () => {
      for (const end = deadline(); ; ) {
        const leader = await leaderOf(controllers);
        const [other] = controllers.filter((each) => each !== leader);
        if (other === undefined) throw new Error('there is no follower');
        const ended = endsOf(leader);
        frozen = [leader.pid];
        await freeze(...frozen);
        await leaderOf([other]);
        await reported('while-frozen');
        thaw(...frozen);
        frozen = [];
        await waitFor('it knows', () => endsOf(leader) > ended);
        await leaderOf(controllers);
        for (const each of controllers) {
          await waitFor(
            'it answers',
            async () => (await metric(each, 'plegwatch_controller_conflict')) === 0,
          );
          expect(each.log()).not.toContain('another controller of this cluster');
        }
        if (performance.now() > end) break;
      }
      const [term] = await system.sql<{ term: number }>('SELECT term FROM store.leader');
      expect(term?.term).toBeGreaterThan(1);
    },
    LIMIT_MS,
  );

  test(
    'the other one leads when the leader is killed, however often that is started and killed again',
    async () => {
      const killed = await leaderOf(controllers);
      const end = deadline();
      await killed.kill('SIGKILL');
      await reported('while-dead');
      await killed.restart();
      while (performance.now() < end) {
        await delay(KILL_EVERY_MS);
        await killed.kill('SIGKILL');
        await killed.restart();
      }
      await reported('after-restart');
      await leaderOf(controllers);
    },
    LIMIT_MS,
  );

  test(
    'all that was sent meanwhile is stored once, and no report says what a deposed leader wrote',
    async () => {
      await fleet.expectAccount(await fleet.settle(LIMIT_MS));
      const [stored] = await system.sql<{ n: number; nodes: number }>(
        `SELECT count(*)::int4 AS n, count(DISTINCT node)::int4 AS nodes
           FROM plegwatch.container_events WHERE node !~ '^node-'`,
      );
      expect(stored).toEqual({ n: reportedNodes * EVENTS, nodes: reportedNodes });
      expect(writes.holders).toBe(2);
      expect(writes.reports).toBeGreaterThan(reportedNodes);
      await waitFor('late writes are replaced', () => writes.uncorrected().length === 0);
      if (MINUTES > 0)
        console.log(JSON.stringify({ ...fleet.totals, reports: writes.reports, late: writes.late }));
    },
    LIMIT_MS,
  );
});

const deadline = (): number => performance.now() + MINUTES * 60_000;

/** How often a controller has noticed that it no longer leads. */
const endsOf = (controller: LocalPlegwatch): number => controller.log().split('no longer leads').length;

const leaderOf = (among: readonly LocalPlegwatch[]): Promise<LocalPlegwatch> =>
  waitFor('one leads', async () => {
    const leaders: LocalPlegwatch[] = [];
    for (const each of among) if ((await metric(each, 'plegwatch_leader')) === 1) leaders.push(each);
    return leaders.length === 1 ? leaders[0] : undefined;
  });

/** A new Node whose agent sends events gets a report. */
async function reported(when: string): Promise<void> {
  reportedNodes += 1;
  const name = `${when}-${reportedNodes}`;
  await system.addNode(name);
  const incarnation = agentIncarnation(name);
  await sender.send(incarnation.batch(1, events(1, EVENTS)));
  const isReported = async () => {
    const report = await system.kube.get(PLEG_REPORTS, name);
    return Object(report?.['status']).agent?.epoch === incarnation.epoch;
  };
  await waitFor(`the report of ${name}`, isReported, LIMIT_MS);
}
