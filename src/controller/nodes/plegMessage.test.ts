import { describe, expect, test } from 'vitest';
import { goDurationMs, parsePlegMessage } from './plegMessage.ts';

describe('parsePlegMessage', () => {
  test.each([
    [
      'PLEG is not healthy: pleg was last seen active 3m5.2s ago; threshold is 3m0s',
      { seenAgoMs: 185_200, thresholdMs: 180_000 },
    ],
    [
      '[container runtime is down, PLEG is not healthy: pleg was last seen active 10m12.006s ago; threshold is 10m0s]',
      { seenAgoMs: 612_006, thresholdMs: 600_000 },
    ],
    [
      '[PLEG is not healthy: pleg was last seen active 1h2m3s ago; threshold is 3m0s, CSINode is not yet initialized]',
      { seenAgoMs: 3_723_000, thresholdMs: 180_000 },
    ],
    ['PLEG is not healthy: pleg has yet to be successful', { seenAgoMs: null, thresholdMs: null }],
    [
      'EventedPLEG is not healthy: pleg event channel capacity is full with 1000 events',
      { seenAgoMs: null, thresholdMs: null },
    ],
  ])('reads %s', (message, expected) => {
    expect(parsePlegMessage(message)).toEqual(expected);
  });

  test.each(['', 'kubelet is posting ready status', 'container runtime is down', 'disk implegation'])(
    'is null for a message without PLEG: %s',
    (message) => {
      expect(parsePlegMessage(message)).toBeNull();
    },
  );
});

describe('goDurationMs', () => {
  test.each([
    ['0s', 0],
    ['350ms', 350],
    ['1.5s', 1_500],
    ['2m0.25s', 120_250],
    ['1500µs', 2],
    ['9ns', 0],
  ])('reads %s as %d ms', (text, ms) => {
    expect(goDurationMs(text)).toBe(ms);
  });

  test.each([undefined, '', '5', 's', '5 s', '-5s', '5x', '1e3s', '2500000000h', `${'9'.repeat(400)}h`])(
    'is null for %s',
    (text) => {
      expect(goDurationMs(text)).toBeNull();
    },
  );
});
