import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LIST_FIELDS, MAX_INT4 } from '../protocol/record.ts';
import { packLists, unpackLists } from './listTimes.ts';

const anyNumber = fc.oneof(
  fc.integer({ min: -MAX_INT4, max: MAX_INT4 }),
  fc.integer({ min: -200, max: 200 }),
);

describe('packed list times', () => {
  it('are the same numbers again, whatever an agent says', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(anyNumber, { minLength: 6, maxLength: 6 }), { maxLength: 20 }),
        (relists) => {
          expect(unpackLists(packLists(relists.flat()))).toEqual(relists.flat());
        },
      ),
    );
  });

  it('leave out a relist that is not complete', () => {
    const relist = [1, 2, 3, 4, 0, -5];
    expect(unpackLists(packLists([...relist, 9, 9]))).toEqual(relist);
  });

  it('take at most nine bytes for a relist of a steady agent', () => {
    const lists = Array.from({ length: 12 }, (_, i) => {
      const from = 5e6 * i + ((i * 7_919) % 1_000);
      return [from, from + 1_100 + i, from + 1_150 + i, from + 2_900 + i, 0, -3e6];
    }).flat();
    expect(lists).toHaveLength(12 * LIST_FIELDS.length);
    expect(packLists(lists).length).toBeLessThanOrEqual(12 * 9);
  });
});
