import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  CONTEXT,
  readAll,
  SpoolBed,
  spoolOptions,
  spoolRecord,
  upTo,
  write,
  writesAgain,
} from '../../../test/support/spoolBed.ts';
import { passes, until } from '../../../test/support/waitFor.ts';
import { createLogger } from '../../platform/log.ts';
import { millis, seq } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import { openSpool } from './openSpool.ts';
import type { Spool } from './spool.ts';

const MIB = 1024 * 1024;
const bed = new SpoolBed();

const segmentsOf = (epoch: Epoch): string[] => epoch.segments.map(({ file }) => join(epoch.dir, file));
const onlySegment = (epoch: Epoch): string => segmentsOf(epoch)[0] ?? '';
const firstOf = (spool: Spool): Epoch => {
  const [epoch] = spool.epochs;
  if (epoch === undefined || epoch === spool.current) throw new Error('there is no earlier epoch');
  return epoch;
};

describe('appending', () => {
  test('a written record can be read at once, in order, with its object and its context', async () => {
    const spool = await bed.open();
    spool.setContext(CONTEXT);
    const object = {
      id: 'c1',
      sandbox: 's1',
      isSandbox: false,
      podUid: 'u',
      namespace: 'n',
      pod: 'p\u{1f600}',
      container: 'app',
      attempt: 0,
    };
    spool.append(spoolRecord(1), object);
    spool.append(spoolRecord(2), null);
    await spool.flush();
    const [first, second] = await spool.current.read(1, 500, MIB);
    expect(first).toMatchObject({
      seq: 1,
      object,
      record: spoolRecord(1),
      context: { no: 1, runtime: CONTEXT.runtime },
    });
    expect(second).toMatchObject({ seq: 2, object: null });
  });

  test('a read ends at the maximum of records or bytes and at a new context, but returns at least one record', async () => {
    const spool = await bed.open();
    await write(spool, 1, 5);
    spool.setContext({ ...CONTEXT, kubelet: '1.36.2' });
    await write(spool, 6, 8);
    const sizes = async (from: number, records: number, bytes: number) =>
      (await spool.current.read(from, records, bytes)).map((entry) => entry.seq);
    expect(await sizes(1, 3, MIB)).toEqual([1, 2, 3]);
    expect(await sizes(1, 500, MIB)).toEqual([1, 2, 3, 4, 5]);
    expect(await sizes(6, 500, MIB)).toEqual([6, 7, 8]);
    expect(await sizes(2, 500, 1)).toEqual([2]);
    expect(await sizes(9, 500, MIB)).toEqual([]);
  });

  test('a record keeps the context it was appended in, although the next one begins before its segment does', async () => {
    const spool = await bed.open();
    await write(spool, 1, 20, 64 * 1024);
    spool.append(spoolRecord(21), null);
    spool.setContext({ ...CONTEXT, kubelet: '1.36.2' });
    await write(spool, 22, 22);
    expect(spool.current.segments.map(({ first }) => first)).toEqual([1, 21]);
    const [before] = await spool.current.read(21, 500, MIB);
    expect(before).toMatchObject({ seq: 21, context: { no: 1, kubelet: '' } });
    const [after] = await spool.current.read(22, 500, MIB);
    expect(after).toMatchObject({ seq: 22, context: { no: 2, kubelet: '1.36.2' } });
  });

  test('reading while records are written skips none', async () => {
    const spool = await bed.open({ fsyncInterval: millis(1_000) });
    const all = 4_000;
    const writing = (async () => {
      for (let n = 1; n <= all; n += 5) {
        void write(spool, n, n + 4);
        await setImmediate();
      }
    })();
    const reads: { asked: number; got: number | undefined }[] = [];
    for (let next = 1; next <= all; await setImmediate()) {
      if (next > spool.current.lastSeq) continue;
      const entries = await spool.current.read(next, 500, MIB);
      reads.push({ asked: next, got: entries[0]?.seq });
      // The shipper would take an empty read of written records for a loss.
      next = (entries.at(-1)?.seq ?? spool.current.lastSeq) + 1;
    }
    await writing;
    expect(reads.filter(({ asked, got }) => got !== asked)).toEqual([]);
  });

  test('a record before the first context is an error', async () => {
    const spool = await bed.open();
    expect(() => spool.append(spoolRecord(1), null)).toThrow();
  });

  test('a new segment begins after 1 MiB', async () => {
    const spool = await bed.open();
    for (let n = 1; n <= 2000; n += 500) await write(spool, n, n + 499, 1000);
    expect(spool.current.segments.length).toBeGreaterThan(1);
    expect(await readAll(spool.current)).toEqual(upTo(2000));
  });
});

describe('the next incarnation', () => {
  test('reads what the one before wrote, and has a higher number', async () => {
    const first = await bed.open();
    await write(first, 1, 10);
    const { meta } = first.current;
    await bed.close(first);
    const second = await bed.open();
    expect(second.current.meta).toMatchObject({
      prev: meta.epoch,
      cluster: 'prod',
      node: 'node-1',
    });
    expect(second.current.meta.incarnation).toBeGreaterThan(meta.incarnation);
    expect(firstOf(second).meta).toEqual(meta);
    expect(await readAll(firstOf(second))).toEqual(upTo(10));
  });

  test('has a higher number even when all earlier epochs are gone', async () => {
    const first = await bed.open();
    const { incarnation } = first.current.meta;
    await first.startHeartbeat(() => first.start);
    await bed.close(first);
    rmSync(join(bed.dir, 'epochs'), { recursive: true });
    expect((await bed.open()).current.meta.incarnation).toBeGreaterThan(incarnation);
  });

  test('removes an epoch folder that has neither meta.json nor records', async () => {
    mkdirSync(join(bed.dir, 'epochs', '0000000001-half'), { recursive: true });
    const spool = await bed.open();
    expect(spool.epochs).toHaveLength(1);
    expect(existsSync(join(bed.dir, 'epochs', '0000000001-half'))).toBe(false);
  });

  test('keeps records whose meta.json cannot be read', async () => {
    const first = await bed.open();
    await write(first, 1, 3);
    const kept = onlySegment(first.current);
    const meta = join(first.current.dir, 'meta.json');
    await bed.close(first);
    writeFileSync(meta, '');
    const second = await bed.open();
    expect(second.epochs).toHaveLength(1);
    expect(existsSync(kept)).toBe(true);
  });
});

describe('a damaged segment', () => {
  async function damaged(damage: (file: string) => void, last = 10): Promise<Spool> {
    const first = await bed.open();
    await write(first, 1, last);
    const file = onlySegment(first.current);
    await bed.close(first);
    damage(file);
    return bed.open();
  }
  const lineOf = (file: string, n: number): { from: number; to: number } => {
    const text = readFileSync(file);
    const starts = [0];
    for (let at = text.indexOf(10); at !== -1; at = text.indexOf(10, at + 1)) starts.push(at + 1);
    return { from: starts[n] ?? 0, to: (starts[n + 1] ?? 0) - 1 };
  };

  test('ends before its torn last line', async () => {
    const spool = await damaged((file) => writeFileSync(file, readFileSync(file).subarray(0, -5)));
    expect(await readAll(firstOf(spool))).toEqual(upTo(9));
    expect(firstOf(spool).lost).toEqual([]);
    expect(firstOf(spool).lastSeq).toBe(9);
  });

  test('ends before a tail of zeros, which a power cut may leave', async () => {
    const spool = await damaged((file) => appendFileSync(file, Buffer.alloc(4096)));
    expect(await readAll(firstOf(spool))).toEqual(upTo(10));
  });

  test('truncated anywhere, yields a prefix of what was written', async () => {
    const first = await bed.open();
    await write(first, 1, 10);
    const file = onlySegment(first.current);
    const whole = readFileSync(file);
    await bed.close(first);
    const epochs = join(bed.dir, 'epochs');
    const before = join(bed.dir, 'before');
    cpSync(epochs, before, { recursive: true });
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: whole.length }), async (size) => {
        // What one spool declared lost stays lost.
        rmSync(epochs, { recursive: true });
        cpSync(before, epochs, { recursive: true });
        writeFileSync(file, whole.subarray(0, size));
        const spool = await bed.open();
        const read = spool.epochs.length > 1 ? await readAll(firstOf(spool)) : [];
        await bed.close(spool);
        expect(read).toEqual(upTo(read.length));
      }),
      { numRuns: 25 },
    );
  });

  test('loses the records from a flipped byte on, and declares them as far as later lines show them', async () => {
    const spool = await damaged((file) => {
      const bytes = readFileSync(file);
      const { from } = lineOf(file, 7);
      bytes[from + 30] = (bytes[from + 30] ?? 0) ^ 1;
      writeFileSync(file, bytes);
    });
    const read = await readAll(firstOf(spool));
    expect(read).toEqual(upTo(read.length));
    expect(read.length).toBeLessThan(10);
    expect(firstOf(spool).lost).toEqual([{ from: read.length + 1, to: 10, cause: 'spool_corrupt' }]);
    expect(firstOf(spool).lastSeq).toBe(10);
  });

  test('that is gone in the middle of an epoch is declared lost', async () => {
    const first = await bed.open();
    for (let n = 1; n <= 3000; n += 500) await write(first, n, n + 499, 1000);
    const [, second, third] = first.current.segments;
    const gone = segmentsOf(first.current)[1] ?? '';
    await bed.close(first);
    rmSync(gone);
    const spool = await bed.open();
    const lost = { from: second?.first ?? 0, to: (third?.first ?? 0) - 1 };
    expect(firstOf(spool).lost).toEqual([{ ...lost, cause: 'spool_corrupt' }]);
    expect(await readAll(firstOf(spool))).toEqual([...upTo(lost.from - 1), ...upTo(3000, lost.to + 1)]);
  });
});

describe('a full spool', () => {
  const small = { maxBytes: 4 * MIB };

  test('drops acknowledged segments first, which loses nothing', async () => {
    const spool = await bed.open(small);
    for (let n = 1; n <= 8000; n += 500) {
      await write(spool, n, n + 499, 1000);
      spool.current.acknowledge(seq(n + 499));
    }
    expect(spool.dropped).toBe(0);
    expect(spool.current.lost).toEqual([]);
    expect(spool.bytes).toBeLessThanOrEqual(small.maxBytes);
  });

  test('drops the oldest segments and declares exactly their records lost, after a restart too', async () => {
    const spool = await bed.open(small);
    for (let n = 1; n <= 8000; n += 500) await write(spool, n, n + 499, 1000);
    spool.current.acknowledge(seq(100));
    await write(spool, 8001, 8500, 1000);
    const { lost, oldestSeq } = spool.current;
    const to = oldestSeq - 1;
    expect(spool.dropped).toBeGreaterThan(0);
    expect(lost).toEqual([{ from: 1, to, cause: 'spool_full' }]);
    expect(spool.dropped).toBe(to);
    expect(await readAll(spool.current)).toEqual(upTo(8500, oldestSeq));
    await bed.close(spool);
    const next = await bed.open(small);
    expect(firstOf(next).lost).toEqual(lost);
    expect(await readAll(firstOf(next))).toEqual(upTo(8500, firstOf(next).oldestSeq));
  });
});

test('records after a segment that someone deleted can be read', async () => {
  const spool = await bed.open();
  for (let n = 1; n <= 3000; n += 500) await write(spool, n, n + 499, 1000);
  const [, second, third] = spool.current.segments;
  rmSync(segmentsOf(spool.current)[1] ?? '');
  const [next] = await spool.current.read(second?.first ?? 0, 1, 1);
  expect(next?.seq).toBe(third?.first);
  expect(spool.current.isDeclaredLost(second?.first ?? 0, second?.last ?? 0)).toBe(false);
});

test('overlapping lost ranges count once', async () => {
  const { current } = await bed.open();
  current.declareLost({ from: 1, to: 10, cause: 'spool_unreadable' });
  current.declareLost({ from: 1, to: 10, cause: 'spool_full' });
  expect(current.isDeclaredLost(1, 10)).toBe(true);
  expect(current.isDeclaredLost(1, 20)).toBe(false);
  current.declareLost({ from: 8, to: 20, cause: 'spool_full' });
  expect(current.isDeclaredLost(1, 20)).toBe(true);
  expect(current.isDeclaredLost(21, 20)).toBe(true);
});

describe('a segment that is dropped while it is read', () => {
  test('does not make the reader skip the next one', async () => {
    const spool = await bed.open();
    for (let n = 1; n <= 4; n += 1) await write(spool, 300 * (n - 1) + 1, 300 * n, 4_000);
    const [first, second] = spool.current.segments;
    if (first === undefined) throw new Error('there is no segment');
    const reading = spool.current.read(1, 500, MIB);
    // The file is open and not read yet.
    const dropping = spool.current.drop(first, 'spool_full');
    const entries = await reading.catch(() => []);
    await dropping;
    expect(spool.current.segments[0]).toBe(second);
    const nextRead = entries[0]?.seq ?? (await spool.current.read(first.last + 1, 1, 1))[0]?.seq;
    expect(nextRead).toBe(second?.first);
  });
});

describe('a spool that cannot be written', () => {
  /** With a file in place of the epoch's folder every new segment fails, for root too. */
  const breakDisk = (spool: Spool): void => {
    rmSync(spool.current.dir, { recursive: true });
    writeFileSync(spool.current.dir, '');
  };
  const mendDisk = (spool: Spool): void => {
    rmSync(spool.current.dir);
    mkdirSync(spool.current.dir);
  };

  test('reports an error, keeps records in the buffer, and writes them when it can again', async () => {
    const spool = await bed.open();
    breakDisk(spool);
    await write(spool, 1, 5);
    expect(spool.error).not.toBeNull();
    expect(await readAll(spool.current)).toEqual([]);
    mendDisk(spool);
    await writesAgain(spool);
    expect(await readAll(spool.current)).toEqual(upTo(5));
    expect(spool.dropped).toBe(0);
  });

  test('drops the oldest records when its buffer is full, and declares them lost', async () => {
    const spool = await bed.open();
    breakDisk(spool);
    await write(spool, 1, 10_000, 1000);
    expect(spool.dropped).toBeGreaterThan(0);
    mendDisk(spool);
    await writesAgain(spool);
    const [range, ...others] = spool.current.lost;
    expect(others).toEqual([]);
    expect(range).toMatchObject({ cause: 'spool_unwritable' });
    const { from, to } = range ?? { from: 0, to: 0 };
    expect(to - from + 1).toBe(spool.dropped);
    expect(await readAll(spool.current)).toEqual([...upTo(from - 1), ...upTo(10_000, to + 1)]);
  });
});

describe.skipIf(process.getuid?.() !== 0)(
  'on a full disk (a small tmpfs, which needs root) the spool',
  () => {
    let disk: string;

    beforeEach(() => {
      disk = mkdtempSync(join(tmpdir(), 'plegwatch-disk-'));
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk]);
    });
    afterEach(async () => {
      await bed.closeAll();
      execFileSync('umount', [disk]);
      rmSync(disk, { recursive: true });
    });

    test('leaves no empty files, loses no record, and writes again when there is space', async () => {
      const filler = join(disk, 'filler');
      const spool = await bed.open({ dir: disk });
      await write(spool, 1, 100, 500);
      writeFileSync(filler, '');
      const fill = () => {
        try {
          for (;;) appendFileSync(filler, Buffer.alloc(4096));
        } catch (error) {
          expect(error).toMatchObject({ code: 'ENOSPC' });
        }
      };
      fill();
      for (let n = 101; n <= 600; n += 50) await write(spool, n, n + 49, 500);
      expect(spool.error).toContain('ENOSPC');
      const files = readdirSync(spool.current.dir).filter((name) => name.endsWith('.seg'));
      expect(files.length).toBeLessThanOrEqual(2);
      const before = await readAll(spool.current);
      expect(before).toEqual(upTo(before.length));
      expect(before.length).toBeGreaterThanOrEqual(100);
      rmSync(filler);
      await writesAgain(spool);
      expect(await readAll(spool.current)).toEqual(upTo(600));
      await bed.close(spool);
      const next = await bed.open({ dir: disk });
      expect(await readAll(firstOf(next))).toEqual(upTo(600));
      expect(firstOf(next).lost).toEqual([]);
    });
  },
);

describe('one agent per node', () => {
  const holder = `
    import { DatabaseSync } from 'node:sqlite';
    const database = new DatabaseSync(process.argv[1]);
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    process.stdout.write('held');
    setInterval(() => {}, 1000);
  `;

  test('an agent waits for a spool that another process has locked, until that process is killed', async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', holder, join(bed.dir, 'lock')], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(child.stdout, 'data');
    const warned = vi.fn();
    const log = Object.assign(createLogger('fatal', 'test'), { warn: warned });
    const opening = bed.open({ log });
    await until(() => warned.mock.calls.length === 1);
    expect(readdirSync(join(bed.dir, 'epochs'))).toEqual([]);
    child.kill('SIGKILL');
    expect((await opening).epochs).toHaveLength(1);
    expect(warned).toHaveBeenCalledTimes(1);
  });

  test('an agent whose lock file is deleted leaves the spool to the one that locks the next file', async () => {
    const first = await bed.open();
    await write(first, 1, 3);
    rmSync(join(bed.dir, 'lock'));
    const second = await bed.open();
    await second.startHeartbeat(() => second.start);
    const { incarnation } = second.current.meta;
    await first.startHeartbeat(() => first.start);
    expect(first.full.aborted).toBe(true);
    expect(first.error).toContain('lock');
    expect(second.full.aborted).toBe(false);
    first.current.declareLost({ from: 1, to: 3, cause: 'spool_unreadable' });
    await bed.close(first);
    expect(existsSync(join(first.current.dir, 'lost.json'))).toBe(false);
    const heartbeat = JSON.parse(readFileSync(join(bed.dir, 'heartbeat.json'), 'utf8'));
    expect(heartbeat).toMatchObject({ incarnation });
  });

  test('an agent whose folder is replaced leaves the new one to whoever locks it', async () => {
    const spool = await bed.open();
    await write(spool, 1, 3);
    rmSync(bed.dir, { recursive: true });
    mkdirSync(bed.dir);
    await spool.startHeartbeat(() => spool.start);
    expect(spool.full.aborted).toBe(true);
    await bed.close(spool);
    const next = await bed.open();
    await write(next, 1, 3);
    expect(next.error).toBeNull();
    expect(await readAll(next.current)).toEqual(upTo(3));
  });

  test('the lock file that a dead agent left does not keep the next one waiting', async () => {
    const warned = vi.fn();
    const log = Object.assign(createLogger('fatal', 'test'), { warn: warned });
    writeFileSync(join(bed.dir, 'lock'), '');
    expect((await bed.open({ log })).epochs).toHaveLength(1);
    expect(warned).not.toHaveBeenCalled();
  });

  test.skipIf(process.getuid?.() !== 0)(
    'an agent waits for a spool that another one has under another path',
    async () => {
      const other = mkdtempSync(join(tmpdir(), 'plegwatch-bind-'));
      execFileSync('mount', ['--bind', bed.dir, other]);
      try {
        const first = await bed.open();
        const warned = vi.fn();
        const log = Object.assign(createLogger('fatal', 'test'), { warn: warned });
        const opening = bed.open({ dir: other, log });
        await passes(() => expect(warned).toHaveBeenCalledTimes(1));
        await bed.close(first);
        await bed.close(await opening);
      } finally {
        execFileSync('umount', [other]);
        rmSync(other, { recursive: true });
      }
    },
  );

  test('waiting for the lock ends when the agent is stopped', async () => {
    await bed.open();
    const stop = new AbortController();
    const second = openSpool(spoolOptions(bed.dir), stop.signal);
    stop.abort(new Error('enough'));
    await expect(second).rejects.toThrow();
  });

  test('a spool folder that cannot be created is reported with its cure', async () => {
    writeFileSync(join(bed.dir, 'file'), '');
    await expect(bed.open({ dir: join(bed.dir, 'file') })).rejects.toMatchObject({
      code: 'SPOOL_UNUSABLE',
      cure: expect.stringContaining('--spool-dir'),
    });
  });
});
