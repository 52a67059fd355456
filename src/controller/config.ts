/*
 * The settings of the controller, and of the commands that share its database.
 */
import * as v from 'valibot';
import { ClusterName } from '../evidence/batch.ts';
import { LOG_LEVELS } from '../log.ts';
import {
  BadValue,
  type ConfigOf,
  integer,
  listenAddress,
  oneOf,
  optional,
  redisUrl,
  required,
  secret,
  string,
  toggle,
  withDefault,
  withShort,
} from '../settings.ts';
import { REPORT_OUTPUTS } from './report/command.ts';

const clusterName = (raw: string): string => {
  if (!v.is(ClusterName, raw)) {
    throw new BadValue('must be lower case letters, digits, - and ., at most 63 characters');
  }
  return raw;
};

const databaseUrl = (raw: string): string => {
  if (!/^postgres(ql)?:\/\//.test(raw) || !URL.canParse(raw)) {
    throw new BadValue('must be a URL such as postgres://user:password@host:5432/database');
  }
  return raw;
};

const cluster = required('name', 'name of the cluster, the same for its agents and controllers', clusterName);
const database = secret(
  required('url', 'Postgres 15 or later, postgres://user:password@host:port/database', databaseUrl),
);
const logLevel = withDefault('level', 'info', `one of ${LOG_LEVELS.join(', ')}`, oneOf(...LOG_LEVELS));

export const CONTROLLER_SETTINGS = {
  cluster,
  redisUrl: secret(
    required('url', 'Redis that carries the evidence, redis://[:password@]host:port[/db]', redisUrl),
  ),
  databaseUrl: database,
  kubeconfig: optional('file', 'how to reach the API server; in a pod its service account is used', string),
  noKube: toggle('write no PLEGReports: without an API server'),
  httpAddress: withDefault('address', ':9465', 'address of /metrics, /livez and /readyz', listenAddress),
  logLevel,
} as const;

export type ControllerConfig = ConfigOf<typeof CONTROLLER_SETTINGS>;

export const MIGRATE_SETTINGS = {
  databaseUrl: database,
  cluster: optional('name', 'a cluster to make known, so that its rows can be granted', clusterName),
  lanes: withDefault('number', '16', 'how many queues the agents spread over', integer(1, 1024)),
  logLevel,
} as const;

export const MAINTAIN_SETTINGS = { databaseUrl: database, logLevel } as const;

export const REPORT_SETTINGS = {
  cluster,
  databaseUrl: database,
  output: withShort('o', withDefault('format', 'table', 'table, wide or json', oneOf(...REPORT_OUTPUTS))),
  logLevel: withDefault('level', 'error', `one of ${LOG_LEVELS.join(', ')}`, oneOf(...LOG_LEVELS)),
} as const;
