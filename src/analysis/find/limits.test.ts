import { expect, test } from 'vitest';
import { searchText } from './limits.ts';

test.each([
  [' cart-7 ', 'cart-7'],
  ['shop/cart-7', 'shop/cart-7'],
  ['containerd://4f3c', '4f3c'],
  ['cri-o://4f3c', '4f3c'],
])('of %j what is searched for is %j', (raw, text) => {
  expect(searchText(raw)).toBe(text);
});

test.each([' a ', 'shop/', 'shop//cart-7', 'containerd://', '//', ''])(
  'a text that every row would match, %j, is no search',
  (raw) => expect(searchText(raw)).toBeNull(),
);
