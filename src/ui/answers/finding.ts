/*
 * GET /api/finding: everything about one finding, as `plegwatch finding` prints it.
 */
import { checksOf } from '../../analysis/finding/checks.ts';
import { type Finding, type FindingRow, onlyFinding, readFinding } from '../../analysis/finding/finding.ts';
import { findingMarkdown } from '../../analysis/finding/markdown.ts';
import {
  kubeletOf,
  lagOf,
  meaningOf,
  provenBy,
  rulesOf,
  sectionsOf,
  timesOf,
  titleOf,
} from '../../analysis/finding/sentences.ts';
import { notFound } from '../../store/notFound.ts';
import type { FindingAnswer } from '../api.ts';
import { idIn, nameIn, parametersOf } from '../parameters.ts';
import { RequestError } from '../requestError.ts';
import { partOf, type Reader, readEach } from './reader.ts';

/** How much of the timeline is shown before and after a finding. */
const AROUND_MS = 120_000;

export async function findingAnswer(reader: Reader, query: URLSearchParams): Promise<FindingAnswer> {
  const parameters = parametersOf(query, ['id', 'cluster', 'node']);
  const id = idIn(parameters, 'id');
  const [cluster, node] = [nameIn(parameters, 'cluster'), nameIn(parameters, 'node')];
  const ofCluster = cluster === undefined ? reader : await partOf(reader, cluster);
  const clusters = cluster === undefined ? reader.clusters : shownOf(reader, cluster);
  const parts = await readEach(ofCluster, (sql) => readFinding(sql, id, clusters, node));
  const only = onlyFinding(
    parts,
    (sentence) => new RequestError('AMBIGUOUS', sentence, 'Choose one with cluster and node.'),
  );
  if (only !== undefined) return answerOf(only);
  const { message } = notFound('finding', id, []);
  throw new RequestError('NOT_FOUND', message, 'Findings are deleted after finding_retention_days.');
}

const shownOf = ({ clusters }: Reader, cluster: string): readonly string[] =>
  clusters === null || clusters.includes(cluster) ? [cluster] : [];

function answerOf(read: Finding): FindingAnswer {
  const { finding, evidence } = read;
  return {
    id: finding.finding_id,
    cluster: finding.cluster,
    node: finding.node,
    kind: finding.kind,
    eventType: finding.event_type,
    cause: finding.cause,
    container: containerOfFinding(finding),
    from: finding.window_from,
    to: finding.window_to,
    occurredAt: finding.occurred_at,
    detectedAt: finding.detected_at,
    resolvedAt: finding.resolved_at,
    latenessMs: finding.lateness_ms,
    deliveryMs: finding.delivery_ms,
    lagMinMs: finding.lag_min_ms,
    lagMaxMs: finding.lag_max_ms,
    lagAnomalous: finding.lag_anomalous,
    mode: finding.mode,
    runtimeName: finding.runtime_name,
    runtimeVersion: finding.runtime_version,
    kubeletVersion: finding.kubelet_version,
    title: titleOf(finding),
    meaning: meaningOf(finding),
    provenBy: provenBy(finding),
    times: timesOf(finding),
    saysOfKubelet: kubeletOf(finding),
    runtimeRules: rulesOf(finding),
    statusLag: lagOf(finding),
    evidence: sectionsOf(evidence).map(({ title, lines }) => ({
      title,
      lines: lines.map(({ at, until, fact, record }) => ({ at, until, fact, record })),
    })),
    around: aroundOf(finding),
    checks: checksOf(finding),
    issue: { withoutNames: findingMarkdown(read, false), withNames: findingMarkdown(read, true) },
  };
}

function containerOfFinding(finding: FindingRow): FindingAnswer['container'] {
  const { container_id: id, container_name: name, is_sandbox, pod_uid, pod_namespace, pod_name } = finding;
  if (id === null) return null;
  return {
    ...{ id, isSandbox: is_sandbox === true, name },
    ...{ podUid: pod_uid, podNamespace: pod_namespace, podName: pod_name },
  };
}

/** From before it can have happened until after it was due. */
function aroundOf({ window_from, occurred_at, detected_at }: FindingRow): FindingAnswer['around'] {
  const times = [window_from, occurred_at, detected_at].flatMap((at) =>
    at === null ? [] : [Date.parse(at)],
  );
  const shifted = (at: number, by: number) => new Date(at + by).toISOString();
  return { from: shifted(Math.min(...times), -AROUND_MS), to: shifted(Math.max(...times), AROUND_MS) };
}
