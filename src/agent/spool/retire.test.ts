/*
 * Retiring an epoch while something else happens to it.
 */
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CONTEXT, SpoolBed, write } from '../../../test/support/spoolBed.ts';
import { millis, seq } from '../../protocol/units.ts';
import { EpochList } from './epoch.ts';
import { LOCAL_FILES } from './files.ts';
import { RETIRED_FILE, RetiredEpochs } from './retiredEpochs.ts';

const bed = new SpoolBed();

/** A spool with an earlier epoch of three acknowledged records, and its files, whose calls a test may change. */
async function acknowledged() {
  const first = await bed.open();
  await write(first, 1, 3);
  await bed.close(first);
  const files = { ...LOCAL_FILES };
  const { epochs, current } = await bed.open({ files });
  const [epoch] = epochs;
  if (epoch === undefined) throw new Error('the epoch is gone');
  epoch.acknowledge(seq(3));
  return {
    files,
    epoch,
    retired: new RetiredEpochs({
      files,
      dir: bed.dir,
      retention: millis(0),
      epochs: new EpochList([epoch], current),
    }),
  };
}

test('an epoch stays whose records turn out to be missing in the store while its retirement is saved', async () => {
  const { files, epoch, retired } = await acknowledged();
  files.rename = async (from, to) => {
    if (to.endsWith(RETIRED_FILE)) epoch.acknowledge(seq(1));
    await LOCAL_FILES.rename(from, to);
  };
  await retired.retire(epoch);
  expect(epoch.retirement).toBeNull();
  expect(await epoch.read(2, 10, 100_000)).toHaveLength(2);
});

test('an epoch whose retirement could not be saved is retired by a later sweep', async () => {
  const { files, epoch, retired } = await acknowledged();
  files.rename = async () => Promise.reject(new Error('EIO'));
  await expect(retired.retire(epoch)).rejects.toThrow('EIO');
  expect(epoch.retirement).toBeNull();
  files.rename = LOCAL_FILES.rename;
  await retired.retire(epoch);
  expect(epoch.retirement?.context).toMatchObject(CONTEXT);
  expect(existsSync(epoch.dir)).toBe(false);
});
