/*
 * The spool on a disk that cannot read its sectors, fails to sync, or fails in any call.
 */
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FaultyDisk, SECTOR_BYTES } from '../../../test/support/faultyDisk.ts';
import { ModelDisk } from '../../../test/support/modelDisk.ts';
import { readAll, SpoolBed, upTo, write } from '../../../test/support/spoolBed.ts';
import { type Mono, millis, seq } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import type { Segment } from './segment.ts';
import type { Spool } from './spool.ts';

const bed = new SpoolBed(() => ({ retention: millis(86_400_000) }));

const now = (spool: Spool) => (): Mono => spool.start;
const fileOf = (epoch: Epoch, at: number): string => join(epoch.dir, segmentOf(epoch, at).file);
function segmentOf(epoch: Epoch, at: number): Segment {
  const segment = epoch.segments[at];
  if (segment === undefined) throw new Error(`there is no segment ${at}`);
  return segment;
}
function epochOf(spool: Spool, { meta }: Epoch): Epoch {
  const epoch = spool.epochs.find((each) => each.meta.epoch === meta.epoch);
  if (epoch === undefined) throw new Error('the epoch is gone');
  return epoch;
}

/** The seqs of the records that are at least partly in the sector of this byte. */
function seqsInSector(path: string, byte: number): number[] {
  const from = byte - (byte % SECTOR_BYTES);
  let at = 0;
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const start = at;
      at += Buffer.byteLength(line) + 1;
      const found = /"s":(\d+)/.exec(line);
      return found !== null && start < from + SECTOR_BYTES && at > from ? [Number(found[1])] : [];
    });
}

/** Reads as the shipper does, which tries again while records are neither there nor declared lost. */
async function readAgain(epoch: Epoch): Promise<number[]> {
  for (let i = 0; i < 20; i += 1) {
    const read = await readAll(epoch);
    if (missing(epoch, read).length === 0) return read;
  }
  return readAll(epoch);
}
const missing = (epoch: Epoch, read: readonly number[]): number[] =>
  upTo(epoch.lastSeq).filter((at) => !read.includes(at) && !epoch.isDeclaredLost(at, at));

describe('an unreadable sector', () => {
  /** Three segments; the sector is in the middle one, or in the one that `pick` says. */
  async function written(disk: FaultyDisk): Promise<Spool> {
    const spool = await bed.open({ files: disk });
    for (let n = 1; n <= 3_000; n += 500) await write(spool, n, n + 499, 1_000);
    expect(spool.current.segments).toHaveLength(3);
    await spool.startHeartbeat(now(spool));
    return spool;
  }

  test.each([
    ['the middle of an old segment', 1, 500_000],
    ['the first sector of a segment, with its context', 1, 0],
    ['the end of the last segment', 2, -1],
  ])('%s costs the next agent exactly its records, which are declared lost', async (_, at, byte) => {
    const disk = new FaultyDisk();
    const first = await written(disk);
    const path = fileOf(first.current, at);
    const where = byte < 0 ? readFileSync(path).length - 1 : byte;
    const gone = seqsInSector(path, where);
    await bed.close(first);
    disk.breakSector(path, where);
    const next = await bed.open({ files: disk });
    const epoch = epochOf(next, first.current);
    const read = await readAgain(epoch);
    expect(gone.length).toBeGreaterThan(0);
    expect(read).toEqual(upTo(3_000).filter((each) => !gone.includes(each)));
    expect(epoch.lost.map(({ cause }) => cause)).toEqual(['spool_unreadable']);
    expect(epoch.lost.flatMap(({ from, to }) => upTo(to, from))).toEqual(gone);
    expect(next.dropped).toBe(gone.length);
    expect(next.error).toBeNull();
  });

  test('before a torn last line does not hide that a record was there', async () => {
    const disk = new FaultyDisk();
    const first = await bed.open({ files: disk });
    await write(first, 1, 100, 200);
    await bed.close(first);
    const path = fileOf(first.current, 0);
    const gone = [...seqsInSector(path, 10_000), 100];
    truncateSync(path, readFileSync(path).length - 5);
    disk.breakSector(path, 10_000);
    const next = await bed.open({ files: disk });
    const epoch = epochOf(next, first.current);
    expect(await readAgain(epoch)).toEqual(upTo(99).filter((each) => !gone.includes(each)));
    expect(epoch.lost.flatMap(({ from, to }) => upTo(to, from))).toEqual(gone);
  });

  test('with the only context of an epoch costs all records that need it, each declared lost', async () => {
    const disk = new FaultyDisk();
    const first = await bed.open({ files: disk });
    await write(first, 1, 100, 200);
    await bed.close(first);
    disk.breakSector(fileOf(first.current, 0), 0);
    const next = await bed.open({ files: disk });
    const epoch = epochOf(next, first.current);
    expect(await readAgain(epoch)).toEqual([]);
    expect(epoch.lost).toEqual([{ from: 1, to: 100, cause: 'spool_unreadable' }]);
  });

  test('with the only context of the running agent costs no record that is written later', async () => {
    const disk = new FaultyDisk();
    const spool = await bed.open({ files: disk });
    await write(spool, 1, 5);
    const path = fileOf(spool.current, 0);
    disk.breakSector(path, 0);
    await readAgain(spool.current);
    await write(spool, 6, 100, 200);
    const gone = seqsInSector(path, 0);
    expect(await readAgain(spool.current)).toEqual(upTo(100, (gone.at(-1) ?? 0) + 1));
  });

  test('in the last segment while the next agent starts costs nothing, also of records that only the segment knows', async () => {
    const disk = new FaultyDisk();
    const first = await bed.open({ files: disk });
    await write(first, 1, 10);
    await bed.close(first);
    disk.breakSector(fileOf(first.current, 0), 0);
    const next = await bed.open({ files: disk });
    const epoch = epochOf(next, first.current);
    expect(epoch.lastSeq).toBe(1);
    disk.mend();
    expect(await readAll(epoch)).toEqual(upTo(10));
    expect(epoch.lastSeq).toBe(10);
    expect(epoch.lost).toEqual([]);
  });

  test('costs nothing where a power cut brought back a segment that was written again, either', async () => {
    const disk = new FaultyDisk();
    const first = await bed.open({ files: disk });
    await write(first, 1, 10);
    await bed.close(first);
    const path = fileOf(first.current, 0);
    writeFileSync(join(first.current.dir, '0000000001-zzzzzzzz.seg'), 'x');
    disk.breakSector(path, 0);
    const next = await bed.open({ files: disk });
    disk.mend();
    expect(await readAll(epochOf(next, first.current))).toEqual(upTo(10));
  });

  test('costs the agent that wrote it exactly its records', async () => {
    const disk = new FaultyDisk();
    const spool = await written(disk);
    const path = fileOf(spool.current, 0);
    const gone = seqsInSector(path, 300_000);
    disk.breakSector(path, 300_000);
    expect(await readAgain(spool.current)).toEqual(upTo(3_000).filter((each) => !gone.includes(each)));
    expect(spool.current.lost).toEqual([{ from: gone[0], to: gone.at(-1), cause: 'spool_unreadable' }]);
  });

  test('behind records that were acknowledged, of which the store then forgot some, costs exactly its records', async () => {
    const disk = new FaultyDisk();
    const spool = await bed.open({ files: disk });
    await write(spool, 1, 100, 200);
    expect(await readAll(spool.current)).toEqual(upTo(100));
    spool.current.acknowledge(seq(60));
    await write(spool, 101, 140, 200);
    const path = fileOf(spool.current, 0);
    const end = readFileSync(path).length - 1;
    const gone = seqsInSector(path, end);
    disk.breakSector(path, end);
    spool.current.acknowledge(seq(1));
    for (let tries = 0; tries < 20; tries += 1) await spool.current.read(101, 500, 1_000_000);
    expect(await readAll(spool.current)).toEqual(upTo(140).filter((each) => !gone.includes(each)));
    expect(spool.current.lost).toEqual([{ from: gone[0], to: gone.at(-1), cause: 'spool_unreadable' }]);
  });

  test('that can be read again soon costs nothing', async () => {
    const disk = new FaultyDisk();
    const spool = await written(disk);
    const path = fileOf(spool.current, 0);
    const gone = seqsInSector(path, 300_000);
    disk.breakSector(path, 300_000);
    expect(await readAll(spool.current)).toEqual(upTo(3_000).filter((each) => !gone.includes(each)));
    disk.mend();
    expect(await readAll(spool.current)).toEqual(upTo(3_000));
    expect(spool.current.lost).toEqual([]);
  });

  test('in every sector of a segment costs this segment and no other', async () => {
    const disk = new FaultyDisk();
    const first = await written(disk);
    const { file, first: from } = segmentOf(first.current, 1);
    await bed.close(first);
    disk.faultOf = ({ path }) => (path.endsWith(file) ? 'EIO' : null);
    const next = await bed.open({ files: disk });
    const epoch = epochOf(next, first.current);
    const read = await readAgain(epoch);
    const to = (read.find((each) => each > from) ?? 0) - 1;
    expect(read).toEqual([...upTo(from - 1), ...upTo(3_000, to + 1)]);
    expect(epoch.lost).toEqual([{ from, to, cause: 'spool_unreadable' }]);
  });

  test('in a file beside the segments does not keep the next agent from starting with all records', async () => {
    const disk = new FaultyDisk();
    const first = await written(disk);
    await bed.close(first);
    for (const name of ['heartbeat.json', 'retired.json', 'lost.json', 'reached.json']) {
      disk.faultOf = (call) => (call.path.endsWith(name) && call.name === 'readText' ? 'EIO' : null);
      const next = await bed.open({ files: disk });
      expect(await readAll(epochOf(next, first.current))).toEqual(upTo(3_000));
      await bed.close(next);
    }
  });

  test('stays declared when the disk reads it again later', async () => {
    const disk = new FaultyDisk();
    const first = await written(disk);
    const path = fileOf(first.current, 1);
    disk.breakSector(path, 300_000);
    await readAgain(first.current);
    const { lost } = first.current;
    await bed.close(first);
    disk.mend();
    const next = await bed.open({ files: disk });
    expect(epochOf(next, first.current).lost).toEqual(lost);
    expect(missing(epochOf(next, first.current), await readAll(epochOf(next, first.current)))).toEqual([]);
  });
});

describe('a failed fsync', () => {
  /** How a disk with a page cache behaves: what a failed fsync should have written is gone, and the next fsync succeeds. */
  async function opened(): Promise<{ disk: ModelDisk; spool: Spool }> {
    const disk = new ModelDisk();
    await disk.makeFolder(bed.dir);
    disk.comeBack(() => 0.999);
    const spool = await bed.open({ files: disk, fsyncInterval: millis(3_600_000) });
    return { disk, spool };
  }

  test.each([1, 2, 3])('%d times in a row loses no record that is synced later', async (failures) => {
    const { disk, spool } = await opened();
    await write(spool, 1, 5);
    await spool.startHeartbeat(now(spool));
    await write(spool, 6, 9);
    disk.failSyncs(failures);
    await spool.stopHeartbeat(spool.start);
    await write(spool, 10, 12);
    await waitUntilSynced(spool);
    expect(await readAll(spool.current)).toEqual(upTo(12));
    disk.cutAfter(1);
    await bed.close(spool);
    disk.comeBack(() => 0);
    const next = await bed.open({ files: disk });
    expect(await readAll(epochOf(next, spool.current))).toEqual(upTo(12));
  });

  test('makes no heartbeat, which would say that its records are on the disk', async () => {
    const { disk, spool } = await opened();
    await write(spool, 1, 5);
    await spool.startHeartbeat(now(spool));
    const before = await disk.readText(join(bed.dir, 'heartbeat.json'));
    await write(spool, 6, 9);
    disk.failSyncs(1_000);
    await spool.stopHeartbeat(spool.start);
    expect(await disk.readText(join(bed.dir, 'heartbeat.json'))).toBe(before);
    expect(spool.error).toContain('EIO');
    disk.failSyncs(0);
    await waitUntilSynced(spool);
  });

  test('that repeats leaves no growing number of segments', async () => {
    const { disk, spool } = await opened();
    await write(spool, 1, 5);
    disk.failSyncs(1_000);
    for (let n = 6; n < 60; n += 3) {
      await spool.stopHeartbeat(spool.start);
      await write(spool, n, n + 2);
    }
    const files = (await disk.list(spool.current.dir)).filter((name) => name.endsWith('.seg'));
    expect(files.length).toBeLessThanOrEqual(2);
    disk.failSyncs(0);
    await waitUntilSynced(spool);
    expect(await readAll(spool.current)).toEqual(upTo(59));
  });

  async function waitUntilSynced(spool: Spool): Promise<void> {
    await expect
      .poll(
        async () => {
          await spool.flush();
          await spool.stopHeartbeat(spool.start);
          return spool.error;
        },
        { timeout: 240_000 },
      )
      .toBeNull();
  }
});
