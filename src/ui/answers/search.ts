/*
 * GET /api/search: nodes, pods, containers and findings of a name or an id.
 */
import type { SearchAnswer } from '../api.ts';
import { parametersOf, searchIn } from '../parameters.ts';
import type { Reader } from './reader.ts';
import { search } from './statements.ts';

const MAX_HITS = 50;
const NOTHING =
  'No node, and no pod, container or finding that is kept. The beginning of a name is searched for in the last two days only: write all of it.';

export async function searchAnswer(
  { clusters, read }: Reader,
  query: URLSearchParams,
): Promise<SearchAnswer> {
  const q = searchIn(parametersOf(query, ['q']), 'q');
  const { rows } = await read((sql) => sql.run(search, [clusters, q, MAX_HITS + 1]));
  return {
    hits: rows.slice(0, MAX_HITS),
    cut: rows.length > MAX_HITS,
    empty: rows.length === 0 ? NOTHING : null,
  };
}
