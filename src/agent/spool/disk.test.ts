/*
 * The spool on a disk that cannot be used, must not be filled further, or belongs to another node.
 */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readAll, SpoolBed, upTo, write, writesAgain } from '../../../test/support/spoolBed.ts';
import { createLogger } from '../../platform/log.ts';
import { millis, seq } from '../../protocol/units.ts';
import { LOCAL_FILES, type SpoolFiles } from './files.ts';
import type { Spool } from './spool.ts';

const MIB = 1024 * 1024;

/** The machine's disk with a usage that a test sets, and without space for another byte if the test says so. */
class AdjustableDisk implements SpoolFiles {
  used = 0.5;
  hasSpace = true;
  /** How many bytes removed files have freed while there is no other space. */
  freed = 0;

  async open(path: string, flags: 'r' | 'w' | 'ax') {
    const handle = await LOCAL_FILES.open(path, flags);
    const write = (text: string) => {
      if (!this.hasSpace && this.freed < text.length)
        throw Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC' });
      this.freed -= this.hasSpace ? 0 : text.length;
      return handle.write(text);
    };
    return {
      write: async (text: string) => write(text),
      read: (into: Buffer, at: number, length: number, from: number) => handle.read(into, at, length, from),
      datasync: () => handle.datasync(),
      sync: () => handle.sync(),
      close: () => handle.close(),
    };
  }
  async remove(path: string) {
    if (existsSync(path) && statSync(path).isFile()) this.freed += statSync(path).size;
    await LOCAL_FILES.remove(path);
  }
  usage = async () => this.used;
  readText = LOCAL_FILES.readText;
  makeFolder = LOCAL_FILES.makeFolder;
  list = LOCAL_FILES.list;
  rename = LOCAL_FILES.rename;
  stat = LOCAL_FILES.stat;
}

let disk: AdjustableDisk;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'performance'] });
  disk = new AdjustableDisk();
});
afterEach(() => void vi.useRealTimers());
/** After its hooks, so that it closes the spools before the timers are real again. */
const bed = new SpoolBed(() => ({ retention: millis(86_400_000), files: disk }));

const segments = (spool: Spool) => readdirSync(spool.current.dir).filter((name) => name.endsWith('.seg'));

describe('a disk that is over 90 % full', () => {
  test('keeps the last seq of an epoch whose segments were all evicted', async () => {
    const spool = await bed.open();
    await write(spool, 1, 3);
    const { epoch } = spool.current.meta;
    await bed.close(spool);
    const next = await bed.open();
    const last = next.epochs.find(({ meta }) => meta.epoch === epoch);
    if (last === undefined) throw new Error('the epoch is gone');
    last.acknowledge(seq(3));
    disk.used = 0.95;
    await write(next, 1, 1);
    expect(last.segments).toEqual([]);
    await bed.close(next);
    const found = (await bed.open()).epochs.find(({ meta }) => meta.epoch === epoch);
    expect(found).toMatchObject({ lastSeq: 3, oldestSeq: 4 });
  });

  test('is not written to: records wait in the buffer until there is space', async () => {
    const spool = await bed.open();
    await write(spool, 1, 3);
    disk.used = 0.95;
    await vi.advanceTimersByTimeAsync(6_000);
    await write(spool, 4, 6);
    expect(spool.error).toBe('the disk is over 90 % full');
    expect(await readAll(spool.current)).toEqual(upTo(3));
    disk.used = 0.85;
    await vi.advanceTimersByTimeAsync(6_000);
    await writesAgain(spool);
    expect(await readAll(spool.current)).toEqual(upTo(6));
  });

  test('first gets space from acknowledged segments, whatever their retention', async () => {
    const spool = await bed.open();
    await write(spool, 1, 2_500, 300);
    await write(spool, 2_501, 4_500, 300);
    expect(segments(spool).length).toBeGreaterThan(1);
    spool.current.acknowledge(seq(4_500));
    vi.spyOn(disk, 'usage').mockImplementation(async () => (segments(spool).length > 1 ? 0.95 : 0.89));
    await vi.advanceTimersByTimeAsync(6_000);
    await write(spool, 4_501, 4_501);
    expect(spool.error).toBeNull();
    expect(spool.current.lastSeq).toBe(4_501);
    expect(spool.dropped).toBe(0);
  });

  test('is measured by the usage of its file system, between 0 and 1', async () => {
    const full = await LOCAL_FILES.usage(bed.dir);
    expect(full).toBeGreaterThan(0);
    expect(full).toBeLessThanOrEqual(1);
  });
});

describe('with --spool-fallback memory', () => {
  const fallback = 'memory';

  test('a folder that cannot be used makes the spool run from memory and report it', async () => {
    writeFileSync(join(bed.dir, 'file'), '');
    const spool = await bed.open({ dir: join(bed.dir, 'file'), fallback });
    await write(spool, 1, 5);
    expect(spool.error).toContain('runs from memory: ');
    expect(spool.isInMemory).toBe(true);
    expect(await readAll(spool.current)).toEqual(upTo(5));
    expect(readFileSync(join(bed.dir, 'file'), 'utf8')).toBe('');
  });

  test('a spool whose disk fills up goes on in memory without a loss, and returns when there is space', async () => {
    const spool = await bed.open({ fallback });
    await write(spool, 1, 3);
    disk.hasSpace = false;
    await write(spool, 4, 6);
    expect(spool.error).toContain('runs from memory: ENOSPC');
    expect(await readAll(spool.current)).toEqual(upTo(6));
    expect(spool.current.lost).toEqual([]);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(spool.isInMemory).toBe(true);
    disk.hasSpace = true;
    // A sweep is skipped while the one before is under way.
    await vi.waitFor(async () => {
      await vi.advanceTimersByTimeAsync(30_000);
      expect(spool.error).toBeNull();
    }, 240_000);
    await write(spool, 7, 9);
    expect(await readAll(spool.current)).toEqual(upTo(9));
    const onDisk = segments(spool).map((name) => readFileSync(join(spool.current.dir, name), 'utf8'));
    expect(onDisk.join('')).toContain('"s":9');
    expect(onDisk.join('')).not.toContain('"s":5');
  });

  test('over the limit in memory the oldest records there are dropped and declared lost, those on disk stay', async () => {
    const spool = await bed.open({ fallback });
    await write(spool, 1, 3);
    disk.hasSpace = false;
    for (let n = 4; n < 20_000; n += 500) await write(spool, n, n + 499, 1_000);
    expect(spool.bytes).toBeLessThan(18 * MIB);
    const [range] = spool.current.lost;
    expect(range).toMatchObject({ from: 4, cause: 'spool_memory_full' });
    expect(await readAll(spool.current)).toEqual(
      upTo(spool.current.lastSeq).filter((n) => n < 4 || n > (range?.to ?? 0)),
    );
    expect(spool.dropped).toBe((range?.to ?? 0) - 3);
  });

  test('an epoch on disk is not retired while the spool runs from memory', async () => {
    const first = await bed.open({ fallback });
    await write(first, 1, 3);
    const { epoch } = first.current.meta;
    await bed.close(first);
    const spool = await bed.open({ fallback, retention: millis(-1) });
    const last = spool.epochs.find(({ meta }) => meta.epoch === epoch);
    if (last === undefined) throw new Error('the epoch is gone');
    disk.hasSpace = false;
    await write(spool, 1, 3);
    expect(spool.isInMemory).toBe(true);
    last.acknowledge(seq(3));
    await vi.advanceTimersByTimeAsync(31_000);
    await bed.close(spool);
    disk.hasSpace = true;
    const found = (await bed.open({ fallback })).epochs.find(({ meta }) => meta.epoch === epoch);
    expect(found?.lastSeq).toBe(3);
  });

  test('records in memory are gone for the next incarnation', async () => {
    const spool = await bed.open({ fallback });
    await write(spool, 1, 3);
    disk.hasSpace = false;
    await write(spool, 4, 6);
    await bed.close(spool);
    disk.hasSpace = true;
    const next = await bed.open({ fallback });
    expect(next.epochs[0]?.lastSeq).toBe(3);
  });

  test('an incarnation on disk has a higher number than an earlier one in memory', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'performance', 'Date'], now: Date.UTC(2026, 5, 1) });
    await bed.close(await bed.open({ fallback }));
    vi.setSystemTime(Date.UTC(2026, 6, 1));
    const file = join(bed.dir, 'file');
    writeFileSync(file, '');
    const inMemory = await bed.open({ fallback, dir: join(file, 'spool') });
    vi.setSystemTime(Date.UTC(2026, 6, 2));
    const next = await bed.open({ fallback });
    expect(next.current.meta.incarnation).toBeGreaterThan(inMemory.current.meta.incarnation);
  });

  test('an absurd clock does not make an incarnation number too large for the envelope', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'performance', 'Date'], now: Date.UTC(2150, 0, 1) });
    expect((await bed.open()).current.meta.incarnation).toBe(1);
  });

  test('without the fallback a folder that cannot be used is an error', async () => {
    writeFileSync(join(bed.dir, 'file'), '');
    await expect(bed.open({ dir: join(bed.dir, 'file') })).rejects.toMatchObject({ code: 'SPOOL_UNUSABLE' });
  });
});

describe('the spool of another', () => {
  const machine = '4c4c4544-0001';
  const asides = () => readdirSync(bed.dir).filter((name) => name.startsWith('foreign-'));

  test.each([
    ['node', 'error', { machine, node: 'node-2' }],
    ['cluster, as after a trial', 'warn', { machine, cluster: 'other' }],
    ['machine (a cloned disk)', 'error', { machine: '4c4c4544-0002' }],
  ] as const)(
    '%s is quarantined unchanged with one log line (%s), and a new spool begins',
    async (_, level, other) => {
      const first = await bed.open({ machine });
      await write(first, 1, 3);
      await first.startHeartbeat(() => first.start);
      await bed.close(first);
      const left = readdirSync(join(bed.dir, 'epochs'));
      const lines = { warn: vi.fn(), error: vi.fn() };
      const spool = await bed.open({ ...other, log: Object.assign(createLogger('fatal', 'test'), lines) });
      expect(spool.epochs).toHaveLength(1);
      expect({ warn: lines.warn.mock.calls.length, error: lines.error.mock.calls.length }).toEqual({
        ...{ warn: 0, error: 0 },
        [level]: 1,
      });
      expect(spool.quarantined?.lastAlive).toEqual(expect.any(Number));
      expect(spool.lastObserved).toBeNull();
      const [aside = ''] = asides();
      expect(readdirSync(join(bed.dir, aside, 'epochs'))).toEqual(left);
      expect(
        readdirSync(join(bed.dir, aside, 'epochs', left[0] ?? '')).some((name) => name.endsWith('.seg')),
      ).toBe(true);
    },
  );

  test('machine cannot be recognized when either machine id is unknown', async () => {
    await bed.close(await bed.open({ machine }));
    await bed.close(await bed.open({ machine: '' }));
    const spool = await bed.open({ machine });
    expect(asides()).toEqual([]);
    expect(spool.quarantined).toBeNull();
  });
});

test('losses are saved on a full disk, in the space of the reserve', async () => {
  const spool = await bed.open();
  expect(statSync(join(bed.dir, 'reserve')).size).toBeGreaterThan(4_096);
  await write(spool, 1, 3);
  disk.hasSpace = false;
  for (let n = 4; n < 9_000; n += 500) await write(spool, n, n + 499, 1_000);
  const gone = spool.current.lost.flatMap(({ from, to }) => upTo(to).slice(from - 1));
  expect(gone.length).toBe(spool.dropped);
  // Every seq up to the last one is readable or lost, although others are still in the buffer.
  const there = new Set([...gone, ...(await readAll(spool.current))]);
  expect(upTo(spool.current.lastSeq).filter((n) => !there.has(n))).toEqual([]);
  await bed.close(spool);
  const lost: unknown = JSON.parse(readFileSync(join(spool.current.dir, 'lost.json'), 'utf8'));
  expect(lost).toEqual(spool.current.lost);
  expect(existsSync(join(bed.dir, 'reserve'))).toBe(false);
  disk.hasSpace = true;
  await bed.open();
  expect(existsSync(join(bed.dir, 'reserve'))).toBe(true);
});
