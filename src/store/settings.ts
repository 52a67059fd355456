/*
 * The settings of every command that reads Postgres, and of those that keep it: migrate, maintain, repair.
 */
import { CLUSTER, logLevelFrom } from '../platform/commonSettings.ts';
import {
  duration,
  integer,
  oneOf,
  optional,
  required,
  requiredUnless,
  secret,
  string,
  withDefault,
} from '../platform/settings.ts';
import { MAX_QUEUES } from '../protocol/redisKeys.ts';
import { databaseUrl, POOL_MODES, SSL_MODES } from './databaseAccess.ts';

/** The files are read again before each connect. */
export const DATABASE_SETTINGS = {
  databaseUrl: secret(
    requiredUnless(
      'databaseSecretDir',
      'url',
      'Postgres 15 or later, postgres://user:password@host:port/database; sslmode, sslrootcert, sslcert and sslkey in it take precedence over the next settings',
      databaseUrl,
    ),
  ),
  databaseSecretDir: optional(
    'dir',
    'folder of a mounted Secret with a file uri or url, or with host, port, dbname, username and password, which take precedence over those of the URL',
    string,
  ),
  databaseSslmode: optional(
    'mode',
    `TLS as libpq means it: ${SSL_MODES.join(', ')}; default: prefer`,
    oneOf(...SSL_MODES),
  ),
  databaseCaFile: optional(
    'file',
    "file with the CA of Postgres's certificate, or system for the CAs of the system",
    string,
  ),
  databaseCertFile: optional('file', 'file with the client certificate for Postgres', string),
  databaseKeyFile: optional('file', 'file with the key of that certificate', string),
  databasePoolMode: withDefault(
    'mode',
    'session',
    'transaction: Postgres is behind a pooler such as PgBouncer with pool_mode = transaction, so nothing is kept in a session',
    oneOf(...POOL_MODES),
  ),
} as const;
const logLevel = logLevelFrom('info');
const names = (raw: string): readonly string[] => raw.split(',').map((name) => name.trim());

export const MIGRATE_SETTINGS = {
  ...DATABASE_SETTINGS,
  queues: optional(
    'number',
    'number of queues that the agents are spread over; a new database has 16, an existing one keeps its number',
    integer(1, MAX_QUEUES),
  ),
  eventRetentionDays: optional(
    'days',
    'how long events, relist changes and minutes are kept; a new database has 14, an existing one keeps its number',
    integer(1, 490),
  ),
  findingRetentionDays: optional(
    'days',
    'how long everything else is kept; a new database has 400, an existing one keeps its number',
    integer(1, 10_000),
  ),
  controllerRoles: optional(
    'names',
    'roles that get the rights of a controller, separated by commas: role=cluster, or role for every cluster',
    names,
  ),
  databaseWait: withDefault(
    'duration',
    '0s',
    'how long to wait for a Postgres that cannot be reached',
    duration(0, 24 * 3_600_000),
  ),
  logLevel,
} as const;

export const MAINTAIN_SETTINGS = { ...DATABASE_SETTINGS, logLevel } as const;

export const REPAIR_SETTINGS = {
  cluster: CLUSTER,
  ...DATABASE_SETTINGS,
  node: required('name', 'the node whose evidence somebody else forged', string),
  forgetEpoch: optional(
    'uuid',
    'an epoch that no agent of the node wrote: it is forgotten with its records',
    string,
  ),
  forgetLosses: optional(
    'uuid',
    'an epoch whose losses are forged: they are forgotten, and its agent sends again what its spool has',
    string,
  ),
  logLevel,
} as const;

export const FEDERATE_SETTINGS = {
  ...DATABASE_SETTINGS,
  groupsDir: required(
    'dir',
    "folder with a folder for each group, of the group's name, with the files of a Secret that has the URL of a reader there",
    string,
  ),
  reader: optional(
    'role',
    'role of the fleet database that reads as those users; default: its owner, of whose groups the fleet is made',
    string,
  ),
  logLevel,
} as const;
