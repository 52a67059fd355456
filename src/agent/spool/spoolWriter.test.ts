/*
 * Records that are appended just as a write ends.
 */
import { expect, test } from 'vitest';
import { CONTEXT, readAll, SpoolBed, spoolRecord, upTo } from '../../../test/support/spoolBed.ts';

const bed = new SpoolBed();

test('a record is written that is appended while a write ends that found none', async () => {
  const spool = await bed.open();
  spool.setContext(CONTEXT);
  void spool.flush();
  spool.append(spoolRecord(1), null);
  await spool.flush();
  expect(await readAll(spool.current)).toEqual(upTo(1));
});
