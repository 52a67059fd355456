/*
 * A folder with one file for each key, as Kubernetes mounts a Secret: where a service is and how to log in. The files are read again
 * before every connect, because a rotated Secret changes them.
 *
 * A file has one of the names that operators and providers give to its key: CloudNativePG, Crossplane and others.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMissing, messageOf, PlegwatchError } from './errors.ts';

const FILES = {
  url: ['url', 'uri'],
  host: ['host', 'hostname', 'address', 'endpoint'],
  port: ['port'],
  database: ['dbname', 'database'],
  username: ['username', 'user'],
  password: ['password'],
  sentinelPassword: ['sentinelPassword'],
} as const;

type SecretField = keyof typeof FILES;
export type SecretFields = Readonly<Partial<Record<SecretField, string>>>;

/** Reads the files that exist; an empty one counts as missing. Throws SETTING_INVALID, which names `setting`. */
export function readSecretDir(dir: string, setting: string): SecretFields {
  const fields: Partial<Record<SecretField, string>> = {};
  for (const [field, names] of Object.entries(FILES)) {
    const found = names.map((name) => readOne(dir, name, setting)).find((text) => text !== '');
    if (found !== undefined) fields[field as SecretField] = found;
  }
  return splitEndpoint(fields);
}

/** A Secret's value may end in a newline that whoever made it did not mean. */
function readOne(dir: string, name: string, setting: string): string {
  try {
    return readFileSync(join(dir, name), 'utf8').replace(/[\r\n]+$/, '');
  } catch (error) {
    if (isMissing(error)) return '';
    throw new PlegwatchError(
      'SETTING_INVALID',
      `${setting} cannot be read: ${messageOf(error)}.`,
      `Set ${setting} to a folder with the files of a Secret, which the program may read.`,
      { cause: error },
    );
  }
}

/** An endpoint may be host and port in one. */
function splitEndpoint(fields: SecretFields): SecretFields {
  const [, host, port] = /^([^:]+|\[[^\]]+\]):(\d{1,5})$/.exec(fields.host ?? '') ?? [];
  if (host === undefined || port === undefined) return fields;
  return { ...fields, host: host.replace(/^\[|\]$/g, ''), port: fields.port ?? port };
}
