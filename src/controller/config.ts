/*
 * The settings of the controller, and of the commands that share its database.
 */

import { CLUSTER, HTTP_ADDRESS, logLevelFrom, REDIS_URL } from '../platform/commonSettings.ts';
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
import { INGEST_INTERVALS, REPORT_INTERVALS } from './internalSettings.ts';

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
  ...REPORT_INTERVALS,
} as const;

export type ControllerConfig = ConfigOf<typeof CONTROLLER_SETTINGS>;

export const MIGRATE_SETTINGS = {
  databaseUrl: database,
  queues: withDefault('number', '16', 'number of queues that the agents are spread over', integer(1, 1024)),
  logLevel,
} as const;

export const MAINTAIN_SETTINGS = { databaseUrl: database, logLevel } as const;

export const REPORT_OUTPUTS = ['table', 'wide', 'json'] as const;

export const REPORT_SETTINGS = {
  cluster: CLUSTER,
  databaseUrl: database,
  output: withShort('o', withDefault('format', 'table', 'table, wide or json', oneOf(...REPORT_OUTPUTS))),
  logLevel: logLevelFrom('error'),
} as const;
