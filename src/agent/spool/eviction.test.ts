/*
 * Eviction beside a sweep.
 */
import { expect, test } from 'vitest';
import { SpoolBed, write } from '../../../test/support/spoolBed.ts';
import { createLogger } from '../../platform/log.ts';
import { EpochList } from './epoch.ts';
import { Eviction } from './eviction.ts';
import { LOCAL_FILES } from './files.ts';
import { Losses } from './losses.ts';

const bed = new SpoolBed();

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
