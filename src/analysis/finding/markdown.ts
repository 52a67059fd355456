/*
 * A finding as an issue for the developers of the runtime, who know neither plegwatch nor this cluster. Names of cluster, node, pod and
 * container are left out unless they are asked for. Texts from the node are code, so that they neither format, link nor mention anybody.
 */
import * as v from 'valibot';
import { printable } from '../../platform/printable.ts';
import { auditCommand, evidenceQuery, logCommand } from './checks.ts';
import type { EvidenceLine, Finding, FindingRow } from './finding.ts';
import {
  containerNameOf,
  kubeletOf,
  lagOf,
  meaningOf,
  periodOf,
  provenBy,
  rulesOf,
  timesOf,
  titleOf,
} from './sentences.ts';

export function findingMarkdown({ finding, evidence, system }: Finding, withNames: boolean): string {
  const { runtime_name, runtime_version, kubelet_version, container_id, mode } = finding;
  const runtime = [runtime_name, runtime_version].filter(Boolean).join(' ') || 'unknown runtime';
  const log = logCommand(finding);
  const kubelet = kubeletOf(finding);
  const lines = [
    `# ${titleOf(finding)}: ${code(runtime)}`,
    '',
    `${meaningOf(finding)} ${timesOf(finding)}`,
    '',
    '| | |',
    '| --- | --- |',
    row('runtime', code(runtime)),
    row('rules for this runtime', code(rulesOf(finding))),
    row('kubelet', `${code(kubelet_version ?? 'unknown')}, PLEG mode ${code(mode)}`),
    row('operating system', code(system?.os_image ?? 'unknown')),
    row('kernel', code(system?.kernel_version ?? 'unknown')),
    row('event', code(finding.event_type ?? 'none')),
    row('container or sandbox', code(container_id ?? 'the stream as a whole')),
    row('what proves it', `${code(finding.cause ?? '')} ${provenBy(finding)}`.trim()),
    ...exitOf(finding),
    ...(withNames ? namesOf(finding) : []),
    '',
    '## How it was observed',
    '',
    ...(finding.kind === 'kubelet_late' ? OF_STATUS : OF_EVENTS),
    ...(kubelet === '' ? [] : ['', kubelet]),
    '',
    '## What was observed, in order of time',
    '',
    '| time | fact |',
    '| --- | --- |',
    ...inOrderOfTime(evidence).map((line) => row(periodOf(line), code(line.fact))),
    '',
    '## Effect in the cluster',
    '',
    lagOfMarkdown(finding),
    '',
    '## Check it',
    '',
    ...(log === undefined
      ? []
      : [`What the ${accusedOf(finding)} logged of it, on its node:`, '', fenced(log), '']),
    ...(withNames
      ? [
          'Where the evidence is stored:',
          '',
          fenced(`${auditCommand(finding)}\n${evidenceQuery(finding)}`),
          '',
        ]
      : []),
    `Reported by plegwatch, finding ${finding.finding_id}.`,
  ];
  return `${lines.join('\n')}\n`;
}

const OF_EVENTS = [
  'An agent on the node subscribes to `GetContainerEvents` beside the kubelet, and lists pods and containers with `ListPodSandbox` and',
  '`ListContainers`. It compares both: a change that a list, a later event or an exact time of the status proves, and whose event did not',
  'come in time, is a finding. It is about this subscription. All times are UTC of the same clock.',
];
const OF_STATUS = [
  "An agent on the node watches the kubelet's own status of its pods (`WatchPods` of its PodsAPI) and lists containers with `ListContainers`. For",
  'a change that a list or an exact time of the status of the runtime proves, and that the watch did not bring in time, it asks the kubelet for the',
  'pod (`GetPod`): an answer that does not show the change is a finding. All times are UTC of the same clock.',
];

const accusedOf = ({ kind }: FindingRow): string => (kind === 'kubelet_late' ? 'kubelet' : 'runtime');

/** The reason of an unknown lag is a text of the store, not of a node. */
const lagOfMarkdown = (finding: FindingRow): string =>
  `For how long the pod's published status was behind: ${lagOf({ ...finding, lag_reason: null })}`;

/** Those without a time, such as limits, are last. */
const inOrderOfTime = (evidence: readonly EvidenceLine[]): EvidenceLine[] =>
  evidence.toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : timeOf(a) > timeOf(b) ? 1 : a.line - b.line));

/** As a text, which has the microseconds. */
const timeOf = ({ at }: EvidenceLine): string => at ?? 'none';

const ProofOfExit = v.object({
  exactTimes: v.object({
    finishedNs: v.pipe(v.string(), v.regex(/^[1-9]\d*$/)),
    exitCode: v.pipe(v.number(), v.integer()),
    reason: v.optional(v.string(), ''),
  }),
});

/** How the container ended, where its status said so. */
function exitOf({ proof }: FindingRow): string[] {
  const { success, output } = v.safeParse(ProofOfExit, proof);
  if (!success) return [];
  return [row('exit code', code(`${output.exactTimes.exitCode} ${output.exactTimes.reason}`))];
}

function namesOf(finding: FindingRow): string[] {
  const pod = [finding.pod_namespace, finding.pod_name].filter((part) => part !== null).join('/');
  return [
    row('cluster, node', `${code(finding.cluster)}, ${code(finding.node)}`),
    row('pod', code(pod)),
    row('container', code(containerNameOf(finding))),
  ];
}

const row = (name: string, value: string): string => `| ${name} | ${value} |`;

/** Inline code of any text, also within a table. */
function code(text: string): string {
  const shown = printable(text).replaceAll('|', '\\|').trim();
  if (shown === '') return '';
  const fence = '`'.repeat(longestRun(shown) + 1);
  return /^`|`$/.test(shown) ? `${fence} ${shown} ${fence}` : `${fence}${shown}${fence}`;
}

function fenced(text: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1));
  return `${fence}sh\n${text.split('\n').map(printable).join('\n')}\n${fence}`;
}

const longestRun = (text: string): number =>
  Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
