import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { multirange, type SeqRange, seqsOf } from './seqRanges.ts';

const seqs = fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 60 });

function parse(literal: string): SeqRange[] {
  return [...literal.matchAll(/\[(\d+),(\d+)\]/g)].map(([, from, to]) => ({
    from: Number(from),
    to: Number(to),
  }));
}

describe('seq ranges', () => {
  it('a multirange holds exactly the seqs that it was made of', () => {
    fc.assert(
      fc.property(seqs, (given) => {
        const held = [...seqsOf(parse(multirange(given)))];
        expect(held).toEqual([...new Set(given)].sort((a, b) => a - b));
      }),
    );
  });

  it('the ranges of a multirange never touch each other', () => {
    fc.assert(
      fc.property(seqs, (given) => {
        const ranges = parse(multirange(given));
        for (const [at, range] of ranges.slice(1).entries()) {
          expect(range.from).toBeGreaterThan((ranges[at]?.to ?? 0) + 1);
        }
      }),
    );
  });

  it('the multirange of no seqs is empty', () => {
    expect(multirange([])).toBe('{}');
  });
});
