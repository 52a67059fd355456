/*
 * `plegwatch readiness`: how many nodes of each pool are ready for Evented PLEG, and why others are not; and below the table, what became worse since
 * yesterday. The page shows the same rows and the same sentence.
 */
import { ordered } from '../../platform/ordered.ts';
import { printable } from '../../platform/printable.ts';
import { inEach, storesOf } from '../../store/notFound.ts';
import { int4, text, textArray } from '../../store/schema/columns.ts';
import { nullable, type RowOf, rowOf, statement } from '../../store/statement.ts';
import type { ReadStore } from '../../store/store.ts';
import { changeUntil, readTwoDays } from '../hours/change.ts';
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
export const readinessOf = async ({ store, cluster }: AskedReadiness) =>
  readinessIn(await storesOf(store, cluster), cluster);

async function readinessIn(stores: readonly ReadStore[], cluster: readonly string[] | undefined) {
  const parts = await inEach(stores, (part) => part.run(readReadiness, [cluster ?? null, MAX_POOLS]));
  return orderedPools(parts.map(({ rows }) => rows));
}

export const orderedPools = <R extends { readonly cluster: string; readonly pool: string | null }>(
  parts: readonly (readonly R[])[],
): R[] =>
  ordered<R>(
    parts,
    ({ cluster }) => cluster,
    ({ pool }) => pool,
  );

/** Returns what is printed. Throws as {@link readinessOf}. */
export async function runReadiness({ store, cluster, output }: ReadinessCommand): Promise<string> {
  const stores = await storesOf(store, cluster);
  const rows = await readinessIn(stores, cluster);
  const text = rowsText(rows, output, SHOWN);
  if (output !== 'table' || rows.length === 0) return text;
  const now = new Date();
  const days = await inEach(stores, (part) => readTwoDays(part, cluster ?? null, now));
  const { sentence } = changeUntil(days.flat(), now);
  return `${text}\n${printable(sentence)}\n`;
}
