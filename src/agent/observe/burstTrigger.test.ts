import { describe, expect, test } from 'vitest';
import { type Mono, millis, mono, shift } from '../../protocol/units.ts';
import { BURST_EVENTS, BurstTrigger } from './relister.ts';

const START = mono(1_000_000);
const at = (seconds: number): Mono => shift(START, millis(seconds * 1000));

function receive(bursts: BurstTrigger, events: number): void {
  for (let n = 0; n < events; n += 1) bursts.eventReceived();
}

/** How many relists may be had earlier, where one is taken again and again at a moment. */
function taken(bursts: BurstTrigger, now: Mono): number {
  receive(bursts, BURST_EVENTS);
  let count = 0;
  while (bursts.tryTake(now)) count += 1;
  return count;
}

describe('a burst of events', () => {
  test('a burst of 20 events brings the next relist forward, 19 events do not', () => {
    const bursts = new BurstTrigger();
    receive(bursts, BURST_EVENTS - 1);
    expect(bursts.tryTake(at(1))).toBe(false);
    bursts.eventReceived();
    expect(bursts.tryTake(at(1))).toBe(true);
  });

  test('only events since the last relist started count towards a burst', () => {
    const bursts = new BurstTrigger();
    receive(bursts, BURST_EVENTS - 1);
    bursts.relistStarted();
    bursts.eventReceived();
    expect(bursts.tryTake(at(1))).toBe(false);
  });
});

describe('tokens', () => {
  test('two early relists are allowed at first, then one every half minute', () => {
    const bursts = new BurstTrigger();
    expect(taken(bursts, at(1))).toBe(2);
    expect(taken(bursts, at(30.9))).toBe(0);
    expect(taken(bursts, at(31))).toBe(1);
    expect(taken(bursts, at(60.9))).toBe(0);
    expect(taken(bursts, at(61))).toBe(1);
  });

  test('unused tokens never exceed two', () => {
    const bursts = new BurstTrigger();
    expect(taken(bursts, at(86_400))).toBe(2);
    expect(taken(bursts, at(86_429))).toBe(0);
  });

  test('a day of bursts brings one early relist every half minute at most', () => {
    const bursts = new BurstTrigger();
    let count = 0;
    for (let second = 1; second <= 86_400; second += 1) {
      receive(bursts, BURST_EVENTS);
      if (bursts.tryTake(at(second))) count += 1;
      bursts.relistStarted();
    }
    expect(count).toBe(86_400 / 30 + 1);
  });
});
