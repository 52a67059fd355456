/*
 * A finding, its resolution, a mode change or a verdict as a log record of OpenTelemetry: what the view `findings`, `mode_changes` or `pleg_verdicts`
 * says of it, with the names of the semantic conventions where they have one, and `plegwatch.` and the name of the column where not.
 */
import { type Attributes, type HrTime, SeverityNumber } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { wallNow } from '../../platform/clock.ts';
import { VERSION } from '../../platform/version.ts';
import type { Outgoing } from './statements.ts';

type Row = Readonly<Record<string, unknown>>;

const CONVENTIONS: Readonly<Record<string, string>> = {
  pod_uid: 'k8s.pod.uid',
  pod_namespace: 'k8s.namespace.name',
  pod_name: 'k8s.pod.name',
  container_name: 'k8s.container.name',
  container_id: 'container.id',
  runtime_name: 'container.runtime.name',
  runtime_version: 'container.runtime.version',
};
/** They are said of the resource. */
const OF_RESOURCE = ['cluster', 'node'];

/** The kinds of findings that accuse a runtime or a kubelet, and the modes without an event stream that once was there. */
const WARNS: readonly unknown[] = [
  'missed',
  'late',
  'kubelet_late',
  'silent_stream',
  'Fallback',
  'HintDisabled',
];

const SCOPE = { name: 'plegwatch', version: VERSION };

/** Null where the row was deleted since it was put into the outbox. */
export function logRecordOf({
  what,
  cluster_uid: clusterUid,
  at,
  record,
}: Outgoing): ReadableLogRecord | null {
  if (record === null || at === null) return null;
  const warns =
    what === 'pleg_verdict' ||
    (what !== 'finding_resolved' && WARNS.includes(record['kind'] ?? record['to_mode']));
  return {
    hrTime: hrTime(at),
    hrTimeObserved: hrTime(wallNow()),
    eventName: `plegwatch.${what}`,
    severityNumber: warns ? SeverityNumber.WARN : SeverityNumber.INFO,
    severityText: warns ? 'WARN' : 'INFO',
    body: sentenceOf(what, record),
    resource: resourceFromAttributes({
      'service.name': 'plegwatch',
      'k8s.cluster.name': text(record['cluster']),
      ...(clusterUid === null ? {} : { 'k8s.cluster.uid': clusterUid }),
      'k8s.node.name': text(record['node']),
    }),
    instrumentationScope: SCOPE,
    attributes: { 'log.record.uid': uidOf(what, record), ...attributesOf(record) },
    droppedAttributesCount: 0,
  };
}

/** The same whenever it is sent again. Only with its node: finding ids are an agent's word. */
const uidOf = (what: Outgoing['what'], record: Row): string =>
  [text(record['node']), ...keyOf(what, record)].join('/');

function keyOf(what: Outgoing['what'], record: Row): readonly string[] {
  switch (what) {
    case 'finding':
      return [text(record['finding_id'])];
    case 'finding_resolved':
      return [text(record['finding_id']), 'resolved'];
    case 'mode_change':
      return [text(record['epoch']), text(record['seq'])];
    case 'pleg_verdict':
      return [text(record['kind']), text(record['to_at'])];
  }
}

function attributesOf(record: Row): Attributes {
  const attributes: Attributes = {};
  for (const [column, value] of Object.entries(record)) {
    if (value === null || OF_RESOURCE.includes(column)) continue;
    const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    attributes[CONVENTIONS[column] ?? `plegwatch.${column}`] = isPlain ? value : JSON.stringify(value);
  }
  return attributes;
}

function sentenceOf(what: Outgoing['what'], record: Row): string {
  switch (what) {
    case 'finding':
      return sentenceOfFinding(record);
    case 'finding_resolved':
      // An event that came after all was not missed.
      return `${sentenceOfFinding({ ...record, kind: record['kind'] === 'missed' ? 'overdue' : record['kind'] })}: resolved`;
    case 'mode_change':
      return `PLEG mode ${text(record['from_mode'])} -> ${text(record['to_mode'])}${after(record['reason'])}`;
    case 'pleg_verdict':
      return `PLEG ${text(record['kind'])}: ${[record['verdict'], subjectOf(record)].filter(Boolean).join(' ')}${after(record['why'])}`;
  }
}

const sentenceOfFinding = (record: Row): string =>
  [record['kind'], record['event_type'], of(subjectOf(record))].filter(Boolean).join(' ');

/** The pod and the container that a record is about; empty if there is none. */
function subjectOf(record: Row): string {
  const pod = [record['pod_namespace'], record['pod_name']].filter(Boolean).join('/');
  return [pod || record['container_id'], record['container_name']].filter(Boolean).join(' ');
}

const of = (subject: string): string => (subject === '' ? '' : `of ${subject}`);

const after = (reason: unknown): string => (reason ? `: ${text(reason)}` : '');

const text = (value: unknown): string => (typeof value === 'string' ? value : String(value ?? ''));

const hrTime = (micros: number): HrTime => [Math.floor(micros / 1e6), (micros % 1e6) * 1000];
