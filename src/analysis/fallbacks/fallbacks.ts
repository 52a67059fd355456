/*
 * `plegwatch fallbacks`: which kubelets gave up their event stream, since when, until when, and why.
 */
import { and, desc, gt, isNull, lt, or, type SQL } from 'drizzle-orm';
import { newest, ordered } from '../../platform/ordered.ts';
import { bytewise, oneOf } from '../../store/expressions.ts';
import { inEach, storesOf } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { fallbackIntervals } from '../../store/schema/views.ts';
import type { ReadStore } from '../../store/store.ts';
import { checkPeriod, type Period } from '../period.ts';
import { type RowOutput, rowsText, type ShownRows } from '../rowsText.ts';
import { toSecond, untilInWords, whyOfMode } from '../words.ts';

type Fallback = Readonly<typeof fallbackIntervals.$inferSelect>;

interface AskedFallbacks extends Period {
  /** Undefined for all. */
  readonly cluster: readonly string[] | undefined;
  readonly node: readonly string[] | undefined;
}

/** The fallbacks that lasted at some time of the period. */
export function fallbacksOf({ cluster: clusters, node: names, from, to }: AskedFallbacks): SQL | undefined {
  const { cluster, node, from_at, to_at } = fallbackIntervals;
  return and(
    ...[oneOf(cluster, clusters ?? null), oneOf(node, names ?? null)],
    ...[lt(from_at, to.toISOString()), or(isNull(to_at), gt(to_at, from.toISOString()))],
  );
}

/** The newest first. */
function readFallbackIntervals(sql: SqlRunner, asked: AskedFallbacks): Promise<Fallback[]> {
  const { cluster, node, from_at } = fallbackIntervals;
  return sql.query((db) =>
    db
      .select()
      .from(fallbackIntervals)
      .where(fallbacksOf(asked))
      .orderBy(desc(from_at), bytewise(cluster), bytewise(node)),
  );
}

export const NO_FALLBACK = 'No kubelet was seen to fall back in this period.';

const SHOWN: ShownRows<Fallback> = {
  fields: [
    ...(['cluster', 'node', 'not_before', 'from_at', 'to_at', 'hours', 'model', 'mode', 'reason'] as const),
    ...(['next_mode', 'our_stream_ended_with', 'message', 'runtime_name', 'runtime_version'] as const),
    ...(['kubelet_version', 'consequence', 'findings'] as const),
  ],
  columns: {
    CLUSTER: ({ cluster }) => cluster,
    NODE: ({ node }) => node,
    SINCE: ({ from_at }) => toSecond(from_at),
    UNTIL: ({ to_at, next_mode }) => untilInWords(to_at, next_mode, toSecond),
    HOURS: ({ hours }) => hours?.toFixed(1),
    MODE: ({ mode }) => mode,
    FINDINGS: ({ findings }) => findings,
    KUBELET: ({ kubelet_version }) => kubelet_version,
    WHY: ({ mode, reason, kubelet_version: kubeletVersion }) => whyOfMode({ mode, reason, kubeletVersion }),
  },
  empty: NO_FALLBACK,
};

export interface FallbacksCommand extends AskedFallbacks {
  readonly store: ReadStore;
  readonly output: RowOutput;
}

/** Returns what is printed. Throws NOT_FOUND for a cluster that is not there, and SETTING_INVALID for a period that cannot be. */
export async function runFallbacks({ store, output, ...asked }: FallbacksCommand): Promise<string> {
  checkPeriod(asked);
  const stores = await storesOf(store, asked.cluster);
  const parts = await inEach(stores, (part) => readFallbackIntervals(part, asked));
  const rows = ordered(
    parts,
    newest(({ from_at }) => from_at),
    ({ cluster }) => cluster,
    ({ node }) => node,
  );
  return rowsText(rows, output, SHOWN);
}
