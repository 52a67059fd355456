import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { upTo } from '../../../test/support/spoolBed.ts';
import { type LostRange, LostRanges } from './lostRanges.ts';

const range = fc
  .tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 0, max: 6 }))
  .map(([from, length]): LostRange => ({ from, to: from + length, cause: 'spool_full' }));
const seqsOf = (ranges: readonly LostRange[]): number[] => ranges.flatMap(({ from, to }) => upTo(to, from));

test('lost ranges have exactly the seqs that were declared, in whatever order and however they overlap', () => {
  fc.assert(
    fc.property(fc.array(range), fc.array(range), range, (recovered, added, asked) => {
      const ranges = new LostRanges(recovered);
      for (const each of added) ranges.add(each);
      const lost = new Set(seqsOf([...recovered, ...added]));
      expect(ranges.include(asked.from, asked.to)).toBe(seqsOf([asked]).every((each) => lost.has(each)));
      expect(seqsOf(ranges.without(asked))).toEqual(seqsOf([asked]).filter((each) => !lost.has(each)));
      expect(ranges.last).toBe(Math.max(0, ...lost));
      expect(new Set(seqsOf(ranges.declared))).toEqual(lost);
    }),
  );
});
