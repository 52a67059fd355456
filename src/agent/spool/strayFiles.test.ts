/*
 * Pipes, links and other things under the names of the spool's files.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { onlySegment, readAll, SpoolBed, upTo, write } from '../../../test/support/spoolBed.ts';
import { createLogger } from '../../platform/log.ts';
import { openNodeKey } from '../ship/nodeKey.ts';
import type { Epoch } from './epoch.ts';

const bed = new SpoolBed();

const pipe = (path: string) => void execFileSync('mkfifo', [path]);
/** To a file of somebody else. */
const link = (path: string) => symlinkSync(theirs(), path);
const folder = (path: string) => void mkdirSync(path);
const theirs = (): string => join(bed.dir, 'theirs');
const CONTENT = '{"somebody":"else"}';

async function incarnation(): Promise<Epoch> {
  const spool = await bed.open();
  await write(spool, 1, 3);
  await bed.close(spool);
  writeFileSync(theirs(), CONTENT);
  return spool.current;
}

const KINDS = [
  ['a pipe', pipe],
  ['a link', link],
] as const;
const FILES = ['heartbeat.json', 'heartbeat.json.new', 'retired.json', 'retired.json.new', 'reserve'];
const OF_EPOCHS = ['meta.json', 'lost.json', 'lost.json.new', 'reached.json', 'reached.json.new'];

describe.each(KINDS)('%s', (_, make) => {
  test.each(FILES)('named %s is neither waited for nor followed, and the spool is used', async (name) => {
    await incarnation();
    rmSync(join(bed.dir, name), { force: true });
    make(join(bed.dir, name));
    const spool = await bed.open();
    await spool.startHeartbeat(() => spool.start);
    await write(spool, 1, 3);
    expect(spool.error).toBeNull();
    expect(await readAll(spool.current)).toEqual(upTo(3));
    expect(spool.epochs).toHaveLength(2);
    expect(readFileSync(theirs(), 'utf8')).toBe(CONTENT);
  });

  test.each(OF_EPOCHS)(
    'named %s in the folder of an epoch is neither waited for nor followed',
    async (name) => {
      const { dir } = await incarnation();
      rmSync(join(dir, name), { force: true });
      make(join(dir, name));
      const spool = await bed.open();
      expect(spool.error).toBeNull();
      expect(readFileSync(theirs(), 'utf8')).toBe(CONTENT);
    },
  );

  test('in place of a segment is not read, and its records are lost', async () => {
    const epoch = await incarnation();
    const segment = onlySegment(epoch);
    renameSync(segment, join(bed.dir, 'copy'));
    make(segment);
    const spool = await bed.open();
    expect(spool.error).toBeNull();
    expect(spool.epochs.map(({ segments }) => segments)).toEqual([[], []]);
    expect(readFileSync(theirs(), 'utf8')).toBe(CONTENT);
  });

  test('in place of the lock is not waited for', async () => {
    await incarnation();
    rmSync(join(bed.dir, 'lock'));
    make(join(bed.dir, 'lock'));
    await expect(bed.open()).rejects.toThrow('an object with its name is no file');
    expect(readFileSync(theirs(), 'utf8')).toBe(CONTENT);
  });

  test('among the epochs is left alone', async () => {
    await incarnation();
    make(join(bed.dir, 'epochs', 'stray'));
    const spool = await bed.open();
    expect(spool.epochs).toHaveLength(2);
    expect(lstatSync(join(bed.dir, 'epochs', 'stray')).isFile()).toBe(false);
  });

  test("in place of this node's key is neither waited for nor followed", async () => {
    await incarnation();
    make(join(bed.dir, 'node-key.json'));
    make(join(bed.dir, 'node-key.json.new'));
    const log = createLogger('fatal', 'test');
    await openNodeKey({ dir: bed.dir, cluster: 'prod', node: 'node-1', machine: '', log });
    expect(readFileSync(theirs(), 'utf8')).toBe(CONTENT);
  });
});

test('a file among the epochs is left alone, and the spool is used', async () => {
  await incarnation();
  const stray = join(bed.dir, 'epochs', 'stray');
  writeFileSync(stray, 'x');
  const spool = await bed.open();
  expect(spool.epochs).toHaveLength(2);
  expect(readFileSync(stray, 'utf8')).toBe('x');
});

test('the folder of an epoch that is a link is not followed', async () => {
  const { dir } = await incarnation();
  const elsewhere = join(bed.dir, basename(dir));
  renameSync(dir, elsewhere);
  symlinkSync(elsewhere, join(dirname(dir), basename(dir)));
  const spool = await bed.open();
  expect(spool.epochs).toEqual([spool.current]);
  expect(existsSync(join(elsewhere, 'meta.json'))).toBe(true);
});

test('a folder named heartbeat.json.new is replaced', async () => {
  await incarnation();
  folder(join(bed.dir, 'heartbeat.json.new'));
  const spool = await bed.open();
  await spool.startHeartbeat(() => spool.start);
  expect(spool.error).toBeNull();
});
