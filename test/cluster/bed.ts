/*
 * One cluster for all its tests, with plegwatch in it, pods that come and go, and on every node a witness at containerd that has no part
 * in plegwatch.
 */
import { join } from 'node:path';
import { Client } from 'pg';
import { expect } from 'vitest';
import { CHECKOUT } from '../../devtools/checkout.ts';
import { type Cluster, startCluster } from '../../devtools/cluster/cluster.ts';
import { VERSION } from '../../src/platform/version.ts';
import type { EventType } from '../../src/protocol/record.ts';
import { account, announced, keyOf, type Transition } from '../soak/account.ts';
import { Witness } from '../soak/witness.ts';
import { Churn } from './churn.ts';

/** As the documented commands name them. */
export const NAMESPACE = 'plegwatch';
export const CLUSTER = 'prod-eu-1';
/** Waits end when their condition holds; this only ends a hang. */
export const WITHIN_MS = 300_000;
const TIMEOUT = `--timeout=${WITHIN_MS / 1_000}s`;

export interface ClusterBed {
  readonly cluster: Cluster;
  readonly witnesses: ReadonlyMap<string, Witness>;
  /** URL of its Postgres, for programs of this machine. */
  readonly databaseUrl: string;
  query<T extends object>(text: string, values?: readonly unknown[]): Promise<T[]>;
  /** Pods that come and go while `during` runs, and for a round before and after. */
  underChurn(during: () => Promise<unknown>): Promise<void>;
  /** Waits until the report of a node has a value at a JSON path of its status. */
  reported(node: string, path: string, value: string): Promise<void>;
  /**
   * Waits until everything that the witnesses saw is stored once or lies in a gap, and no gap is open or undeclared. With another name of the cluster
   * than the documentation's: everything that they saw after `since` (wall clock).
   */
  nothingIsLost(of?: { readonly cluster: string; readonly since: number }): Promise<void>;
  stop(): Promise<void>;
}

export async function startBed(): Promise<ClusterBed> {
  const began = performance.now();
  const cluster = await startCluster({ report: (step) => log(began, step) });
  const witnesses = new Map<string, Witness>();
  let client: Client | undefined;
  const stop = async () => {
    for (const witness of witnesses.values()) await witness.stop();
    await client?.end();
    await cluster.stop();
  };
  try {
    log(began, 'pushing the image');
    await cluster.registry.push(
      join(CHECKOUT, `dist/image/plegwatch-${VERSION}.tar`),
      `plegwatch:${VERSION}`,
    );
    log(began, 'the cluster is ready');
    client = new Client({ connectionString: urlOf(cluster) });
    await client.connect();
    for (const { name, socket } of cluster.nodes)
      witnesses.set(name, new Witness({ socket, version: '2.1' }));
  } catch (error) {
    await stop();
    throw error;
  }
  const database = client;
  const query: ClusterBed['query'] = async (text, values = []) =>
    (await database.query(text, [...values])).rows;
  return {
    ...{ cluster, witnesses, query, stop, databaseUrl: urlOf(cluster) },
    underChurn: (during) => underChurn(cluster, during),
    reported: async (node, path, value) =>
      void (await cluster.shell(`
        kubectl wait --for=create plegreport/${node} ${TIMEOUT}
        kubectl wait --for=jsonpath='{.status.${path}}'='${value}' plegreport/${node} ${TIMEOUT}`)),
    async nothingIsLost({ cluster: name, since } = { cluster: CLUSTER, since: 0 }) {
      for (const node of cluster.nodes) {
        const transitions = witnesses.get(node.name)?.transitions.filter(({ at }) => at > since) ?? [];
        await accountFor([name, node.name], transitions, query);
        console.log(`${name} ${node.name}: ${transitions.length} transitions accounted for`);
      }
    },
  };
}

function urlOf({ postgres: { socketDir, port } }: Cluster): string {
  return `postgres://plegwatch:PASSWORD@localhost:${port}/plegwatch?host=${encodeURIComponent(socketDir)}`;
}

function log(began: number, what: string): void {
  console.log(`${((performance.now() - began) / 1_000).toFixed(1)} s  ${what}`);
}

async function underChurn(cluster: Cluster, during: () => Promise<unknown>): Promise<void> {
  const churn = new Churn(cluster);
  try {
    await roundAfter(churn);
    await during();
    await roundAfter(churn);
  } finally {
    await churn.stop();
  }
  expect(churn.failures).toEqual([]);
}

/** Waits for a round of pods that begins after this moment. */
async function roundAfter(churn: Churn): Promise<void> {
  const { rounds } = churn;
  await expect.poll(() => churn.rounds, { timeout: WITHIN_MS, interval: 100 }).toBeGreaterThan(rounds + 1);
}

/** `of`: the cluster and the node. */
async function accountFor(
  of: readonly [string, string],
  transitions: readonly Transition[],
  query: ClusterBed['query'],
): Promise<void> {
  const passed = announced(transitions);
  const state = async () => {
    const events = await query<{ id: string; type: EventType; times: number }>(
      `SELECT container_id AS id, event_type AS type, count(*)::int4 AS times
         FROM plegwatch.container_events WHERE cluster = $1 AND node = $2 GROUP BY 1, 2`,
      of,
    );
    const gaps = await query<{ from: number; to: number | null }>(
      `SELECT (extract(epoch FROM from_at) * 1000)::float8 AS "from", (extract(epoch FROM to_at) * 1000)::float8 AS "to"
         FROM plegwatch.gaps WHERE cluster = $1 AND node = $2 AND scope IN ('stream', 'agent')`,
      of,
    );
    const undeclared = await query<{ scope: string; from_at: Date; to_at: Date }>(
      'SELECT scope, from_at, to_at FROM plegwatch.undeclared_gaps() WHERE cluster = $1 AND node = $2',
      of,
    );
    const { lost } = account({
      ...{ transitions, passed, gaps, heard: new Set(), findings: [] },
      stored: events.map(keyOf),
    });
    return {
      lost,
      storedTwice: events.filter(({ times }) => times > 1),
      openGaps: gaps.filter(({ to }) => to === null),
      undeclared,
    };
  };
  await expect
    .poll(state, { timeout: WITHIN_MS, interval: 500 })
    .toEqual({ lost: [], storedTwice: [], openGaps: [], undeclared: [] });
}
