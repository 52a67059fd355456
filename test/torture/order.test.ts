import { expect, test } from 'vitest';
import { orderText, parseOrder } from './order.ts';

test('an order is what its text says', () => {
  const steps = parseOrder('+1 +0 -1 -0', 2);
  expect(steps?.[1]).toEqual({ is: 'begins', fault: 0 });
  expect(orderText(steps ?? [])).toBe('+1 +0 -1 -0');
});

test.each(['', '+0', '+0 -0 +1', '-0 +0 +1 -1', '+0 -0 +0 -0', '+0 -0 +1 -2', '+0 -0 +1 -1 x'])(
  'a text in which a fault does not begin and then end once is no order: %s',
  (text) => {
    expect(parseOrder(text, 2)).toBeNull();
  },
);
