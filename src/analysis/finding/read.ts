/*
 * Reads a finding, and what it rests on. The view writes times into its texts: set the time zone of the transaction to UTC.
 */
import type { SqlRunner } from '../../store/runner.ts';
import type { EvidenceLine, FindingRow } from './finding.ts';
import readEvidenceSql from './sql/readEvidence.sql';
import readFindingSql from './sql/readFinding.sql';

/** The findings of this id: one, unless a node used the id of another one. */
export async function readFindings(
  sql: SqlRunner,
  id: string,
  clusters: readonly string[] | null,
  node: string | null,
): Promise<readonly FindingRow[]> {
  return (await sql.run<FindingRow>({ text: readFindingSql }, [id, clusters, node])).rows;
}

export async function readEvidence(
  sql: SqlRunner,
  { cluster, node, finding_id }: FindingRow,
): Promise<readonly EvidenceLine[]> {
  return (await sql.run<EvidenceLine>({ text: readEvidenceSql }, [cluster, node, finding_id])).rows;
}
