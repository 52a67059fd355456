/*
 * Saving losses while something else saves or deletes them.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SpoolBed } from '../../../test/support/spoolBed.ts';
import { createLogger } from '../../platform/log.ts';
import { seq } from '../../protocol/units.ts';
import { EpochList } from './epoch.ts';
import { Losses } from './losses.ts';
import { MemoryFiles } from './memoryFiles.ts';

const bed = new SpoolBed();
const LOST = { from: 1, to: 3, cause: 'spool_full' };

/** The losses of a spool with two epochs, in files of its own. */
async function losses() {
  await bed.close(await bed.open());
  const { epochs, current } = await bed.open();
  const [earlier] = epochs;
  if (earlier === undefined) throw new Error('the epoch is gone');
  const files = new MemoryFiles();
  const options = { dir: bed.dir, log: createLogger('fatal', 'test'), files };
  const saved = async () => JSON.parse(await files.readText(join(current.dir, 'lost.json')));
  return { files, earlier, current, saved, losses: new Losses(options, new EpochList([earlier], current)) };
}

test('a write and a sweep that save at once both succeed', async () => {
  const { losses: both, current, saved } = await losses();
  current.declareLost(LOST);
  await Promise.all([both.save(), both.save()]);
  expect(await saved()).toEqual([LOST]);
});

test('records lost during a save are in the next one', async () => {
  const { losses: both, current, saved } = await losses();
  current.declareLost(LOST);
  const first = both.save();
  current.declareLost({ ...LOST, from: 4, to: 9 });
  await Promise.all([first, both.save()]);
  expect(await saved()).toEqual([{ ...LOST, to: 9 }]);
});

test('a failed save is an error of its own caller only', async () => {
  const { losses: both, files, current, saved } = await losses();
  current.declareLost(LOST);
  files.rename = async () => Promise.reject(new Error('EIO'));
  const failed = both.save();
  await expect(failed).rejects.toThrow('EIO');
  files.rename = (from, to) => MemoryFiles.prototype.rename.call(files, from, to);
  await both.save();
  expect(await saved()).toEqual([LOST]);
});

test('an epoch that is retired during a save fails nothing', async () => {
  const { losses: both, files, earlier, current, saved } = await losses();
  current.declareLost(LOST);
  files.rename = async (from, to) => {
    if (!from.startsWith(earlier.dir)) return MemoryFiles.prototype.rename.call(files, from, to);
    earlier.acknowledge(seq(1));
    earlier.retire({ at: 0, context: null });
    throw new Error('ENOENT: the folder is gone');
  };
  await both.save();
  expect(await saved()).toEqual([LOST]);
});

test('losses that were saved while the spool returned to its disk are saved again', async () => {
  const { losses: both, files, current, saved } = await losses();
  current.declareLost(LOST);
  files.rename = async (from, to) => {
    both.forgetSaved();
    await MemoryFiles.prototype.rename.call(files, from, to);
  };
  await both.save();
  files.rename = (from, to) => MemoryFiles.prototype.rename.call(files, from, to);
  await files.remove(join(current.dir, 'lost.json'));
  await both.save();
  expect(await saved()).toEqual([LOST]);
});
