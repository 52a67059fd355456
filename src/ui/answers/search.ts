/*
 * GET /api/search: nodes, pods, containers and findings of a name or an id.
 */
import { MAX_HITS, NOTHING_FOUND } from '../../analysis/find/limits.ts';
import { search } from '../../analysis/find/search.ts';
import type { SearchAnswer } from '../api.ts';
import { parametersOf, searchIn } from '../parameters.ts';
import type { Reader } from './reader.ts';

export async function searchAnswer(
  { clusters, read }: Reader,
  query: URLSearchParams,
): Promise<SearchAnswer> {
  const q = searchIn(parametersOf(query, ['q']), 'q');
  const { rows } = await read((sql) => sql.run(search, [clusters, q, MAX_HITS + 1]));
  return {
    hits: rows.slice(0, MAX_HITS),
    cut: rows.length > MAX_HITS,
    empty: rows.length === 0 ? NOTHING_FOUND : null,
  };
}
