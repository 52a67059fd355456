/*
 * What is read of a spool whose files were damaged.
 */
import { appendFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
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
  const lineOf = (file: string, n: number): { from: number; to: number } => {
    const text = readFileSync(file);
    const starts = [0];
    for (let at = text.indexOf(10); at !== -1; at = text.indexOf(10, at + 1)) starts.push(at + 1);
    return { from: starts[n] ?? 0, to: (starts[n + 1] ?? 0) - 1 };
  };

  test('ends before its torn last line', async () => {
    const spool = await damaged((file) => writeFileSync(file, readFileSync(file).subarray(0, -5)));
    expect(await readAll(earlierOf(spool))).toEqual(upTo(9));
    expect(earlierOf(spool).lost).toEqual([]);
    expect(earlierOf(spool).lastSeq).toBe(9);
  });

  test('ends before a tail of zeros, which a power cut may leave', async () => {
    const spool = await damaged((file) => appendFileSync(file, Buffer.alloc(4096)));
    expect(await readAll(earlierOf(spool))).toEqual(upTo(10));
  });

  test.each(['', 'null', '7', '"x"', '{"s":"1","c":1,"r":{}}', '{"x":7}'])(
    'ends before a line that no agent writes, although its checksum is right: %s',
    async (json) => {
      const line = `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
      const spool = await damaged((file) => appendFileSync(file, line));
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
        // What one spool declared lost stays lost.
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

  test('loses the records from a flipped byte on, and declares them as far as later lines show them', async () => {
    const spool = await damaged((file) => {
      const bytes = readFileSync(file);
      const { from } = lineOf(file, 7);
      bytes[from + 30] = (bytes[from + 30] ?? 0) ^ 1;
      writeFileSync(file, bytes);
    });
    const read = await readAll(earlierOf(spool));
    expect(read).toEqual(upTo(read.length));
    expect(read.length).toBeLessThan(10);
    expect(earlierOf(spool).lost).toEqual([{ from: read.length + 1, to: 10, cause: 'spool_corrupt' }]);
    expect(earlierOf(spool).lastSeq).toBe(10);
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
    expect(earlierOf(spool).lost).toEqual([{ ...lost, cause: 'spool_corrupt' }]);
    expect(await readAll(earlierOf(spool))).toEqual([...upTo(lost.from - 1), ...upTo(3000, lost.to + 1)]);
  });
});
