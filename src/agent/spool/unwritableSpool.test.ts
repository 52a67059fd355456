/*
 * A spool whose disk cannot be written, or is full.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { earlierOf, readAll, SpoolBed, upTo, write, writesAgain } from '../../../test/support/spoolBed.ts';
import type { Spool } from './spool.ts';

const bed = new SpoolBed();

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
      expect(await readAll(earlierOf(next))).toEqual(upTo(600));
      expect(earlierOf(next).lost).toEqual([]);
    });
  },
);
