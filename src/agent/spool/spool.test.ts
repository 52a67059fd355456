import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  CONTEXT,
  earlierOf,
  onlySegment,
  readAll,
  SpoolBed,
  segmentsOf,
  spoolRecord,
  upTo,
  write,
} from '../../../test/support/spoolBed.ts';
import { millis, seq } from '../../protocol/units.ts';

const MIB = 1024 * 1024;
const bed = new SpoolBed();

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

  test('a record that waits to be written is not acknowledged', async () => {
    const spool = await bed.open();
    await write(spool, 1, 3);
    spool.current.acknowledge(seq(3));
    expect(spool.unackedRecords).toBe(0);
    spool.append(spoolRecord(4), null);
    expect(spool.unackedRecords).toBe(1);
    await spool.flush();
    expect(spool.unackedRecords).toBe(1);
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
    expect(earlierOf(second).meta).toEqual(meta);
    expect(await readAll(earlierOf(second))).toEqual(upTo(10));
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
    expect(earlierOf(next).lost).toEqual(lost);
    expect(await readAll(earlierOf(next))).toEqual(upTo(8500, earlierOf(next).oldestSeq));
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
