/*
 * The path of a unix socket, cleared of a socket that an earlier process left behind.
 */
import { lstatSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { PlegwatchError } from '../../src/platform/errors.ts';

/** The kernel keeps a socket's path in 108 bytes, the last of them NUL. */
const MAX_PATH_BYTES = 107;

/**
 * Removes a socket on which no process listens, so that the path can be bound. Throws SETTING_INVALID when the path is too
 * long, is not a socket, or is in use.
 */
export async function clearSocketPath(path: string): Promise<void> {
  if (!path.startsWith('/') || Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw unusable(path, `must be an absolute path of at most ${MAX_PATH_BYTES} bytes`);
  }
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (!there.isSocket()) throw unusable(path, 'exists and is not a socket');
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
