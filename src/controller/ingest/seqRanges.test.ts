import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { divideSeqs, multirange, type SeqRange, seqsIn, seqsOf } from './seqRanges.ts';

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

  it('a multirange is read as Postgres writes it, without the end of each range', () => {
    expect(seqsIn('{}')).toEqual([]);
    expect(seqsIn('{[1,5),[8,9)}')).toEqual([
      { from: 1, to: 4 },
      { from: 8, to: 8 },
    ]);
  });

  const RANGES = [
    { from: 3, to: 5 },
    { from: 9, to: 10 },
  ];
  it.each([
    [0, [], RANGES],
    [2, [{ from: 3, to: 4 }], [{ from: 5, to: 5 }, RANGES[1]]],
    [3, [RANGES[0]], [RANGES[1]]],
    [4, [RANGES[0], { from: 9, to: 9 }], [{ from: 10, to: 10 }]],
    [9, RANGES, []],
  ])('the first %i of five seqs in two ranges are within the quota', (count, within, beyond) => {
    expect(divideSeqs(RANGES, count)).toEqual({ within, beyond });
  });
});
