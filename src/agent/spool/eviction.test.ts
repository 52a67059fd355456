/*
 * Eviction beside a sweep, and on a disk that takes no losses.
 */
import { expect, test } from 'vitest';
import { FaultyDisk } from '../../../test/support/faultyDisk.ts';
import { readAll, SpoolBed, upTo, write, writesAgain } from '../../../test/support/spoolBed.ts';
import { createLogger } from '../../platform/log.ts';
import { EpochList } from './epoch.ts';
import { Eviction } from './eviction.ts';
import { LOCAL_FILES } from './files.ts';
import { Losses } from './losses.ts';
import { SEGMENT_BYTES } from './segment.ts';

const bed = new SpoolBed();

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
  const options = { dir: bed.dir, maxBytes: 2 ** 30, log: createLogger('fatal', 'test'), files };
  const eviction = new Eviction(options, null, list, new Losses(options, list));
  await eviction.checkDisk(undefined);
  expect(second.segments).toEqual([]);
});
