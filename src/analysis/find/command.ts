/*
 * `plegwatch find TEXT`: what a pod, container, node or finding is, with its findings and the commands to go on with.
 */
import { PlegwatchError } from '../../platform/errors.ts';
import { type StyledText, unstyled } from '../../platform/printable.ts';
import { requireClusters } from '../../store/notFound.ts';
import type { Store } from '../../store/store.ts';
import { MAX_HITS, NOTHING_FOUND } from './limits.ts';
import { type Found, readFindingsOf, search } from './search.ts';
import { findText } from './text.ts';

export interface FindCommand {
  readonly store: Store;
  readonly text: string;
  readonly cluster: readonly string[] | undefined;
  readonly output: 'text' | 'json';
}

const MAX_FINDINGS = 10;

/** Returns the lines to print. Throws NOT_FOUND. */
export function runFind({
  store,
  text,
  cluster,
  output,
}: FindCommand): Promise<readonly (readonly StyledText[])[]> {
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
    const isCut = rows.length > MAX_HITS;
    if (output === 'text') return findText(found, isCut);
    return unstyled(JSON.stringify({ hits: found, cut: isCut }, null, 2));
  });
}
