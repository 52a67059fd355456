/*
 * Figures for the metrics that only the database knows: how late reports are, when maintenance last succeeded, on how many nodes the
 * evidence is incomplete or PLEG is not healthy.
 */
import { messageOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { Loop } from '../platform/loop.ts';
import type { Store } from '../store/store.ts';
import countUnhealthy from './sql/countUnhealthy.sql';
import readFigures from './sql/readFigures.sql';

/** What was slow when PLEG was not healthy: the column of the view `pleg_verdicts`. */
export const PLEG_VERDICTS = ['runtime', 'kubelet', 'unknown'] as const;
/** Why the evidence of a node is incomplete; see sql/readFigures.sql. */
export const INCOMPLETE_REASONS = ['RecordsLost', 'CoverageLow', 'Unproven'] as const;

export interface StoreFigures {
  /** In seconds since 1970. */
  readonly maintainedAt: number;
  readonly oldestDueSeconds: number;
  readonly incomplete: Readonly<Record<(typeof INCOMPLETE_REASONS)[number], number>>;
  readonly unhealthy: Readonly<Record<(typeof PLEG_VERDICTS)[number], number>>;
}

export interface FiguresOptions {
  readonly store: Pick<Store, 'run' | 'ensureCluster'>;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly log: Logger;
  /** Null while the database does not answer. */
  readonly onRead: (figures: StoreFigures | null) => void;
}

const PERIOD_MS = 30_000;
/** Where PLEG is unhealthy on thousands of nodes, their verdicts take seconds. */
const MAX_SHARE = 0.05;
const BACKOFF = { firstMs: 1_000, maxMs: 30_000 };

/** Reads the figures at once and then regularly, until it is stopped. */
export function startFigures({ store, cluster, log, onRead }: FiguresOptions): { stop(): Promise<void> } {
  const loop = new Loop({
    async work() {
      const clusterId = await store.ensureCluster(cluster);
      const began = performance.now();
      onRead(await read(store, clusterId));
      return pauseAfter(performance.now() - began);
    },
    onError: (error) => {
      onRead(null);
      log.warn({ error: messageOf(error) }, 'metrics could not be read from Postgres, retrying');
    },
    backoff: BACKOFF,
  });
  loop.start();
  return loop;
}

/** How long to wait after a read: Postgres is busy with them for at most a twentieth of the time. */
export const pauseAfter = (tookMs: number): number => Math.max(PERIOD_MS, tookMs / MAX_SHARE - tookMs);

interface FiguresRow {
  readonly maintained_at: number;
  readonly oldest_due_s: number;
  readonly records_lost: number;
  readonly coverage_low: number;
  readonly unproven: number;
  readonly unhealthy: readonly number[];
}

async function read(store: Pick<Store, 'run'>, clusterId: number): Promise<StoreFigures> {
  const { rows } = await store.run<FiguresRow & Record<string, unknown>>({ text: readFigures }, [clusterId]);
  const row = rows[0];
  if (row === undefined) throw new Error('an aggregate query returned no row');
  const unhealthy = { runtime: 0, kubelet: 0, unknown: 0 };
  // Verdicts are dear, and most of the time nothing is unhealthy.
  if (row.unhealthy.length > 0) Object.assign(unhealthy, await verdicts(store, row.unhealthy));
  return {
    maintainedAt: row.maintained_at,
    oldestDueSeconds: row.oldest_due_s,
    incomplete: { RecordsLost: row.records_lost, CoverageLow: row.coverage_low, Unproven: row.unproven },
    unhealthy,
  };
}

async function verdicts(
  store: Pick<Store, 'run'>,
  nodeIds: readonly number[],
): Promise<Record<string, number>> {
  const { rows } = await store.run<{ verdict: string; nodes: number }>({ text: countUnhealthy }, [nodeIds]);
  return Object.fromEntries(rows.map(({ verdict, nodes }) => [verdict, nodes]));
}
