/*
 * A finding with what it rests on, as the views have it. Times are in UTC, to the microsecond. Nobody has checked its texts.
 */
import { and, desc, eq, lte } from 'drizzle-orm';
import { oneOf } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { findingEvidence, findings, nodeInfo } from '../../store/schema/views.ts';

export interface Finding {
  readonly finding: FindingRow;
  readonly evidence: readonly EvidenceLine[];
  /** The Node's own system information of then; undefined if no controller had seen it yet. */
  readonly system: System | undefined;
}
export type FindingRow = Readonly<typeof findings.$inferSelect>;
export type EvidenceLine = Readonly<
  Pick<typeof findingEvidence.$inferSelect, 'line' | 'at' | 'until' | 'fact' | 'record'>
>;
type System = Readonly<Pick<typeof nodeInfo.$inferSelect, 'os_image' | 'kernel_version'>>;

const MAX_FINDINGS = 100;
const MAX_LINES = 1_000;

/** The findings of an id: one, unless a node used the id of another one. */
export interface FoundFinding {
  readonly found: readonly FindingRow[];
  readonly only: Finding | undefined;
}

/** The finding that several databases found together; undefined if there is none. Throws what `several` makes of more than one. */
export function onlyFinding(
  parts: readonly FoundFinding[],
  several: (sentence: string) => Error,
): Finding | undefined {
  const found = parts.flatMap((part) => part.found);
  if (found.length > 1) throw several(severalNodes(found));
  return parts.find(({ only }) => only !== undefined)?.only;
}

type AskedFindings = [id: string, clusters: readonly string[] | null, node: string | undefined];

/** `clusters`: null for all. `name` is that of a node. */
function readFindings(sql: SqlRunner, ...[id, clusters, name]: AskedFindings): Promise<FindingRow[]> {
  const { finding_id, cluster, node, detected_at } = findings;
  const ofNode = name === undefined ? undefined : eq(node, name);
  return sql.query((db) =>
    db
      .select()
      .from(findings)
      .where(and(eq(finding_id, id), oneOf(cluster, clusters), ofNode))
      .orderBy(detected_at, cluster, node)
      .limit(MAX_FINDINGS),
  );
}

/** The findings of this id, and the only one with what it rests on. Parameters as those of {@link readFindings}. */
export async function readFinding(sql: SqlRunner, ...asked: AskedFindings): Promise<FoundFinding> {
  const found = await readFindings(sql, ...asked);
  const [finding, another] = found;
  if (finding === undefined || another !== undefined) return { found, only: undefined };
  const [evidence, system] = [await readEvidence(sql, finding), await readSystem(sql, finding)];
  return { found, only: { finding, evidence, system } };
}

async function readSystem(sql: SqlRunner, finding: FindingRow): Promise<System | undefined> {
  const { cluster, node, os_image, kernel_version, from_at } = nodeInfo;
  const ofNode = and(eq(cluster, finding.cluster), eq(node, finding.node));
  const [system] = await sql.query((db) =>
    db
      .select({ os_image, kernel_version })
      .from(nodeInfo)
      .where(and(ofNode, lte(from_at, finding.detected_at)))
      .orderBy(desc(from_at))
      .limit(1),
  );
  return system;
}

function readEvidence(sql: SqlRunner, finding: FindingRow): Promise<EvidenceLine[]> {
  const { cluster, node, finding_id, line, at, until, fact, record } = findingEvidence;
  const ofNode = and(eq(cluster, finding.cluster), eq(node, finding.node));
  return sql.query((db) =>
    db
      .select({ line, at, until, fact, record })
      .from(findingEvidence)
      .where(and(ofNode, eq(finding_id, finding.finding_id)))
      .orderBy(line, at)
      .limit(MAX_LINES),
  );
}

/** Why one of several findings must be chosen. */
function severalNodes(found: readonly FindingRow[]): string {
  const nodes = found.map(({ cluster, node }) => `${node} of cluster ${cluster}`).join(', ');
  return `Several nodes have a finding with this id: ${nodes}.`;
}
