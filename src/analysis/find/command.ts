/*
 * `plegwatch find TEXT`: what a pod, container, node or finding is, with its findings and the commands to go on with.
 */
import { PlegwatchError } from '../../platform/errors.ts';
import { type StyledText, unstyled } from '../../platform/printable.ts';
import { requireClusters } from '../../store/notFound.ts';
import type { ReadStore } from '../../store/store.ts';
import { MAX_HITS, NOTHING_FOUND } from './limits.ts';
import { type Found, readFindingsOf, search } from './search.ts';
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
export function find({
  store,
  text,
  cluster,
}: Search): Promise<{ readonly hits: readonly Found[]; readonly cut: boolean }> {
  return store.transaction(async (sql) => {
    await requireClusters(sql, cluster);
    const { rows } = await sql.run(search, [cluster ?? null, text, MAX_HITS + 1]);
    if (rows.length === 0)
      throw new PlegwatchError('NOT_FOUND', `Nothing is found by ${text}.`, NOTHING_FOUND);
    const hits = rows.slice(0, MAX_HITS);
    const columns = (['cluster', 'node', 'found', 'text'] as const).map((name) =>
      hits.map((hit) => hit[name]),
    );
    const { rows: all } = await sql.run(readFindingsOf, [...columns, MAX_FINDINGS + 1]);
    const found = hits.map((hit, at): Found => {
      const own = all.filter(({ hit: place }) => place === at + 1).map(({ hit: _, ...finding }) => finding);
      return { ...hit, findings: own.slice(0, MAX_FINDINGS), hasMore: own.length > MAX_FINDINGS };
    });
    return { hits: found, cut: rows.length > MAX_HITS };
  });
}
