import { pino } from 'pino';
import { expect, test } from 'vitest';
import { type Mono, millis, mono, shift } from '../../protocol/units.ts';
import { Stalls } from './stalls.ts';
import { HEARTBEAT } from './stream/frames.ts';

const START = mono(1_000_000);
const at = (micros: number): Mono => shift(START, micros);
const SESSION = { no: 1, opened: START };
const SLACK = millis(250);

/** The stalls with this setting: cause, start and end in microseconds after the start of the epoch. */
function stallsWith(overdueAfterMs: number) {
  const recorded: [cause: string, from: number, to: number][] = [];
  const unobserved: [until: number, cause: string][] = [];
  const stalls = new Stalls(
    {
      epochStart: START,
      overdueAfter: millis(overdueAfterMs),
      comparison: { streamGap: (until, cause) => void unobserved.push([until - START, cause]) },
      gaps: {
        recordClosed: (_scope, cause, from, to) => void recorded.push([cause, from - START, to - START]),
      },
      log: pino({ level: 'silent' }),
    },
    START,
  );
  return { stalls, recorded, unobserved };
}

test('ticks and heartbeats that are late by up to a quarter of a second are no stall, however short --overdue-after is', () => {
  const { stalls, recorded } = stallsWith(100);
  for (let n = 1; n <= 20; n += 1) {
    const now = at(n * (HEARTBEAT + SLACK));
    stalls.drained(now, SESSION, now);
    stalls.tick(now);
  }
  expect(recorded).toEqual([]);
});

test('a tick that is later is a stall of the agent, a heartbeat that is later a stall of the reader', () => {
  const { stalls, recorded, unobserved } = stallsWith(100);
  const late = HEARTBEAT + SLACK + 1;
  stalls.tick(at(late));
  stalls.drained(at(late), SESSION, at(late));
  expect(recorded).toEqual([
    ['agent_stalled', 0, late],
    ['reader_stalled', 0, late],
  ]);
  expect(unobserved).toEqual([
    [late, 'agent_stalled'],
    [late, 'reader_stalled'],
  ]);
});

test('half of --overdue-after is allowed if that is more', () => {
  const { stalls, recorded } = stallsWith(2_000);
  stalls.tick(at(HEARTBEAT + millis(1_000)));
  expect(recorded).toEqual([]);
});

test('the reader cannot stall without a session, nor before the session was opened', () => {
  const { stalls, recorded } = stallsWith(100);
  stalls.drained(at(10e6), null, at(10e6));
  stalls.drained(at(20e6), { no: 1, opened: at(15e6) }, at(20e6));
  expect(recorded).toEqual([]);
  expect(stalls.drainedUntil).toBe(at(20e6));
});

test('a drain that began before an event was taken does not take back that everything was read until then', () => {
  const { stalls } = stallsWith(100);
  stalls.drained(at(1_000), SESSION, at(1_000));
  stalls.drained(at(400), SESSION, at(1_100));
  expect(stalls.drainedUntil).toBe(at(1_000));
});
