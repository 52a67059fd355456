/*
 * The settings of the controller.
 */

import { CLUSTER, HTTP_ADDRESS, internalInterval, logLevelFrom } from '../platform/commonSettings.ts';
import { PlegwatchError } from '../platform/errors.ts';
import {
  BadValue,
  type ConfigOf,
  integer,
  list,
  matching,
  oneOf,
  optional,
  string,
  toggle,
  withDefault,
} from '../platform/settings.ts';
import { REDIS_RETRY_INTERVAL, REDIS_SETTINGS } from '../redis/settings.ts';
import { DATABASE_SETTINGS } from '../store/settings.ts';
import { DEFAULT_NODE_ROWS_PER_DAY } from './ingest/rowQuota.ts';
import { ATTRIBUTION_MODES } from './keys/attribution.ts';

const logLevel = logLevelFrom('info');

const LABEL_KEY =
  /^(?:(?=[^/]{1,253}\/)[a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
/** Each takes up to 380 of the 4,096 bytes of a report. */
const MAX_REPORT_LABELS = 8;
/** Each takes up to some hundred bytes of a row for every change of a Node. */
const MAX_NODE_LABELS = 16;
const NO_LABELS = 'none';
/** The pool, as the large providers and Karpenter name it, the zone and the type of the machine. */
const DEFAULT_NODE_LABELS = [
  'karpenter.sh/nodepool',
  'eks.amazonaws.com/nodegroup',
  'cloud.google.com/gke-nodepool',
  'kubernetes.azure.com/agentpool',
  'topology.kubernetes.io/zone',
  'node.kubernetes.io/instance-type',
];

/** A namespaced object of the API server. */
function namespacedName(raw: string): { readonly namespace: string; readonly name: string } {
  const [, namespace, name] = /^([a-z0-9][a-z0-9-]*)\/([a-z0-9][a-z0-9.-]*)$/.exec(raw) ?? [];
  if (namespace === undefined || name === undefined) throw new BadValue('must be namespace/name');
  return { namespace, name };
}

/** Its path gets `/v1/logs`. It is logged, so it has no credentials. */
function collectorUrl(raw: string): string {
  if (!/^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/.test(raw) || !URL.canParse(raw))
    throw new BadValue(
      'must be an http or https URL without credentials or query, such as http://collector:4318',
    );
  return raw;
}

const labelKeys =
  (max: number) =>
  (raw: string): readonly string[] => {
    const keys = list(matching(LABEL_KEY, 'keys of labels such as topology.kubernetes.io/zone'))(raw);
    if (keys.length > max) throw new BadValue(`must be at most ${max} keys`);
    return keys;
  };

/** Settings that only tests of a whole system set, by variable: see test/torture/README.md. */
export const INGEST_INTERVALS = {
  intervalFlow: internalInterval('10s', 'how often the flow settings are published'),
  intervalStoreWait: internalInterval(
    '15s',
    'how long a batch waits for Postgres or Redis before its job is delayed',
  ),
  intervalJobDelay: internalInterval('5s', 'how long a job is delayed after that'),
  intervalFaultDelay: internalInterval('30s', 'how long a job is delayed after a defect of ours'),
  intervalJobLock: internalInterval('10s', 'after this the job of a worker that died is taken by another'),
  intervalSweep: internalInterval(
    '1m',
    'how often inboxes of queues that the database does not have are removed',
  ),
  intervalRedisRetry: REDIS_RETRY_INTERVAL,
} as const;

export const CONTROLLER_SETTINGS = {
  cluster: CLUSTER,
  ...REDIS_SETTINGS,
  ...DATABASE_SETTINGS,
  kubeconfig: optional(
    'file',
    'kubeconfig of the API server; without it, the service account of the pod',
    string,
  ),
  lease: optional(
    'namespace/name',
    'Lease whose holder writes the reports; without it, this controller always does',
    namespacedName,
  ),
  noKube: toggle('run without an API server, so without PLEGReports, node conditions and status lag'),
  attribution: withDefault(
    'auto|accept|require',
    'auto',
    'require signatures; accept unsigned evidence, marked so, of nodes without a key; or auto: accept until every node has a key, then require',
    oneOf(...ATTRIBUTION_MODES),
  ),
  agentServiceAccount: optional(
    'namespace/name',
    "agents' service account, whose tokens enrol the keys of nodes; needs --key-secret",
    namespacedName,
  ),
  keySecret: optional(
    'namespace/name',
    "Secret for the controller's keys; agents read the public ones in the ConfigMap of that name in their namespace",
    namespacedName,
  ),
  reportLabels: optional(
    'keys',
    'labels of Nodes to copy to their reports, comma-separated, at most 8',
    labelKeys(MAX_REPORT_LABELS),
  ),
  nodeLabels: withDefault(
    'keys',
    DEFAULT_NODE_LABELS.join(','),
    `labels of Nodes whose history is stored, comma-separated, at most ${MAX_NODE_LABELS}, or ${NO_LABELS}`,
    (raw) => (raw === NO_LABELS ? [] : labelKeys(MAX_NODE_LABELS)(raw)),
  ),
  statusLag: withDefault(
    'on|off',
    'on',
    'measure how far the status of pods lags behind events; needs the right to get pods',
    oneOf('on', 'off'),
  ),
  statusLagReadsPerSecond: withDefault(
    'number',
    '10',
    'maximum pods read per second in the cluster',
    integer(1, 1000),
  ),
  nodeConditions: withDefault(
    'on|off',
    'off',
    'publish verdicts as conditions of Nodes; needs the right to patch nodes/status',
    oneOf('on', 'off'),
  ),
  podEvents: withDefault(
    'on|off',
    'off',
    'write an Event on a pod when the end of its container was not announced, or the kubelet showed it late',
    oneOf('on', 'off'),
  ),
  otlpEndpoint: optional(
    'url',
    'collector of OpenTelemetry, to which findings, mode changes and verdicts are sent as logs, by OTLP over HTTP; headers and certificates by OTEL_EXPORTER_OTLP_ variables',
    collectorUrl,
  ),
  nodeRowsPerDay: withDefault(
    'number',
    `${DEFAULT_NODE_ROWS_PER_DAY}`,
    'maximum rows stored of one node in a UTC day; further ones are counted in a gap',
    integer(1_000, 1_000_000_000),
  ),
  databaseMaxConnections: withDefault(
    'number',
    '4',
    'maximum connections to Postgres; idle ones are closed after 30 s',
    integer(2, 100),
  ),
  httpAddress: HTTP_ADDRESS,
  logLevel,
  ...INGEST_INTERVALS,
  intervalStart: internalInterval(
    '11m',
    'how long a controller that starts waits for Postgres and Redis before it ends',
  ),
  intervalSilence: internalInterval(
    '3m',
    'an agent that is not known to have run for longer than this is silent',
  ),
} as const;

export type IngestIntervals = ConfigOf<typeof INGEST_INTERVALS>;
export type ControllerConfig = ConfigOf<typeof CONTROLLER_SETTINGS>;

const ATTRIBUTION = '--attribution require (PLEGWATCH_ATTRIBUTION)';
const ACCOUNT = '--agent-service-account (PLEGWATCH_AGENT_SERVICE_ACCOUNT)';
const KEY_SECRET = '--key-secret (PLEGWATCH_KEY_SECRET)';

/** Checks settings against each other. Throws SETTING_INVALID. */
export function checkCombination({
  attribution,
  agentServiceAccount,
  keySecret,
  lease,
  noKube,
  nodeConditions,
  otlpEndpoint,
}: Pick<
  ControllerConfig,
  'attribution' | 'agentServiceAccount' | 'keySecret' | 'lease' | 'noKube' | 'nodeConditions' | 'otlpEndpoint'
>): void {
  if (lease !== undefined && noKube) {
    const error =
      '--lease (PLEGWATCH_LEASE) needs the API server, which --no-kube (PLEGWATCH_NO_KUBE) leaves out.';
    throw new PlegwatchError('SETTING_INVALID', error, 'Leave out one of them.');
  }
  if (nodeConditions === 'on' && noKube) {
    const error =
      '--node-conditions on (PLEGWATCH_NODE_CONDITIONS) needs the API server, which --no-kube (PLEGWATCH_NO_KUBE) leaves out.';
    throw new PlegwatchError('SETTING_INVALID', error, 'Leave out one of them.');
  }
  if (otlpEndpoint !== undefined && noKube) {
    const error =
      '--otlp-endpoint (PLEGWATCH_OTLP_ENDPOINT) needs a leader, which --no-kube (PLEGWATCH_NO_KUBE) leaves out.';
    throw new PlegwatchError('SETTING_INVALID', error, 'Leave out one of them.');
  }
  if ((agentServiceAccount === undefined) !== (keySecret === undefined)) {
    const cure = 'Set both, or neither.';
    throw new PlegwatchError('SETTING_INVALID', `${ACCOUNT} and ${KEY_SECRET} need each other.`, cure);
  }
  if (keySecret !== undefined && noKube) {
    const error = `${KEY_SECRET} needs the API server, which --no-kube (PLEGWATCH_NO_KUBE) leaves out.`;
    throw new PlegwatchError(
      'SETTING_INVALID',
      error,
      `Leave out --no-kube, or ${ACCOUNT} and --key-secret.`,
    );
  }
  if (attribution === 'require' && keySecret === undefined) {
    const error = `${ATTRIBUTION} needs ${ACCOUNT} and ${KEY_SECRET}: no agent could enrol, and all evidence would be refused.`;
    throw new PlegwatchError('SETTING_INVALID', error, 'Set both, or leave out --attribution.');
  }
}
