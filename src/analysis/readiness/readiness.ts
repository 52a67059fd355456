/*
 * `plegwatch readiness`: how many nodes of each pool are ready for Evented PLEG, and why others are not; and below the table, what became worse since
 * yesterday. The page shows the same rows and the same sentence.
 */
import { printable } from '../../platform/printable.ts';
import { requireClusters } from '../../store/notFound.ts';
import { int4, text, textArray } from '../../store/schema/columns.ts';
import { nullable, type RowOf, rowOf, statement } from '../../store/statement.ts';
import type { ReadStore } from '../../store/store.ts';
import { readChange } from '../hours/change.ts';
import { type RowOutput, rowsText, type ShownRows } from '../rowsText.ts';
import readReadinessSql from './sql/readReadiness.sql';

export const readReadiness = statement(
  readReadinessSql,
  rowOf({
    ...{ cluster: text, pool: nullable(text) },
    ...{ safe: int4, unsafe: int4, unknown: int4, reasons: textArray },
  }),
);

export const MAX_POOLS = 2_000;
export const NO_NODE = 'No node is known.';

const SHOWN: ShownRows<RowOf<typeof readReadiness>> = {
  fields: ['cluster', 'pool', 'safe', 'unsafe', 'unknown', 'reasons'],
  columns: {
    CLUSTER: ({ cluster }) => cluster,
    POOL: ({ pool }) => pool,
    SAFE: ({ safe }) => safe,
    UNSAFE: ({ unsafe }) => unsafe,
    UNKNOWN: ({ unknown }) => unknown,
    'WHY NOT SAFE': ({ reasons }) => reasons.join('; '),
  },
  empty: NO_NODE,
};

interface AskedReadiness {
  readonly store: ReadStore;
  readonly cluster: readonly string[] | undefined;
}

export interface ReadinessCommand extends AskedReadiness {
  readonly output: RowOutput;
}

/** Throws NOT_FOUND for a cluster that is not there. */
export async function readinessOf({ store, cluster }: AskedReadiness) {
  await requireClusters(store, cluster);
  return (await store.run(readReadiness, [cluster ?? null, MAX_POOLS])).rows;
}

/** Returns what is printed. Throws as {@link readinessOf}. */
export async function runReadiness({ store, cluster, output }: ReadinessCommand): Promise<string> {
  const rows = await readinessOf({ store, cluster });
  const text = rowsText(rows, output, SHOWN);
  if (output !== 'table' || rows.length === 0) return text;
  const { sentence } = await readChange(store, cluster ?? null, new Date());
  return `${text}\n${printable(sentence)}\n`;
}
