/*
 * Eviction beside a sweep, and on a disk that takes no losses.
 */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FaultyDisk } from '../../../test/support/faultyDisk.ts';
import {
  earlierOf,
  onlySegment,
  readAll,
  SpoolBed,
  upTo,
  write,
  writesAgain,
} from '../../../test/support/spoolBed.ts';
import { createLogger } from '../../platform/log.ts';
import { seq } from '../../protocol/units.ts';
import { type Epoch, EpochList } from './epoch.ts';
import { Eviction } from './eviction.ts';
import { LOCAL_FILES, type SpoolFiles } from './files.ts';
import { Losses } from './losses.ts';
import { SEGMENT_BYTES } from './segment.ts';
import { WriteBuffer } from './writeBuffer.ts';

const bed = new SpoolBed();

const evictionOf = (epochs: EpochList, files: SpoolFiles, maxBytes = 2 ** 30): Eviction => {
  const options = { dir: bed.dir, maxBytes, log: createLogger('fatal', 'test'), files };
  return new Eviction(options, null, epochs, new Losses(options, epochs));
};
const bufferOf = ({ current }: EpochList): WriteBuffer =>
  new WriteBuffer(
    current,
    new Losses(
      { dir: bed.dir, files: LOCAL_FILES, log: createLogger('fatal', 'test') },
      new EpochList([], current),
    ),
  );

test('no record is deleted to make space for others while its loss cannot be saved', async () => {
  const disk = new FaultyDisk();
  const spool = await bed.open({ files: disk, maxBytes: 3 * SEGMENT_BYTES });
  await spool.startHeartbeat(() => spool.start);
  disk.faultOf = ({ path }) => (path.includes('lost.json') ? 'EIO' : null);
  for (let n = 1; n < 20; n += 1) await write(spool, n, n, 250_000);
  expect(spool.error).toContain('EIO');
  expect(spool.current.lost).toEqual([]);
  expect(spool.current.lastSeq).toBeLessThan(19);
  expect(await readAll(spool.current)).toEqual(upTo(spool.current.lastSeq));
  disk.mend();
  await writesAgain(spool);
  expect(spool.current.lastSeq).toBe(19);
  expect(spool.current.lost).toMatchObject([{ from: 1, cause: 'spool_full' }]);
});

test('segments that cannot be removed still count: a spool does not grow beyond its limit', async () => {
  const disk = new FaultyDisk();
  const spool = await bed.open({ files: disk, maxBytes: 3 * SEGMENT_BYTES });
  disk.faultOf = ({ name, path }) => (name === 'remove' && path.endsWith('.seg') ? 'EIO' : null);
  for (let n = 1; n < 30; n += 1) {
    await write(spool, n, n, 250_000);
    spool.current.acknowledge(spool.current.lastSeq);
  }
  expect(readdirSync(spool.current.dir).filter((name) => name.endsWith('.seg'))).toHaveLength(2);
  disk.mend();
  await writesAgain(spool);
  expect(spool.current.lastSeq).toBe(29);
});

test('a loss is saved in the space of the reserve, also where a quota is used up', async () => {
  const disk = new FaultyDisk();
  const spool = await bed.open({ files: disk, maxBytes: 3 * SEGMENT_BYTES });
  let isReserveThere = true;
  disk.faultOf = ({ name, path }) => {
    if (name === 'remove' && path.endsWith('reserve')) isReserveThere = false;
    return isReserveThere && path.includes('lost.json') ? 'EDQUOT' : null;
  };
  for (let n = 1; n < 20; n += 1) await write(spool, n, n, 250_000);
  expect(spool.error).toBeNull();
  expect(spool.current.lastSeq).toBe(19);
});

test('an epoch whose losses cannot be saved keeps no later record from being written', async () => {
  const disk = new FaultyDisk();
  const first = await bed.open({ files: disk, maxBytes: 3 * SEGMENT_BYTES });
  for (let n = 1; n <= 4; n += 1) await write(first, n, n, 250_000);
  await bed.close(first);
  const spool = await bed.open({ files: disk, maxBytes: 3 * SEGMENT_BYTES });
  const [earlier] = spool.epochs;
  disk.faultOf = ({ path }) =>
    path.startsWith(earlier?.dir ?? '') && path.includes('lost.json') ? 'EIO' : null;
  for (let n = 1; n <= 20; n += 1) await write(spool, n, n, 250_000);
  expect(spool.error).toBeNull();
  expect(spool.current.lastSeq).toBe(20);
  expect(earlier?.lost).toEqual([]);
  expect(spool.current.lost).toMatchObject([{ from: 1, cause: 'spool_full' }]);
});

test('a disk that is too full gets the space of every acknowledged epoch, also while a sweep removes one', async () => {
  for (let i = 0; i < 2; i += 1) {
    const spool = await bed.open();
    await write(spool, 1, 3);
    await bed.close(spool);
  }
  const { epochs, current } = await bed.open();
  const [first, second] = epochs;
  if (first === undefined || second === undefined) throw new Error('an epoch is gone');
  for (const epoch of [first, second]) epoch.acknowledge(epoch.lastSeq);
  const list = new EpochList([first, second], current);
  const files = {
    ...LOCAL_FILES,
    usage: async () => (second.segments.length > 0 ? 0.95 : 0.5),
    open: async (path: string, flags: 'r' | 'w' | 'ax') => {
      list.remove(first);
      return LOCAL_FILES.open(path, flags);
    },
  };
  await evictionOf(list, files).checkDisk(undefined);
  expect(second.segments).toEqual([]);
});

/** An epoch of ten records whose only segment could not be read at the start, and the current one. */
async function unread(disk: FaultyDisk): Promise<{ readonly epoch: Epoch; readonly list: EpochList }> {
  const first = await bed.open({ files: disk });
  await write(first, 1, 10);
  await bed.close(first);
  disk.breakSector(onlySegment(first.current), 0);
  const next = await bed.open({ files: disk });
  const epoch = earlierOf(next);
  epoch.acknowledge(epoch.lastSeq);
  expect(epoch).toMatchObject({ lastSeq: 1, isAcknowledged: true });
  return { epoch, list: new EpochList([epoch], next.current) };
}

test('a disk that is too full does not get the space of a segment that may contain more than is acknowledged', async () => {
  const disk = new FaultyDisk();
  const { epoch, list } = await unread(disk);
  disk.usage = async () => 0.95;
  await expect(evictionOf(list, disk).checkDisk(undefined)).rejects.toThrow('full');
  disk.mend();
  expect(await readAll(epoch)).toEqual(upTo(10));
});

test('a segment that could not be read is read again before it makes space, so that its loss is known', async () => {
  const disk = new FaultyDisk();
  const { epoch, list } = await unread(disk);
  disk.mend();
  await evictionOf(list, disk, SEGMENT_BYTES).makeSpace(bufferOf(list));
  expect(epoch.segments).toEqual([]);
  expect(epoch.lost).toEqual([{ from: 2, to: 10, cause: 'spool_full' }]);
});

test('an epoch that a sweep removes while its loss is saved fails no write', async () => {
  const first = await bed.open();
  await write(first, 1, 3);
  await bed.close(first);
  const next = await bed.open();
  const epoch = earlierOf(next);
  const disk = new FaultyDisk();
  disk.faultOf = ({ path }) => {
    if (!path.includes('lost.json') || !path.startsWith(epoch.dir)) return null;
    epoch.acknowledge(seq(3));
    epoch.retire({ at: 0, context: null });
    epoch.releaseSegments();
    return 'ENOENT';
  };
  const list = new EpochList([epoch], next.current);
  await evictionOf(list, disk, SEGMENT_BYTES).makeSpace(bufferOf(list));
  expect(epoch.lost).toEqual([]);
});
