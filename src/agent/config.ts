/*
 * The agent's settings.
 */

import { isIP } from 'node:net';
import * as v from 'valibot';
import { CLUSTER, HTTP_ADDRESS, internalInterval, logLevelFrom } from '../platform/commonSettings.ts';
import { PlegwatchError } from '../platform/errors.ts';
import {
  BadValue,
  bytes,
  type ConfigOf,
  duration,
  internal,
  list,
  matching,
  oneOf,
  optional,
  required,
  string,
  withDefault,
} from '../platform/settings.ts';
import { NodeName } from '../protocol/batch.ts';
import { REDIS_RETRY_INTERVAL, REDIS_SETTINGS } from '../redis/settings.ts';

const DAY_MS = 86_400_000;

const socketPath = (raw: string): string => {
  const path = raw.startsWith('unix://') ? raw.slice('unix://'.length) : raw;
  if (!path.startsWith('/') || path.length > 107) {
    throw new BadValue('must be unix:// and an absolute path of at most 107 characters');
  }
  return path;
};

/** Null: it is switched off. */
const podsApiSocket = (raw: string): string | null => (raw === 'off' ? null : socketPath(raw));

const nodeName = (raw: string): string => {
  if (!v.is(NodeName, raw))
    throw new BadValue('must be the name of a Kubernetes node: lower case letters, digits, - and .');
  return raw;
};

const HOST_NAME = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]*[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;

/** A node may be named by its address, so that is a name too. */
const hostName = (raw: string): string => {
  if (isIP(raw) === 0 && !HOST_NAME.test(raw))
    throw new BadValue('must be a host name such as node-1 or node-1.example.com, or an IP address');
  return raw;
};

const ipAddress = (raw: string): string => {
  if (isIP(raw) === 0) throw new BadValue('must be an IP address');
  return raw;
};

/** Settings that only tests of a whole system set, by variable: see test/torture/README.md. */
const AGENT_INTERNALS = {
  intervalAckGeneration: internalInterval(
    '15m',
    'how often a new ack generation asks again for every acknowledgement',
  ),
  intervalRetiredEpochs: internalInterval('1h', 'how often it asks about epochs that have no record left'),
  intervalResend: internalInterval('10s', 'how long an answer is waited for before the first re-send'),
  intervalIdle: internalInterval('1m', 'how often the shipper looks for work while there is none'),
  intervalSpoolSweep: internalInterval(
    '30s',
    'how often acknowledged segments past their retention are deleted',
  ),
  intervalEpoch: internal(
    withDefault(
      'duration',
      '2160h',
      'the age at which an epoch is full and the next one starts',
      duration(1_000, 90 * DAY_MS),
    ),
  ),
  intervalHandOver: internalInterval('3s', 'how long an agent that ends tries to deliver what it has'),
  intervalRedisRetry: REDIS_RETRY_INTERVAL,
  intervalScrape: internalInterval('10s', 'how often the metrics of the kubelet are scraped'),
  intervalModeConfirmed: internalInterval('2m', 'how long a mode is known without a scrape that confirms it'),
  intervalReaderSilence: internalInterval('2s', 'the reader is killed after so long without a heartbeat'),
  auditFile: internal(
    optional('file', 'file that every record is appended to before the spool gets it', string),
  ),
} as const;

export const AGENT_SETTINGS = {
  cluster: CLUSTER,
  node: required('name', 'name of this node', nodeName),
  ...REDIS_SETTINGS,
  criEndpoint: withDefault(
    'endpoint',
    'unix:///run/containerd/containerd.sock',
    'socket of the container runtime',
    socketPath,
  ),
  subscribe: withDefault(
    'when',
    'auto',
    "subscribe to the runtime's events: auto (if safe for the node), always or never",
    oneOf('auto', 'always', 'never'),
  ),
  relistPeriod: withDefault(
    'duration',
    '5s',
    'time between relists; longer where lists would take over a hundredth of it',
    duration(200, 60_000),
  ),
  overdueAfter: withDefault(
    'duration',
    '2s',
    'an event that has not come this long after it was proven due is overdue, and its exact time is queried',
    duration(100, 60_000),
  ),
  missedAfter: withDefault(
    'duration',
    '30s',
    'an event that has not come this long after it was proven due is missed',
    duration(500, 600_000),
  ),
  lateAfter: withDefault(
    'duration',
    '1s',
    'an event that comes later than this after its true time is late',
    duration(1, 600_000),
  ),
  kubeletUrl: optional(
    'url',
    "kubelet's https URL; without it the mode stays Unknown",
    matching(/^https?:\/\/\S+$/, 'an https URL'),
  ),
  kubeletTokenFile: optional('file', 'file with the bearer token for the kubelet', string),
  kubeletIdentity: withDefault(
    'how',
    'auto',
    'read metrics if the certificate is verified (strict), also if it cannot be but the address is of this node (auto), or always (skip)',
    oneOf('auto', 'strict', 'skip'),
  ),
  kubeletCaFile: optional(
    'files',
    "CA of the kubelet's certificate, comma-separated; missing files are ignored",
    list(string),
  ),
  kubeletServerName: optional(
    'name',
    "name or address in the kubelet's certificate; without it, the URL's host or the node's name",
    hostName,
  ),
  podsApi: withDefault(
    'endpoint',
    'unix:///var/lib/kubelet/pods-api/pods-api.sock',
    "socket of the kubelet's PodsAPI (Kubernetes 1.37), which may be missing; or off",
    podsApiSocket,
  ),
  kubeletLateAfter: withDefault(
    'duration',
    '10s',
    'a kubelet is late if its own status does not show a start or stop this long after it was proven',
    duration(2_000, 600_000),
  ),
  hostIp: optional(
    'addresses',
    'further addresses of this node that the agent cannot see, comma-separated',
    list(ipAddress),
  ),
  spoolDir: withDefault(
    'dir',
    '/var/lib/plegwatch',
    'folder of the spool',
    matching(/^\//, 'an absolute path'),
  ),
  spoolMaxBytes: withDefault('size', '256MiB', 'maximum size of the spool', bytes(4 * 1024 ** 2, 1024 ** 4)),
  spoolFsync: withDefault(
    'duration',
    '1s',
    'interval between fsyncs of the spool; 0: after every write',
    duration(0, 60_000),
  ),
  spoolRetention: withDefault(
    'duration',
    '24h',
    'time that acknowledged evidence stays in the spool',
    duration(0, 30 * DAY_MS),
  ),
  spoolFallback: withDefault(
    'what',
    'refuse',
    'if the spool cannot be used: refuse to start, or keep evidence in memory until the next restart',
    oneOf('refuse', 'memory'),
  ),
  identityTokenFile: optional(
    'file',
    'file with a token of this pod for the audience plegwatch/<cluster>, to enrol a key and sign batches; needs --controller-keys-file',
    string,
  ),
  controllerKeysFile: optional(
    'file',
    "file with the controller's public keys, to believe only acknowledgements that it signed",
    string,
  ),
  httpAddress: HTTP_ADDRESS,
  logLevel: logLevelFrom('info'),
  ...AGENT_INTERNALS,
} as const;

export type AgentInternals = ConfigOf<typeof AGENT_INTERNALS>;
export type AgentConfig = ConfigOf<typeof AGENT_SETTINGS>;

/** Checks settings against each other. Throws SETTING_INVALID. */
export function checkCombination({
  overdueAfter,
  missedAfter,
  identityTokenFile,
  controllerKeysFile,
}: Pick<AgentConfig, 'overdueAfter' | 'missedAfter'> &
  Partial<Pick<AgentConfig, 'identityTokenFile' | 'controllerKeysFile'>>): void {
  if (identityTokenFile !== undefined && controllerKeysFile === undefined) {
    throw new PlegwatchError(
      'SETTING_INVALID',
      '--identity-token-file (PLEGWATCH_IDENTITY_TOKEN_FILE) needs --controller-keys-file (PLEGWATCH_CONTROLLER_KEYS_FILE): the token is only shown to the controller',
      'Set --controller-keys-file too, or leave out --identity-token-file.',
    );
  }
  if (missedAfter > overdueAfter) return;
  throw new PlegwatchError(
    'SETTING_INVALID',
    '--missed-after (PLEGWATCH_MISSED_AFTER) must be longer than --overdue-after (PLEGWATCH_OVERDUE_AFTER): exact times are queried in between',
    'Raise --missed-after, or lower --overdue-after.',
  );
}
