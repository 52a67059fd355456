/*
 * JSON files of the spool that hold something else than an agent writes.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { earlierOf, onlySegment, readAll, SpoolBed, upTo, write } from '../../../test/support/spoolBed.ts';
import { until } from '../../../test/support/waitFor.ts';
import { millis } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';

const lines: string[] = [];
const log = pino({}, { write: (line: string) => lines.push(line) });
const bed = new SpoolBed(() => ({ sweepInterval: millis(100), log }));

/** The epoch of an incarnation with three records. */
async function incarnation(): Promise<Epoch> {
  const spool = await bed.open();
  await write(spool, 1, 3);
  await bed.close(spool);
  return spool.current;
}

/** Opens the spool, and expects it to have said that a file is not usable. */
async function openAround(file: string) {
  lines.length = 0;
  const spool = await bed.open();
  expect(lines.filter((line) => line.includes(file) && line.includes('spool file unreadable'))).not.toEqual(
    [],
  );
  return spool;
}

describe('a file of the spool with JSON of another shape', () => {
  const shapes = ['null', '{}', '[]', '"x"', '7'];

  test.each([...shapes, '{"epoch":"x","incarnation":"1"}'])(
    'is no meta.json: of %s the records stay in their folder, and nothing is quarantined',
    async (text) => {
      const [broken, whole] = [await incarnation(), await incarnation()];
      writeFileSync(join(broken.dir, 'meta.json'), text);
      const spool = await openAround('meta.json');
      expect(spool.quarantined).toBeNull();
      expect(spool.epochs.map(({ dir }) => dir)).toEqual([whole.dir, spool.current.dir]);
      expect(spool.current.meta.incarnation).toBeGreaterThan(whole.meta.incarnation);
      expect(existsSync(onlySegment(broken))).toBe(true);
    },
  );

  test.each([
    'null',
    '{}',
    '"x"',
    '7',
    '[null]',
    '[{}]',
    '[{"from":"1","to":2,"cause":"x"}]',
    '[{"from":0,"to":2}]',
  ])('is no lost.json: with %s all records are read', async (text) => {
    const epoch = await incarnation();
    writeFileSync(join(epoch.dir, 'lost.json'), text);
    const earlier = earlierOf(await openAround('lost.json'));
    expect(earlier.lost).toEqual([]);
    expect(await readAll(earlier)).toEqual(upTo(3));
  });

  test.each(['null', '{}', '"7"', '-1', '1.5'])(
    'is no reached.json: with %s all records are read',
    async (text) => {
      const epoch = await incarnation();
      writeFileSync(join(epoch.dir, 'reached.json'), text);
      const earlier = earlierOf(await openAround('reached.json'));
      expect(earlier.lastSeq).toBe(3);
      expect(await readAll(earlier)).toEqual(upTo(3));
    },
  );

  test.each(['null', '{}', '7', '[null]', '[{}]', '[{"meta":{},"last":1,"at":1,"context":null}]'])(
    'is no retired.json: with %s no retired epoch is remembered',
    async (text) => {
      const { meta } = await incarnation();
      const spool = await bed.open();
      earlierOf(spool).acknowledge(earlierOf(spool).lastSeq);
      await until(() => spool.epochs[0]?.retirement !== null);
      await bed.close(spool);
      const file = join(bed.dir, 'retired.json');
      expect(readFileSync(file, 'utf8')).toContain(meta.epoch);
      writeFileSync(file, text);
      expect((await openAround('retired.json')).epochs.every(({ retirement }) => retirement === null)).toBe(
        true,
      );
    },
  );
});
