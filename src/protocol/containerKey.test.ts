import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { containerKey } from './containerKey.ts';

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
});
