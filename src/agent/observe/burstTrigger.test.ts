import { describe, expect, test } from 'vitest';
import { type Mono, millis, mono, shift } from '../../protocol/units.ts';
import { BURST_EVENTS, BurstTrigger } from './burstTrigger.ts';

const START = mono(1_000_000);
const at = (seconds: number): Mono => shift(START, millis(seconds * 1000));

function hear(bursts: BurstTrigger, events: number): void {
  for (let n = 0; n < events; n += 1) bursts.eventReceived();
}

/** How many relists may be had earlier, where one is taken again and again at a moment. */
function taken(bursts: BurstTrigger, now: Mono): number {
  hear(bursts, BURST_EVENTS);
  let count = 0;
  while (bursts.tryTake(now)) count += 1;
  return count;
}

describe('a burst of events', () => {
  test('asks for an earlier relist, one event less does not', () => {
    const bursts = new BurstTrigger();
    hear(bursts, BURST_EVENTS - 1);
    expect(bursts.tryTake(at(1))).toBe(false);
    bursts.eventReceived();
    expect(bursts.tryTake(at(1))).toBe(true);
  });

  test('is what was heard since the last relist began', () => {
    const bursts = new BurstTrigger();
    hear(bursts, BURST_EVENTS - 1);
    bursts.relistStarted();
    bursts.eventReceived();
    expect(bursts.tryTake(at(1))).toBe(false);
  });
});

describe('tokens', () => {
  test('are two at first, then one in half a minute', () => {
    const bursts = new BurstTrigger();
    expect(taken(bursts, at(1))).toBe(2);
    expect(taken(bursts, at(30.9))).toBe(0);
    expect(taken(bursts, at(31))).toBe(1);
    expect(taken(bursts, at(60.9))).toBe(0);
    expect(taken(bursts, at(61))).toBe(1);
  });

  test('that were not needed are no more than two after a day', () => {
    const bursts = new BurstTrigger();
    expect(taken(bursts, at(86_400))).toBe(2);
    expect(taken(bursts, at(86_429))).toBe(0);
  });

  test('bound a day of bursts to a relist in half a minute', () => {
    const bursts = new BurstTrigger();
    let count = 0;
    for (let second = 1; second <= 86_400; second += 1) {
      hear(bursts, BURST_EVENTS);
      if (bursts.tryTake(at(second))) count += 1;
      bursts.relistStarted();
    }
    expect(count).toBe(86_400 / 30 + 1);
  });
});
