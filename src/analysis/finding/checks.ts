/*
 * The commands with which somebody else checks a finding: the audit, the rows behind it, and the log of the program that it is about.
 */
import { quoted } from '../words.ts';
import type { FindingRow } from './finding.ts';

/** In a pod a command is run by the plugin of kubectl: whoever copies one that is printed is elsewhere. */
export const PLEGWATCH =
  process.env['KUBERNETES_SERVICE_HOST'] === undefined ? 'plegwatch' : 'kubectl plegwatch';

const UNITS: Readonly<Record<string, string>> = {
  containerd: 'containerd',
  'cri-o': 'crio',
  isulad: 'isulad',
};
/** The audit selects findings by when they were detected; the log is read from this long before the window. */
const AROUND_MS = 60_000;

/** All of them, for a terminal. */
export const checksOf = (finding: FindingRow): string[] =>
  [auditCommand(finding), `psql -c "${evidenceQuery(finding)}"`, logCommand(finding)].filter(
    (check) => check !== undefined,
  );

export function auditCommand({ cluster, node, detected_at }: FindingRow): string {
  const [from, to] = [around(detected_at, -AROUND_MS), around(detected_at, AROUND_MS)];
  return `${PLEGWATCH} audit --cluster ${quoted(cluster)} --node ${quoted(node)} --from ${from} --to ${to}`;
}

export const evidenceQuery = ({ finding_id }: FindingRow): string =>
  `SELECT * FROM plegwatch.finding_evidence WHERE finding_id = '${finding_id}' ORDER BY line, at;`;

/**
 * The command that prints what the runtime, or the kubelet if the finding is about it, logged of the container on the node; undefined for an unknown
 * runtime or an odd id.
 */
export function logCommand(finding: FindingRow): string | undefined {
  const { kind, runtime_name, container_id, window_from, detected_at } = finding;
  const unit = kind === 'kubelet_late' ? 'kubelet' : UNITS[runtime_name?.toLowerCase() ?? ''];
  if (unit === undefined || container_id === null || !/^[0-9a-f]+$/.test(container_id)) return undefined;
  const time = (at: string, ms: number) => `'${around(at, ms).slice(0, 19).replace('T', ' ')} UTC'`;
  const [since, until] = [time(window_from ?? detected_at, -AROUND_MS), time(detected_at, AROUND_MS)];
  return `journalctl -u ${unit} --since ${since} --until ${until} | grep ${container_id}`;
}

const around = (at: string, ms: number): string => new Date(Date.parse(at) + ms).toISOString();
