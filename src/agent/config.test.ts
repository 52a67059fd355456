import { expect, test } from 'vitest';
import { millis } from '../protocol/units.ts';
import { checkCombination } from './config.ts';

test.each([
  [2_000, 2_000],
  [60_000, 500],
])('a grace of %d ms and a time to confirm of %d ms are refused: both are named', (grace, confirm) => {
  const together = { overdueAfter: millis(grace), missedAfter: millis(confirm) };
  expect(() => checkCombination(together)).toThrow(
    expect.objectContaining({
      code: 'SETTING_INVALID',
      message: expect.stringMatching(
        /--missed-after \(PLEGWATCH_MISSED_AFTER\).*--overdue-after \(PLEGWATCH_OVERDUE_AFTER\)/,
      ),
    }),
  );
});

test('a time to confirm that is longer than the grace is taken', () => {
  expect(() => checkCombination({ overdueAfter: millis(2_000), missedAfter: millis(2_500) })).not.toThrow();
});
