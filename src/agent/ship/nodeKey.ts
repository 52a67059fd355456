/*
 * The key that this node signs its batches with, kept beside the spool: the next agent ships what this one leaves.
 *
 * A file of another node, cluster or machine is not used: on a cloned disk each node makes its own key. If the file cannot be read or
 * written, the key lives as long as this agent.
 */
import type { KeyObject } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { isMissing, messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { newSigningKey, privateKeyOf, privateKeyText } from '../../protocol/signature.ts';
import { parseJson } from '../../protocol/validation.ts';
import { openPlain, readPlain } from '../spool/files.ts';

const FILE_NAME = 'node-key.json';

const SavedKeySchema = v.object({
  cluster: v.string(),
  node: v.string(),
  machine: v.string(),
  key: v.string(),
});

export interface NodeKeyOptions {
  /** Must exist. */
  readonly dir: string;
  readonly cluster: string;
  readonly node: string;
  readonly machine: string;
  readonly log: Logger;
}

export async function openNodeKey(options: NodeKeyOptions): Promise<KeyObject> {
  const { dir, cluster, node, machine, log } = options;
  const file = join(dir, FILE_NAME);
  try {
    const saved = await load(file, options);
    if (saved !== null) return saved;
  } catch (error) {
    log.warn({ file, error: messageOf(error) }, 'key of this node cannot be read; a new one is used');
  }
  const key = newSigningKey();
  try {
    await save(file, { cluster, node, machine, key: privateKeyText(key) });
  } catch (error) {
    log.warn({ file, error: messageOf(error) }, 'key of this node cannot be saved');
  }
  return key;
}

async function load(file: string, { cluster, node, machine }: NodeKeyOptions): Promise<KeyObject | null> {
  let json: string;
  try {
    json = await readPlain(file);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  const saved = parseJson(SavedKeySchema, json);
  if (!saved.ok) return null;
  const isOurs =
    saved.value.cluster === cluster && saved.value.node === node && saved.value.machine === machine;
  return isOurs ? privateKeyOf(saved.value.key, 'ed25519') : null;
}

async function save(file: string, saved: v.InferOutput<typeof SavedKeySchema>): Promise<void> {
  const handle = await openPlain(`${file}.new`, 'w', 0o600);
  try {
    // A file that is there already keeps its mode.
    await handle.chmod(0o600);
    await handle.writeFile(JSON.stringify(saved));
    await handle.datasync();
  } finally {
    await handle.close();
  }
  await rename(`${file}.new`, file);
}
