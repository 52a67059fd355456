import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { multirange, type Range, seqsOf } from './ranges.ts';

const seqs = fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 60 });

function parse(literal: string): Range[] {
  return [...literal.matchAll(/\[(\d+),(\d+)\]/g)].map(([, from, to]) => ({
    from: Number(from),
    to: Number(to),
  }));
}

describe('ranges of seqs', () => {
  it('hold exactly the seqs they were made of', () => {
    fc.assert(
      fc.property(seqs, (given) => {
        const held = [...seqsOf(parse(multirange(given)))];
        expect(held).toEqual([...new Set(given)].sort((a, b) => a - b));
      }),
    );
  });

  it('never touch each other', () => {
    fc.assert(
      fc.property(seqs, (given) => {
        const ranges = parse(multirange(given));
        for (const [at, range] of ranges.slice(1).entries()) {
          expect(range.from).toBeGreaterThan((ranges[at]?.to ?? 0) + 1);
        }
      }),
    );
  });

  it('of nothing are the empty set', () => {
    expect(multirange([])).toBe('{}');
  });
});
