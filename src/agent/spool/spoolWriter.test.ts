/*
 * Records that are appended just as a write ends, and while writes fail.
 */
import { afterEach, expect, test, vi } from 'vitest';
import { FaultyDisk } from '../../../test/support/faultyDisk.ts';
import { ModelDisk } from '../../../test/support/modelDisk.ts';
import { CONTEXT, readAll, SpoolBed, spoolRecord, upTo } from '../../../test/support/spoolBed.ts';

const bed = new SpoolBed();
afterEach(() => void vi.useRealTimers());

test('a record is written that is appended while a write ends that found none', async () => {
  const spool = await bed.open();
  spool.setContext(CONTEXT);
  void spool.flush();
  spool.append(spoolRecord(1), null);
  await spool.flush();
  expect(await readAll(spool.current)).toEqual(upTo(1));
});

test('a disk that fails is tried once a second, however many records are appended meanwhile', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const disk = new FaultyDisk(new ModelDisk());
  await disk.makeFolder(bed.dir);
  const spool = await bed.open({ files: disk });
  spool.setContext(CONTEXT);
  let tries = 0;
  disk.faultOf = ({ name, path }) => {
    if (name !== 'open' || !path.endsWith('.seg')) return null;
    tries += 1;
    return 'EIO';
  };
  const seconds = 20;
  for (let n = 1; n <= 10 * seconds; n += 1) {
    spool.append(spoolRecord(n), null);
    await vi.advanceTimersByTimeAsync(100);
    await settled();
  }
  expect(tries).toBeGreaterThan(seconds / 2);
  expect(tries).toBeLessThanOrEqual(seconds + 1);
  disk.mend();
  await spool.flush();
  expect(await readAll(spool.current)).toEqual(upTo(10 * seconds));
});

/** Lets a try come to its end: each call to the disk takes a turn of the event loop. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}
