/*
 * The memory of the reader of an epoch.
 */
import { expect, test } from 'vitest';
import { readAll, SpoolBed, upTo, write } from '../../../test/support/spoolBed.ts';
import { seq } from '../../protocol/units.ts';
import { LOCAL_FILES } from './files.ts';
import { SegmentReader } from './segment.ts';

const bed = new SpoolBed();

test('records are kept until they are released, and read again if they must be', async () => {
  const spool = await bed.open();
  await write(spool, 1, 10);
  const [segment] = spool.current.segments;
  if (segment === undefined) throw new Error('there is no segment');
  const reader = new SegmentReader(LOCAL_FILES, spool.current.dir, new Map());
  const seqsFrom = async (from: number) =>
    (await reader.entriesOf(segment, from)).entries.map((each) => each.seq);
  expect(await seqsFrom(1)).toEqual(upTo(10));
  reader.release(7);
  expect(await seqsFrom(8)).toEqual(upTo(10, 8));
  await write(spool, 11, 12);
  expect(await seqsFrom(8)).toEqual(upTo(12, 8));
  expect(await seqsFrom(3)).toEqual(upTo(12));
  reader.release(12);
  expect(await seqsFrom(13)).toEqual([]);
});

test('acknowledged records are read again if the store has forgotten them', async () => {
  const spool = await bed.open();
  await write(spool, 1, 10);
  expect(await readAll(spool.current)).toEqual(upTo(10));
  spool.current.acknowledge(seq(10));
  spool.current.acknowledge(seq(2));
  expect(await readAll(spool.current)).toEqual(upTo(10));
});
