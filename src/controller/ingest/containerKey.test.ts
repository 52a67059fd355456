import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { containerKey, encodeId } from './containerKey.ts';

describe('container ids in the store', () => {
  it('the key is the first 8 bytes of the sha256 of the id, signed, and never changes', () => {
    // sha256('abc') begins with ba7816bf8f01cfea.
    expect(containerKey('abc')).toBe('-5010229573455851542');
    fc.assert(
      fc.property(fc.string(), (id) => {
        const digest = createHash('sha256').update(id).digest();
        expect(BigInt.asUintN(64, BigInt(containerKey(id)))).toBe(digest.readBigUInt64BE(0));
      }),
    );
  });

  it('every id can be read back from its bytes', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (id) => {
        const { hex, isText } = encodeId(id);
        expect(isText ? Buffer.from(hex, 'hex').toString('utf8') : hex).toBe(id);
      }),
    );
  });

  it('an id in lower-case hexadecimal of whole bytes is stored as these bytes, any other as its text', () => {
    expect(encodeId('0aff')).toEqual({ hex: '0aff', isText: false });
    for (const id of ['0af', '0AFF', 'xyz', '']) expect(encodeId(id).isText).toBe(true);
  });
});
