/*
 * A simulated fleet, which benches and long tests rely on: the agents' own code on many nodes in one process, between real Redis, Postgres and
 * the built controller.
 *
 * PLEGWATCH_FLEET_NODES makes it as large as one wishes, with 30 pods on each node, PLEGWATCH_FLEET_STARTS of which start each second,
 * for PLEGWATCH_FLEET_MINUTES, and with an API server that holds the Nodes and their reports: `make fleet` sets them.
 */
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { pagesOf } from '../../src/kube/client.ts';
import { PLEG_REPORTS } from '../../src/kube/object.ts';
import { needs } from '../support/needs.ts';
import { FleetProcesses, largeFleet, smallFleet } from '../support/simulatedFleet.ts';
import { metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const MINUTES = Number(process.env['PLEGWATCH_FLEET_MINUTES'] ?? 0);
const LARGE_NODES = Number(process.env['PLEGWATCH_FLEET_NODES'] ?? 0);
const STARTS_A_SECOND = Number(process.env['PLEGWATCH_FLEET_STARTS'] ?? 20);
/** The limit of reports, for the whole cluster; this many may come at once. */
const WRITES_A_SECOND = 20;
/** Starting this many nodes, and their first pods, takes its time. */
const LIMIT_MS = 600_000 + MINUTES * 60_000 + LARGE_NODES * 1_000;

const SMALL_NODES = 20;
const MIN_DROPS = 40;

let system: System;
let controller: LocalPlegwatch;
let fleet: FleetProcesses;
let controllerSince: number;

needs(
  'redis-server',
  'postgres',
  ...(LARGE_NODES > 0 ? (['kube-apiserver', 'etcd'] as const) : []),
)('a simulated fleet', () => {
  beforeAll(async () => {
    system = await System.start({ kube: LARGE_NODES > 0 });
    for (let n = 0; n < LARGE_NODES; n += 1) await system.addNode(FleetProcesses.nameOf(n));
    controllerSince = performance.now();
    controller = await system.controller();
  }, LIMIT_MS);
  afterEach(async () => {
    await fleet?.stop();
  });
  afterAll(async () => {
    await system?.stop();
  });

  test(
    'has every event that it delivered stored once, and each that it dropped found or in a gap, and no other missed',
    async () => {
      const size = LARGE_NODES > 0 ? largeFleet(LARGE_NODES, STARTS_A_SECOND) : smallFleet(SMALL_NODES);
      fleet = await FleetProcesses.start(system, size);
      if (LARGE_NODES > 0) {
        await watchFor(MINUTES);
        await expectReports();
      } else await waitFor('events were dropped', () => (fleet.totals?.dropped ?? 0) >= MIN_DROPS);
      await fleet.expectAccount(await fleet.settle(LIMIT_MS));
      if (LARGE_NODES === 0) await system.expectNoDifference();
    },
    LIMIT_MS,
  );
});

/** Prints the figures once a minute, from when all nodes run. */
async function watchFor(minutes: number): Promise<void> {
  await waitFor('all nodes run', () => fleet.totals?.nodes === LARGE_NODES, LIMIT_MS);
  const start = performance.now();
  let printed = 0;
  await waitFor(
    'it has run for so long',
    async () => {
      const minute = Math.floor((performance.now() - start) / 60_000);
      if (minute >= printed) await print(minute);
      printed = Math.max(printed, minute + 1);
      return minute >= minutes;
    },
    LIMIT_MS,
  );
}

/** Fails unless every node has a report, and no more of them were written than the budget allows. */
async function expectReports(): Promise<void> {
  await waitFor(
    'every node has a report',
    async () => {
      let reports = 0;
      for await (const page of pagesOf(system.kube, PLEG_REPORTS, { metadataOnly: true }))
        reports += page.items.length;
      return reports === LARGE_NODES;
    },
    LIMIT_MS,
  );
  const seconds = (performance.now() - controllerSince) / 1000;
  expect(await reportsWritten()).toBeLessThanOrEqual(WRITES_A_SECOND * (seconds + 1));
}

async function reportsWritten(): Promise<number> {
  const each = ['written', 'refreshed'].map((result) =>
    metric(controller, `plegwatch_report_writes_total{result="${result}"}`),
  );
  return (await Promise.all(each)).reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

async function print(minute: number): Promise<void> {
  const lag = await metric(controller, 'plegwatch_ingest_lag_seconds');
  const reports = await reportsWritten();
  const { rss } =
    /^VmRSS:\s+(?<rss>\d+)/m.exec(readFileSync(`/proc/${controller.pid}/status`, 'utf8'))?.groups ?? {};
  console.log(
    JSON.stringify({
      minute,
      ...fleet.totals,
      controllerRssMiB: Math.round(Number(rss) / 1024),
      lag,
      reports,
    }),
  );
}
