/*
 * The settings of the controller, and of the commands that share its database.
 */

import {
  CLUSTER,
  HTTP_ADDRESS,
  internalInterval,
  logLevelFrom,
  REDIS_RETRY_INTERVAL,
  REDIS_URL,
} from '../platform/commonSettings.ts';
import {
  BadValue,
  type ConfigOf,
  integer,
  oneOf,
  optional,
  required,
  secret,
  string,
  toggle,
  withDefault,
  withShort,
} from '../platform/settings.ts';

const databaseUrl = (raw: string): string => {
  if (!/^postgres(ql)?:\/\//.test(raw) || !URL.canParse(raw)) {
    throw new BadValue('must be a URL such as postgres://user:password@host:5432/database');
  }
  return raw;
};

const database = secret(
  required('url', 'Postgres 15 or later, postgres://user:password@host:port/database', databaseUrl),
);
const logLevel = logLevelFrom('info');

/** Settings that only tests of a whole system set: test/torture/README.md lists them. */
export const INGEST_INTERVALS = {
  intervalFlow: internalInterval('10s', 'how often the flow settings are published'),
  intervalStoreWait: internalInterval(
    '15s',
    'how long a batch waits for Postgres or Redis before its job is delayed',
  ),
  intervalJobDelay: internalInterval('5s', 'how long a job is delayed after that'),
  intervalFaultDelay: internalInterval('30s', 'how long a job is delayed after a defect of ours'),
  intervalJobLock: internalInterval('10s', 'after this the job of a worker that died is taken by another'),
  intervalRedisRetry: REDIS_RETRY_INTERVAL,
} as const;

export const CONTROLLER_SETTINGS = {
  cluster: CLUSTER,
  redisUrl: REDIS_URL,
  databaseUrl: database,
  kubeconfig: optional('file', 'how to reach the API server; default in a pod: its service account', string),
  noKube: toggle('run without an API server: no PLEGReports, no node conditions, no status lag'),
  statusLag: withDefault(
    'on|off',
    'on',
    'measure how far the status of pods lags behind missed events; needs permission to get pods',
    oneOf('on', 'off'),
  ),
  statusLagReadsPerSecond: withDefault(
    'number',
    '10',
    'maximum pods read per second, for the whole cluster',
    integer(1, 1000),
  ),
  httpAddress: HTTP_ADDRESS,
  logLevel,
  ...INGEST_INTERVALS,
  intervalSilence: internalInterval(
    '3m',
    'an agent of which nothing was stored for longer than this is silent',
  ),
} as const;

export type IngestIntervals = ConfigOf<typeof INGEST_INTERVALS>;
export type ControllerConfig = ConfigOf<typeof CONTROLLER_SETTINGS>;

export const MIGRATE_SETTINGS = {
  databaseUrl: database,
  queues: withDefault('number', '16', 'number of queues that the agents are spread over', integer(1, 1024)),
  logLevel,
} as const;

export const MAINTAIN_SETTINGS = { databaseUrl: database, logLevel } as const;

export const REPORT_OUTPUTS = ['table', 'wide', 'json'] as const;

/** A time such as 2026-11-22T07:00:00Z. */
const time = (raw: string): Date => {
  const at = new Date(raw);
  if (Number.isNaN(at.getTime())) throw new BadValue('must be a time such as 2026-11-22T07:00:00Z');
  return at;
};

export const AUDIT_SETTINGS = {
  cluster: CLUSTER,
  databaseUrl: database,
  node: optional('name', 'only this node', string),
  from: optional('time', 'only what was found since then', time),
  to: optional('time', 'only what was found until then', time),
  logLevel: logLevelFrom('error'),
} as const;

export const REPORT_SETTINGS = {
  cluster: CLUSTER,
  databaseUrl: database,
  output: withShort('o', withDefault('format', 'table', 'table, wide or json', oneOf(...REPORT_OUTPUTS))),
  logLevel: logLevelFrom('error'),
} as const;
