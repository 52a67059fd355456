/*
 * A finding with what it rests on, as the views have it. Times are in UTC, to the microsecond. Nobody has checked its texts.
 */
import { and, eq } from 'drizzle-orm';
import { oneOf } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { findingEvidence, findings } from '../../store/schema/views.ts';
import { command } from '../../store/statement.ts';

export interface Finding {
  readonly finding: FindingRow;
  readonly evidence: readonly EvidenceLine[];
}
export type FindingRow = Readonly<typeof findings.$inferSelect>;
export type EvidenceLine = Readonly<
  Pick<typeof findingEvidence.$inferSelect, 'line' | 'at' | 'until' | 'fact' | 'record'>
>;

/** Before the evidence is read, in the same transaction: its view writes times into texts. */
export const inUtc = command("SET LOCAL TIME ZONE 'UTC'");

const MAX_FINDINGS = 100;
const MAX_LINES = 1_000;

/** The findings of this id: one, unless a node used the id of another one. Null: of all clusters, of all nodes. */
export function readFindings(
  sql: SqlRunner,
  id: string,
  clusters: readonly string[] | null,
  node: string | null,
): Promise<FindingRow[]> {
  return sql.query((db) =>
    db
      .select()
      .from(findings)
      .where(
        and(
          eq(findings.finding_id, id),
          oneOf(findings.cluster, clusters),
          node === null ? undefined : eq(findings.node, node),
        ),
      )
      .orderBy(findings.detected_at, findings.cluster, findings.node)
      .limit(MAX_FINDINGS),
  );
}

export function readEvidence(
  sql: SqlRunner,
  { cluster, node, finding_id }: FindingRow,
): Promise<EvidenceLine[]> {
  const { line, at, until, fact, record } = findingEvidence;
  return sql.query((db) =>
    db
      .select({ line, at, until, fact, record })
      .from(findingEvidence)
      .where(
        and(
          eq(findingEvidence.cluster, cluster),
          eq(findingEvidence.node, node),
          eq(findingEvidence.finding_id, finding_id),
        ),
      )
      .orderBy(line, at)
      .limit(MAX_LINES),
  );
}

/** Why one of several findings must be chosen. */
export function severalNodes(found: readonly FindingRow[]): string {
  const nodes = found.map(({ cluster, node }) => `${node} of cluster ${cluster}`).join(', ');
  return `Several nodes have a finding with this id: ${nodes}.`;
}
