/*
 * A spool with very many lost ranges: a disk with bad sectors in every segment leaves them. Work that grows with the square of their
 * number never ends within the time of a test.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runsOf } from '../../../test/support/runs.ts';
import { earlierOf, onlySegment, readAll, SpoolBed, upTo, write } from '../../../test/support/spoolBed.ts';
import type { Epoch } from './epoch.ts';

const bed = new SpoolBed();

/** Two seqs of every four, from this one on. */
const scattered = (ranges: number, from: number) =>
  Array.from({ length: ranges }, (_, i) => ({
    from: from + 4 * i,
    to: from + 4 * i + 1,
    cause: 'spool_unreadable',
  }));

/** Opens a spool whose last epoch has these records, and left these losses. */
async function openAfter(records: number, lost: object[], damage: (epoch: Epoch) => void = () => undefined) {
  const first = await bed.open();
  await write(first, 1, records);
  await bed.close(first);
  writeFileSync(join(first.current.dir, 'lost.json'), JSON.stringify(lost));
  damage(first.current);
  return earlierOf(await bed.open());
}

const MANY = runsOf(100_000);

test.each([MANY, 2 * MANY])('a spool with %d lost ranges opens, and declares each of them', async (count) => {
  const lost = scattered(count, 10);
  const epoch = await openAfter(3, lost);
  expect(epoch.lost).toEqual(lost);
  expect(epoch.lastSeq).toBe(lost.at(-1)?.to);
  expect(lost.every(({ from, to }) => epoch.isDeclaredLost(from, to))).toBe(true);
  expect(lost.some(({ to }) => epoch.isDeclaredLost(to, to + 1))).toBe(false);
  expect(await readAll(epoch)).toEqual(upTo(3));
});

test('records missing between many lost ranges are declared lost too', async () => {
  const lost = scattered(MANY, 10);
  const last = lost.at(-1)?.to ?? 0;
  const epoch = await openAfter(3, lost, ({ dir }) => writeFileSync(join(dir, 'reached.json'), String(last)));
  expect(epoch.isDeclaredLost(4, last)).toBe(true);
  expect(epoch.lost.filter(({ cause }) => cause === 'spool_corrupt')).toHaveLength(lost.length);
});

test('records between many lost ranges are read', async () => {
  const lost = scattered(MANY, 1);
  const records = MANY / 5;
  const epoch = await openAfter(records, lost);
  expect(await readAll(epoch)).toEqual(upTo(records).filter((seq) => seq % 4 === 3 || seq % 4 === 0));
  expect(onlySegment(epoch)).not.toBe('');
});
