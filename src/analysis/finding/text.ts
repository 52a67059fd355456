/*
 * A finding for a terminal.
 */
import { printable } from '../../platform/printable.ts';
import { checksOf } from './checks.ts';
import type { Finding, FindingRow } from './finding.ts';
import {
  containerNameOf,
  kubeletOf,
  lagOf,
  meaningOf,
  periodOf,
  provenBy,
  rulesOf,
  sectionsOf,
  timesOf,
  titleOf,
} from './sentences.ts';

export function findingText({ finding, evidence }: Finding): string {
  const facts = subjectOf(finding).map(([name, value]) => `  ${name.padEnd(10)}${printable(value)}`);
  const sections = sectionsOf(evidence).flatMap(({ title, lines }) => [
    '',
    title,
    ...lines.flatMap((line) => [
      `  ${periodOf(line)}`,
      `      ${printable(line.fact)}`,
      ...(line.record === null ? [] : [`      [${printable(line.record)}]`]),
    ]),
  ]);
  const kubelet = kubeletOf(finding);
  const lines = [
    `${titleOf(finding)}   ${finding.finding_id}`,
    '',
    ...facts,
    '',
    [meaningOf(finding), provenBy(finding)].filter((text) => text !== '').join(' '),
    timesOf(finding),
    ...sections,
    ...(kubelet === '' ? [] : ['', 'What it says of the kubelet', `  ${kubelet}`]),
    '',
    'How far the published status was behind',
    `  ${lagOf(finding)}`,
    '',
    'Check it',
    ...checksOf(finding).map((check) => `  ${check}`),
  ];
  return `${lines.map(printable).join('\n')}\n`.replaceAll('\n  \n', '\n');
}

function subjectOf(finding: FindingRow): [string, string][] {
  const { container_id, pod_uid, runtime_name, runtime_version, kubelet_version } = finding;
  const pod = [finding.pod_namespace, finding.pod_name].filter((part) => part !== null).join('/');
  const facts: [string, string | null][] = [
    ['node', `${finding.node}, cluster ${finding.cluster}`],
    ['pod', pod === '' ? null : `${pod}${pod_uid === null ? '' : `, UID ${pod_uid}`}`],
    ['container', container_id === null ? null : `${containerNameOf(finding)} ${container_id}`],
    ['runtime', [runtime_name, runtime_version].filter(Boolean).join(' ')],
    ['its rules', rulesOf(finding)],
    ['kubelet', `${kubelet_version ?? 'unknown version'}, mode ${finding.mode}`],
    ['cause', finding.cause],
  ];
  return facts.flatMap(([name, value]) => (value === null || value === '' ? [] : [[name, value]]));
}
