/*
 * Clusters in which pods start, each with a controller, in one Postgres: their events a second rise until something ends, which the row says.
 * Senders and all that is measured share this machine, so processor time of 1,000 events says more than the rate that was reached.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { loadAverage } from '../processes.ts';
import { quantile } from '../statistics.ts';
import type { TableRow } from '../table.ts';
import { churnPlan } from './churnPlan.ts';
import { COMMIT_TIMES, eventLag } from './commitLag.ts';
import { type ControllerSystem, type ProcessorTime, startControllerSystem } from './controllerSystem.ts';
import { type BenchPart, CLUSTER_COUNTS, log, SHORT } from './part.ts';
import { SealedSenders, sharesOf } from './sealedSenders.ts';

const QUEUES = 16;
/** All clusters together have them. */
const NODES = SHORT ? 40 : 1_000;
const RATES = SHORT ? [400, 800] : [1_000, 2_000, 4_000, 6_000, 8_000, 12_000];
const SECONDS = SHORT ? 5 : 15;
const ASK_EVERY_MS = 5_000;
/** Beyond it, something has ended. */
const MAX_LAG_MS = 2_000;
const SAMPLE_MS = 50;

interface Played {
  readonly rate: number;
  readonly used: ProcessorTime;
  readonly senders: number;
  readonly seconds: number;
  readonly stored: number;
  readonly p50: number;
  readonly p99: number;
  readonly lateMs: number;
  readonly left: number;
  readonly walBytes: number;
  readonly waits: string;
  readonly load: number;
}

export const busyClusters: BenchPart = {
  name: 'starts',
  title: 'Clusters in which pods start, in one Postgres',
  async run() {
    const rows: TableRow[] = [];
    for (const count of CLUSTER_COUNTS) {
      for (const played of await rising(count)) rows.push(rowOf(count, played));
    }
    return { rows, plots: [] };
  },
};

/** One rate after the other, in one database, until the events of one come late. */
async function rising(count: number): Promise<Played[]> {
  const clusters = Array.from({ length: count }, (_, n) => `cluster-${n}`);
  const system = await startControllerSystem({ queues: QUEUES, clusters, postgres: COMMIT_TIMES });
  const names = Array.from({ length: NODES / count }, (_, n) => `node-${n}`);
  const senders: SealedSenders[] = [];
  const all: Played[] = [];
  try {
    for (const cluster of clusters) senders.push(await SealedSenders.start(system, names, cluster));
    for (const rate of RATES) {
      log(`starts: ${count} clusters, ${rate} events a second`);
      const played = await playAt(rate, system, senders, names);
      all.push(played);
      if (played.p99 > MAX_LAG_MS || played.lateMs > MAX_LAG_MS || played.left > 0) break;
    }
    return all;
  } finally {
    for (const each of senders) each.close();
    await system.stop();
  }
}

async function playAt(
  rate: number,
  system: ControllerSystem,
  senders: readonly SealedSenders[],
  nodes: readonly string[],
): Promise<Played> {
  const client = new Client({ connectionString: system.postgres.url });
  await client.connect();
  const load = loadAverage();
  try {
    const walBefore = await walBytes(client);
    const plans = senders.map((_, n) =>
      // Other pods in each cluster, and at each rate.
      churnPlan({ nodes, eventsASecond: rate / senders.length, seconds: SECONDS, seed: 1_000 * (rate + n) }),
    );
    let sealingMs = 0;
    for (const [n, each] of senders.entries()) sealingMs += await each.sealingTime(plans[n] ?? []);
    const begin = Date.now() + sealingMs;
    const ended = new AbortController();
    const sampled = delay(sealingMs).then(() => sampleWaits(client, ended.signal));
    const played = await Promise.all(
      senders.map((each, n) => each.play(plans[n] ?? [], ASK_EVERY_MS, begin)),
    );
    ended.abort();
    const waits = await sampled;
    const [from, to] = [Math.max(...played.map((one) => one.from)), Math.min(...played.map((one) => one.to))];
    const lag = await eventLag(system.postgres.url, from, to);
    return {
      ...{ rate, load, seconds: (to - from) / 1000, stored: lag.rows, p50: lag.p50, p99: lag.p99 },
      ...sharesOf(played),
      lateMs: quantile(
        played.flatMap(({ late }) => late),
        0.99,
      ),
      left: Math.min(...played.map(({ unanswered }) => unanswered)),
      walBytes: (await walBytes(client)) - walBefore,
      waits,
    };
  } finally {
    await client.end();
  }
}

async function walBytes(client: Client): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>("SELECT pg_current_wal_lsn() - '0/0' AS bytes");
  return Number(rows[0]?.bytes);
}

/** Waits of active sessions, in the order of how often; one that is `running` does not wait. */
async function sampleWaits(client: Client, signal: AbortSignal): Promise<string> {
  const counts = new Map<string, number>();
  let samples = 0;
  while (!signal.aborted) {
    const { rows } = await client.query<{ wait: string }>(
      `SELECT coalesce(wait_event, 'running') AS wait FROM pg_stat_activity
       WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
    );
    samples += 1;
    for (const { wait } of rows) counts.set(wait, (counts.get(wait) ?? 0) + 1);
    await delay(SAMPLE_MS);
  }
  return [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, 4)
    .map(([wait, count]) => `${wait} ${(count / samples).toFixed(2)}`)
    .join(', ');
}

function rowOf(count: number, played: Played): TableRow {
  const { rate, used, senders, seconds, stored, p50, p99, lateMs, left, waits, load } = played;
  const perSecond = stored / seconds;
  const ofThousand = (share: number) => `${((1_000_000 * share) / perSecond).toFixed(0)}`;
  const percent = (share: number) => (100 * share).toFixed(0);
  return {
    what: `${count} cluster${count === 1 ? '' : 's'}, ${rate.toLocaleString('en')} events/s`,
    figure: [
      `${Math.round(perSecond).toLocaleString('en')} stored/s, p99 ${Math.round(p99)} ms (p50 ${Math.round(p50)})`,
      `Postgres ${percent(used.postgres)}, controllers ${percent(used.controller)}, Redis ${percent(used.redis)}, senders ${percent(senders)} % of a core`,
      `${ofThousand(used.postgres)}, ${ofThousand(used.controller)}, ${ofThousand(used.redis)} ms for 1,000 events`,
      `${Math.round(played.walBytes / (rate * SECONDS))} bytes of WAL an event; sessions: ${waits}`,
      `sent ${Math.round(lateMs)} ms late (p99), ${left} still wait; load before ${load.toFixed(1)}`,
    ].join('; '),
  };
}
