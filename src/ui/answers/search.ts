/*
 * GET /api/search: nodes, pods, containers and findings of a name or an id.
 */
import { MAX_HITS, NOTHING_FOUND } from '../../analysis/find/limits.ts';
import { orderedHits, search } from '../../analysis/find/search.ts';
import type { SearchAnswer } from '../api.ts';
import { parametersOf, searchIn } from '../parameters.ts';
import { type Reader, readEach } from './reader.ts';

export async function searchAnswer(reader: Reader, query: URLSearchParams): Promise<SearchAnswer> {
  const q = searchIn(parametersOf(query, ['q']), 'q');
  const parts = await readEach(reader, (sql) => sql.run(search, [reader.clusters, q, MAX_HITS + 1]));
  const rows = orderedHits(parts.map((part) => part.rows));
  return {
    hits: rows.slice(0, MAX_HITS),
    cut: rows.length > MAX_HITS,
    empty: rows.length === 0 ? NOTHING_FOUND : null,
  };
}
