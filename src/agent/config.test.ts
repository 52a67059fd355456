import { expect, test } from 'vitest';
import { millis } from '../protocol/units.ts';
import { checkTogether } from './config.ts';

test.each([
  [2_000, 2_000],
  [60_000, 500],
])('a grace of %d ms and a time to confirm of %d ms are refused: both are named', (grace, confirm) => {
  const together = { grace: millis(grace), confirm: millis(confirm) };
  expect(() => checkTogether(together)).toThrow(
    expect.objectContaining({
      code: 'SETTING_INVALID',
      message: expect.stringMatching(/--confirm \(PLEGWATCH_CONFIRM\).*--grace \(PLEGWATCH_GRACE\)/),
    }),
  );
});

test('a time to confirm that is longer than the grace is taken', () => {
  expect(() => checkTogether({ grace: millis(2_000), confirm: millis(2_500) })).not.toThrow();
});
