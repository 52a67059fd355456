import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { codePoint } from '../../../../test/support/codePoint.ts';
import { mono } from '../../../protocol/units.ts';
import { encodeFrame, type Frame, FrameReader } from './frames.ts';

const at = fc.double({ min: 0, max: 1e15, noNaN: true }).map(mono);
const text = fc.string({ unit: codePoint });
const ns = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

const anyFrame: fc.Arbitrary<Frame> = fc.oneof(
  fc.record({ is: fc.constant('version' as const), at, name: text, version: text }),
  fc.record({ is: fc.constant('opened' as const), at, wallNs: ns }),
  fc.record({
    is: fc.constant('event' as const),
    at,
    bytes: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  }),
  fc.record({
    is: fc.constant('digest' as const),
    at,
    id: text,
    type: fc.nat({ max: 255 }),
    createdNs: ns,
  }),
  fc.record({ is: fc.constant('drained' as const), at }),
  fc.record({ is: fc.constant('ended' as const), at, code: text, message: text }),
  fc.record({ is: fc.constant('overflow' as const), at, events: fc.nat() }),
);

/** The output of a pipe that cuts its input where it likes. */
function through(bytes: Buffer, cuts: readonly number[]): Frame[] {
  const reader = new FrameReader();
  const edges = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  );
  return edges.flatMap((edge, i) => [...reader.push(bytes.subarray(edge, edges[i + 1] ?? edge))]);
}

test('frames are decoded as encoded, wherever the pipe splits them', () => {
  fc.assert(
    fc.property(
      fc.array(anyFrame, { maxLength: 8 }),
      fc.array(fc.nat(), { maxLength: 40 }),
      (frames, cuts) => {
        expect(through(Buffer.concat(frames.map(encodeFrame)), cuts)).toEqual(frames);
      },
    ),
  );
});

test('frames are decoded from single bytes', () => {
  const frames: Frame[] = [
    { is: 'event', at: mono(1.5), bytes: Buffer.from('abc') },
    { is: 'drained', at: mono(2) },
    { is: 'ended', at: mono(3), code: 'UNAVAILABLE', message: 'Connection dropped' },
  ];
  const bytes = Buffer.concat(frames.map(encodeFrame));
  expect(
    through(
      bytes,
      Array.from(bytes, (_, i) => i),
    ),
  ).toEqual(frames);
});

test('an incomplete frame is not yielded', () => {
  const bytes = encodeFrame({ is: 'event', at: mono(1), bytes: Buffer.from('abc') });
  for (let cut = 0; cut < bytes.length; cut += 1) {
    expect([...new FrameReader().push(bytes.subarray(0, cut))]).toEqual([]);
  }
});

test('a large event in many chunks is not copied for each of them', () => {
  const large = Buffer.alloc(8 * 1024 * 1024, 7);
  const bytes = encodeFrame({ is: 'event', at: mono(1), bytes: large });
  const reader = new FrameReader();
  const out: Frame[] = [];
  const concat = vi.spyOn(Buffer, 'concat');
  for (let from = 0; from < bytes.length; from += 4096)
    out.push(...reader.push(bytes.subarray(from, from + 4096)));
  expect(out).toHaveLength(1);
  // Two thousand copies of what is there already would be eight gigabytes.
  const copied = concat.mock.results.reduce((sum, { value }) => sum + value.length, 0);
  concat.mockRestore();
  expect(copied).toBeGreaterThanOrEqual(large.length);
  expect(copied).toBeLessThan(2 * large.length);
});

describe('frames that no reader sends are refused', () => {
  test.each([
    ['a length of nothing', Buffer.from([0, 0, 0, 0, 0])],
    ['a length of four gigabytes', Buffer.from([255, 255, 255, 255, 0])],
    ['an unknown kind', Buffer.from([0, 0, 0, 11, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0x5b, 0x5d])],
  ])('%s', (_, bytes) => {
    expect(() => [...new FrameReader().push(bytes)]).toThrow();
  });
});
