/*
 * The objects that a name or an id names: nodes, pods, containers and findings. `plegwatch find` and the page search alike.
 */
import { newest, ordered } from '../../platform/ordered.ts';
import { int4, text, timestamptz } from '../../store/schema/columns.ts';
import { findings } from '../../store/schema/views.ts';
import { nullable, type RowOf, rowOf, statement, word } from '../../store/statement.ts';
import readFindingsOfSql from './sql/readFindingsOf.sql';
import searchSql from './sql/search.sql';

export const search = statement(
  searchSql,
  rowOf({
    ...{ cluster: text, node: text, found: word('node', 'pod', 'container', 'finding') },
    ...{ text, at: nullable(timestamptz) },
  }),
);
type Hit = RowOf<typeof search>;

/** As the statement sorts them. */
const RANKS = { finding: 0, node: 1, pod: 2, container: 2 };
export const orderedHits = <H extends Hit>(parts: readonly (readonly H[])[]): H[] =>
  ordered<H>(
    parts,
    ({ found }) => RANKS[found],
    newest(({ at }) => at),
    ({ cluster }) => cluster,
    ({ node }) => node,
    ({ text }) => text,
  );

export const readFindingsOf = statement(
  readFindingsOfSql,
  rowOf({
    /** The place of what it belongs to, from 1. */
    hit: int4,
    ...{ finding_id: findings.finding_id, kind: findings.kind, event_type: findings.event_type },
    ...{ container_name: findings.container_name, is_sandbox: findings.is_sandbox },
    ...{ resolved_at: findings.resolved_at, at: timestamptz },
  }),
);
export type FoundFinding = Omit<RowOf<typeof readFindingsOf>, 'hit'>;

export interface Found extends Hit {
  readonly findings: readonly FoundFinding[];
  /** It has more findings. */
  readonly hasMore: boolean;
}
