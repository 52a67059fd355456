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
      'Postgres 15 or later: postgres://user:password@host:port/database; its sslmode, sslrootcert, sslcert and sslkey override the next settings',
      databaseUrl,
    ),
  ),
  databaseSecretDir: optional(
    'dir',
    'folder of a mounted Secret with uri or url, or with host, port, dbname, username and password, which override the URL',
    string,
  ),
  databaseSslmode: optional(
    'mode',
    `TLS as in libpq: ${SSL_MODES.join(', ')}; without it, prefer`,
    oneOf(...SSL_MODES),
  ),
  databaseCaFile: optional(
    'file',
    "file with the CA of Postgres's certificate, or system for the system's CAs",
    string,
  ),
  databaseCertFile: optional('file', 'file with the client certificate for Postgres', string),
  databaseKeyFile: optional('file', 'file with the key of that certificate', string),
  databasePoolMode: withDefault(
    'mode',
    'session',
    'transaction, behind a pooler such as PgBouncer with pool_mode = transaction; otherwise session',
    oneOf(...POOL_MODES),
  ),
} as const;
const logLevel = logLevelFrom('info');
const names = (raw: string): readonly string[] => raw.split(',').map((name) => name.trim());

export const MIGRATE_SETTINGS = {
  ...DATABASE_SETTINGS,
  queues: optional(
    'number',
    'number of queues over which agents are spread; without it, 16 in a new database, otherwise unchanged',
    integer(1, MAX_QUEUES),
  ),
  eventRetentionDays: optional(
    'days',
    'retention of events, relist changes, minutes, status lags and rejected input; without it, 14 in a new database, otherwise unchanged',
    integer(1, 490),
  ),
  findingRetentionDays: optional(
    'days',
    'retention of everything else; without it, 400 in a new database, otherwise unchanged',
    integer(1, 10_000),
  ),
  controllerRoles: optional(
    'names',
    'roles that get the rights of a controller, comma-separated: role=cluster, or role for every cluster',
    names,
  ),
  databaseWait: withDefault(
    'duration',
    '0s',
    'time to wait for an unreachable Postgres',
    duration(0, 24 * 3_600_000),
  ),
  logLevel,
} as const;

export const MAINTAIN_SETTINGS = { ...DATABASE_SETTINGS, logLevel } as const;

export const REPAIR_SETTINGS = {
  cluster: CLUSTER,
  ...DATABASE_SETTINGS,
  node: required('name', 'node whose evidence somebody else forged', string),
  forgetEpoch: optional('uuid', 'forged epoch, to be deleted with its records', string),
  forgetLosses: optional(
    'uuid',
    'epoch whose forged losses are deleted; its agent resends what its spool has',
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
