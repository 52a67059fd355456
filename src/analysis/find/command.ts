/*
 * `plegwatch find TEXT`: what a pod, container, node or finding is, with its findings and the commands to go on with.
 */
import { PlegwatchError } from '../../platform/errors.ts';
import { type StyledText, unstyled } from '../../platform/printable.ts';
import { inEach, storesOf } from '../../store/notFound.ts';
import type { ReadStore } from '../../store/store.ts';
import { MAX_HITS, NOTHING_FOUND } from './limits.ts';
import { type Found, orderedHits, readFindingsOf, search } from './search.ts';
import { findText } from './text.ts';

interface Search {
  readonly store: ReadStore;
  readonly text: string;
  readonly cluster: readonly string[] | undefined;
}

export interface FindCommand extends Search {
  readonly output: 'text' | 'json';
}

const MAX_FINDINGS = 10;

/** Returns the lines to print. Throws NOT_FOUND. */
export async function runFind({
  output,
  ...asked
}: FindCommand): Promise<readonly (readonly StyledText[])[]> {
  const { hits, cut } = await find(asked);
  return output === 'text' ? findText(hits, cut) : unstyled(JSON.stringify({ hits, cut }, null, 2));
}

/** The hits; `cut`: there are more. Throws NOT_FOUND. */
export async function find({
  store,
  text,
  cluster,
}: Search): Promise<{ readonly hits: readonly Found[]; readonly cut: boolean }> {
  const parts = await inEach(await storesOf(store, cluster), (part) =>
    part.transaction(async (sql) => {
      const { rows: hits } = await sql.run(search, [cluster ?? null, text, MAX_HITS + 1]);
      const columns = (['cluster', 'node', 'found', 'text'] as const).map((name) =>
        hits.map((hit) => hit[name]),
      );
      const { rows: all } = await sql.run(readFindingsOf, [...columns, MAX_FINDINGS + 1]);
      return hits.map((hit, at): Found => {
        const own = all.filter(({ hit: place }) => place === at + 1).map(({ hit: _, ...finding }) => finding);
        return { ...hit, findings: own.slice(0, MAX_FINDINGS), hasMore: own.length > MAX_FINDINGS };
      });
    }),
  );
  const found = orderedHits(parts);
  if (found.length === 0)
    throw new PlegwatchError('NOT_FOUND', `Nothing is found by ${text}.`, NOTHING_FOUND);
  return { hits: found.slice(0, MAX_HITS), cut: found.length > MAX_HITS };
}
