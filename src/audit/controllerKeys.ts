/*
 * The controller's public keys that an audit of signatures trusts: from files, each with the data `keys.json` of its ConfigMap.
 */
import type { KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import { parseControllerKeys } from '../protocol/enrolment.ts';
import { publicKeyOf } from '../protocol/signature.ts';

/** Throws SETTING_INVALID. */
export async function readControllerKeys(files: readonly string[] = []): Promise<KeyObject[]> {
  if (files.length === 0) throw invalid('--signatures needs --controller-keys-file.');
  return Promise.all(files.map(readKey));
}

async function readKey(file: string): Promise<KeyObject> {
  const json = await readFile(file, 'utf8').catch((error: unknown) => {
    throw invalid(`--controller-keys-file cannot be read: ${messageOf(error)}.`);
  });
  const keys = parseControllerKeys(json);
  const key = keys.ok ? publicKeyOf(keys.value.sign) : null;
  if (key === null) throw invalid(`--controller-keys-file ${file} has no keys of a controller.`);
  return key;
}

const invalid = (error: string): PlegwatchError =>
  new PlegwatchError(
    'SETTING_INVALID',
    error,
    "Write keys.json of the ConfigMap with the controller's public keys to a file: docs/how-to/audit.md.",
  );
