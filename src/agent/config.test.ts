import { expect, test } from 'vitest';
import { millis } from '../protocol/units.ts';
import { checkCombination } from './config.ts';

test.each([
  [2_000, 2_000],
  [60_000, 500],
])(
  '--overdue-after %d ms with --missed-after %d ms is refused, and the error names both',
  (overdueAfter, missedAfter) => {
    const together = { overdueAfter: millis(overdueAfter), missedAfter: millis(missedAfter) };
    expect(() => checkCombination(together)).toThrow(
      expect.objectContaining({
        code: 'SETTING_INVALID',
        message: expect.stringMatching(
          /--missed-after \(PLEGWATCH_MISSED_AFTER\).*--overdue-after \(PLEGWATCH_OVERDUE_AFTER\)/,
        ),
      }),
    );
  },
);

test('a --missed-after above --overdue-after is accepted', () => {
  expect(() => checkCombination({ overdueAfter: millis(2_000), missedAfter: millis(2_500) })).not.toThrow();
});
