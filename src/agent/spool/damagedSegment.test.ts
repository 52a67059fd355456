/*
 * Reading a spool with damaged files.
 */
import { appendFileSync, cpSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runsOf } from '../../../test/support/runs.ts';
import {
  earlierOf,
  onlySegment,
  readAll,
  SpoolBed,
  segmentsOf,
  upTo,
  write,
} from '../../../test/support/spoolBed.ts';
import { lineAt } from './segmentFormat.ts';
import type { Spool } from './spool.ts';

const bed = new SpoolBed();

describe('a damaged segment', () => {
  async function damaged(damage: (file: string) => void, last = 10): Promise<Spool> {
    const first = await bed.open();
    await write(first, 1, last);
    const file = onlySegment(first.current);
    await bed.close(first);
    damage(file);
    return bed.open();
  }

  const lost = (seq: number) => ({ from: seq, to: seq, cause: 'spool_corrupt' });

  test('ends before its torn last line, whose record is declared lost', async () => {
    const spool = await damaged((file) => writeFileSync(file, readFileSync(file).subarray(0, -5)));
    expect(await readAll(earlierOf(spool))).toEqual(upTo(9));
    expect(earlierOf(spool).lost).toEqual([lost(10)]);
    expect(earlierOf(spool).lastSeq).toBe(10);
  });

  test('whose only record is corrupt declares it lost', async () => {
    const spool = await damaged((file) => writeFileSync(file, readFileSync(file).subarray(0, -5)), 1);
    expect(await readAll(earlierOf(spool))).toEqual([]);
    expect(earlierOf(spool).lost).toEqual([lost(1)]);
  });

  test('ends before a tail of zeros, which a power cut may leave', async () => {
    const spool = await damaged((file) => appendFileSync(file, Buffer.alloc(4096)));
    expect(await readAll(earlierOf(spool))).toEqual(upTo(10));
    expect(earlierOf(spool).lost).toEqual([lost(11)]);
  });

  test('that is empty says how many records came before it', async () => {
    const spool = await damaged((file) => {
      rmSync(file);
      writeFileSync(join(dirname(file), '0000000011-abcdef12.seg'), '');
    });
    expect(earlierOf(spool).lastSeq).toBe(10);
  });

  test('is no file with a number that no record can have', async () => {
    const spool = await damaged((file) => writeFileSync(join(dirname(file), '9999999999-abcdef12.seg'), ''));
    expect(earlierOf(spool)).toMatchObject({ lastSeq: 10, lost: [] });
  });

  test.each(['', 'null', '7', '"x"', '{"s":"1","c":1,"r":{}}', '{"x":7}'])(
    'ends before a line that no agent writes, although its checksum is right: %s',
    async (json) => {
      const spool = await damaged((file) =>
        appendFileSync(file, lineAt(basename(file), statSync(file).size, json)),
      );
      expect(await readAll(earlierOf(spool))).toEqual(upTo(10));
    },
  );

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
        // Seqs that one spool declared lost stay lost.
        rmSync(epochs, { recursive: true });
        cpSync(before, epochs, { recursive: true });
        writeFileSync(file, whole.subarray(0, size));
        const spool = await bed.open();
        const read = spool.epochs.length > 1 ? await readAll(earlierOf(spool)) : [];
        await bed.close(spool);
        expect(read).toEqual(upTo(read.length));
      }),
      { numRuns: runsOf(25) },
    );
  });

  test('that is gone in the middle of an epoch is declared lost', async () => {
    const first = await bed.open();
    for (let n = 1; n <= 3000; n += 500) await write(first, n, n + 499, 1000);
    const [, second, third] = first.current.segments;
    const gone = segmentsOf(first.current)[1] ?? '';
    await bed.close(first);
    rmSync(gone);
    const spool = await bed.open();
    const [from, to] = [second?.first ?? 0, (third?.first ?? 0) - 1];
    expect(earlierOf(spool).lost).toEqual([{ from, to, cause: 'spool_corrupt' }]);
    expect(await readAll(earlierOf(spool))).toEqual([...upTo(from - 1), ...upTo(3000, to + 1)]);
  });
});
