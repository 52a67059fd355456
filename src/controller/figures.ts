/*
 * Figures for the metrics that only the database knows: how late reports are, when maintenance last succeeded, on how many nodes the
 * evidence is incomplete or PLEG is not healthy, and how many nodes have each mode, stream state and condition.
 */
import { monoNow } from '../platform/clock.ts';
import { messageOf } from '../platform/errors.ts';
import { invariant } from '../platform/invariant.ts';
import type { Logger } from '../platform/log.ts';
import { Loop } from '../platform/loop.ts';
import { between, type Mono } from '../protocol/units.ts';
import { databaseErrorKind } from '../store/databaseError.ts';
import type { SqlRunner } from '../store/runner.ts';
import { float8, int4, int4Array, text } from '../store/schema/columns.ts';
import { type RowOf, rowOf, statement } from '../store/statement.ts';
import type { Store } from '../store/store.ts';
import countNodesSql from './sql/countNodes.sql';
import countUnhealthySql from './sql/countUnhealthy.sql';
import readFiguresSql from './sql/readFigures.sql';

/** The cause that held PLEG up when it was not healthy, the smallest first: the column of the view `pleg_verdicts`. */
export const PLEG_VERDICTS = ['container', 'pod', 'runtime', 'kubelet', 'node', 'unknown'] as const;
/** Why the evidence of a node is incomplete; see sql/readFigures.sql. */
export const INCOMPLETE_REASONS = ['RecordsLost', 'CoverageLow', 'Unproven'] as const;

export const readFigures = statement(
  readFiguresSql,
  rowOf({
    ...{ maintained_at: float8, oldest_due_s: float8 },
    ...{ records_lost: int4, coverage_low: int4, unproven: int4, unhealthy: int4Array },
  }),
);
export const countUnhealthy = statement(countUnhealthySql, rowOf({ verdict: text, nodes: int4 }));
/** `of`: `mode`, `stream`, `agent` or `condition`, which alone has a `status`. */
export const countNodes = statement(
  countNodesSql,
  rowOf({ of: text, value: text, status: text, nodes: int4 }),
);

export type NodeCount = RowOf<typeof countNodes>;

export interface StoreFigures {
  /** In seconds since 1970. */
  readonly maintainedAt: number;
  readonly oldestDueSeconds: number;
  readonly incomplete: Readonly<Record<(typeof INCOMPLETE_REASONS)[number], number>>;
  readonly unhealthy: Readonly<Record<(typeof PLEG_VERDICTS)[number], number>>;
  /** Those that have a report, by what it says. */
  readonly nodes: readonly NodeCount[];
}

export interface FiguresOptions {
  readonly store: SqlRunner & Pick<Store, 'ensureCluster'>;
  /** The name of the cluster. */
  readonly cluster: string;
  /** An agent without a stored batch for longer than this is silent. */
  readonly silentAfterMs: number;
  readonly log: Logger;
  /** Null while the database does not answer. */
  readonly onRead: (figures: StoreFigures | null) => void;
  /** Default: {@link monoNow}. */
  readonly clock?: () => Mono;
}

const PERIOD_MS = 15_000;
/** Where PLEG is unhealthy on thousands of nodes, their verdicts take seconds. */
const MAX_SHARE = 0.05;
const BACKOFF = { firstMs: 1_000, maxMs: 30_000 };

/** Reads the figures at once and then regularly, until it is stopped. */
export function startFigures(options: FiguresOptions): { stop(): Promise<void> } {
  const { store, cluster, log, onRead, clock = monoNow } = options;
  const loop = new Loop({
    async work() {
      const clusterId = await store.ensureCluster(cluster);
      const began = clock();
      onRead(await read(options, clusterId));
      return pauseAfter(between(began, clock()) / 1000);
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

async function read(
  { store: sql, silentAfterMs, log }: FiguresOptions,
  clusterId: number,
): Promise<StoreFigures> {
  const row = (await sql.run(readFigures, [clusterId])).rows[0];
  invariant(row, 'an aggregate returns a row');
  // Verdicts are dear, and most of the time nothing is unhealthy.
  const verdicts = row.unhealthy.length > 0 ? await verdictsOf(sql, row.unhealthy, log) : [];
  const nodesOf = Object.fromEntries(verdicts.map(({ verdict, nodes }) => [verdict, nodes]));
  return {
    maintainedAt: row.maintained_at,
    oldestDueSeconds: row.oldest_due_s,
    incomplete: { RecordsLost: row.records_lost, CoverageLow: row.coverage_low, Unproven: row.unproven },
    unhealthy: { container: 0, pod: 0, runtime: 0, kubelet: 0, node: 0, unknown: 0, ...nodesOf },
    nodes: (await sql.run(countNodes, [clusterId, silentAfterMs])).rows,
  };
}

/** Verdicts that take too long are not known; the other figures are. */
async function verdictsOf(
  sql: SqlRunner,
  nodeIds: readonly number[],
  log: Logger,
): Promise<readonly RowOf<typeof countUnhealthy>[]> {
  try {
    return (await sql.run(countUnhealthy, [nodeIds])).rows;
  } catch (error) {
    if (databaseErrorKind(error) !== 'timeout') throw error;
    log.warn({ nodes: nodeIds.length, error: messageOf(error) }, 'verdicts on PLEG took too long');
    return [{ verdict: 'unknown', nodes: nodeIds.length }];
  }
}
