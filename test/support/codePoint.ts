/*
 * Any code point but half a surrogate pair, as the unit of a random text. fast-check's own unit for that, `binary`, computes for a second
 * before the first text.
 */
import * as fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };

export const codePoint: fc.Arbitrary<string> = fc
  .nat({ max: 0x10ffff - SURROGATES.count })
  .map((n) => String.fromCodePoint(n < SURROGATES.first ? n : n + SURROGATES.count), numberOf);

/** The way back, which fast-check needs for texts such as `__proto__`. */
function numberOf(text: unknown): number {
  const [only = '', ...more] = typeof text === 'string' ? text : '';
  const code = only.codePointAt(0);
  if (code === undefined || more.length > 0) throw new Error('not one code point');
  return code < SURROGATES.first ? code : code - SURROGATES.count;
}
