/*
 * A place to listen: a unix socket's path, cleared of what an earlier process left there.
 */
import { lstatSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { PlegwatchError } from '../../src/platform/errors.ts';

/** The kernel keeps a socket's path in 108 bytes, the last of them NUL. */
const MAX_PATH_BYTES = 107;

/**
 * Makes sure that a socket can be bound to a path: removes a socket that nobody answers on.
 * Throws SETTING_INVALID when the path is too long, is something else, or is in use.
 */
export async function clearSocketPath(path: string): Promise<void> {
  if (!path.startsWith('/') || Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw unusable(path, `must be an absolute path of at most ${MAX_PATH_BYTES} bytes`);
  }
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (!there.isSocket()) throw unusable(path, 'is there already and is no socket');
  if (await answers(path)) throw unusable(path, 'is in use by another process');
  unlinkSync(path);
}

function answers(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = connect(path);
  probe.once('connect', () => resolve(true)).once('error', () => resolve(false));
  return promise.finally(() => probe.destroy());
}

const unusable = (path: string, why: string): PlegwatchError =>
  new PlegwatchError('SETTING_INVALID', `--socket ${path}: ${why}`, 'Choose another path for the socket.');
