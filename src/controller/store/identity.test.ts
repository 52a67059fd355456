import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cidOf, objectKey } from './identity.ts';

describe('the key of an id', () => {
  it('is the first 8 bytes of its sha256, signed, and never changes', () => {
    // sha256('abc') begins with ba7816bf8f01cfea.
    expect(objectKey('abc')).toBe('-5010229573455851542');
    fc.assert(
      fc.property(fc.string(), (id) => {
        const digest = createHash('sha256').update(id).digest();
        expect(BigInt.asUintN(64, BigInt(objectKey(id)))).toBe(digest.readBigUInt64BE(0));
      }),
    );
  });
});

describe('the bytes of an id', () => {
  it('give the id back, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (id) => {
        const { hex, isText } = cidOf(id);
        expect(isText ? Buffer.from(hex, 'hex').toString('utf8') : hex).toBe(id);
      }),
    );
  });

  it('are the id itself where it is lower-case hexadecimal of whole bytes', () => {
    expect(cidOf('0aff')).toEqual({ hex: '0aff', isText: false });
    for (const id of ['0af', '0AFF', 'xyz', '']) expect(cidOf(id).isText).toBe(true);
  });
});
