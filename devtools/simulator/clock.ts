/*
 * The clocks behind a simulated runtime's timestamps. A real runtime reads the wall clock in nanoseconds. Node has it in
 * milliseconds, so the digits below come from the monotonic clock, and the result stays in the wall clock's millisecond.
 */
import { readClocks } from '../../src/platform/clock.ts';
import { type Mono, mono, type Wall, wall } from '../../src/protocol/units.ts';

export interface Moment {
  readonly wall: Wall;
  readonly mono: Mono;
}

/** Reads both clocks at once. */
export type Clock = () => Moment;

/**
 * All that is done without a pause happens at one moment: on a busy machine the process may stand still between two readings, and
 * the time that a container shows would not be the one in the ground truth.
 */
export function machineClock(): Clock {
  const first = readClocks();
  let ahead = first.wall - first.mono;
  let moment: Moment | null = null;
  return () => {
    if (moment !== null) return moment;
    const { mono: now, wall: shown } = readClocks();
    const guess = now + ahead;
    if (guess < shown) ahead += shown - guess;
    else if (guess > shown + 999) ahead -= guess - shown - 999;
    moment = { wall: wall(now + ahead), mono: now };
    queueMicrotask(() => {
      moment = null;
    });
    return moment;
  };
}

/** A clock that only moves when it is advanced, for tests in virtual time. */
export function manualClock(start: Moment = { wall: wall(1_700_000_000_000_000), mono: mono(1_000_000) }) {
  let moved = 0;
  const clock: Clock = () => ({ wall: wall(start.wall + moved), mono: mono(start.mono + moved) });
  return {
    clock,
    advance: (micros: number): void => {
      moved += Math.round(micros);
    },
  };
}

/** A clock whose wall time can be stepped; its monotonic time is not affected. */
export function steppable(clock: Clock) {
  let stepped = 0;
  const jumping: Clock = () => {
    const { wall: at, mono: now } = clock();
    return { wall: wall(at + stepped), mono: now };
  };
  return {
    clock: jumping,
    step: (micros: number): void => {
      stepped += Math.round(micros);
    },
  };
}

/** The time in nanoseconds, as the CRI has it. */
export const nanosOf = (at: Wall): bigint => BigInt(at) * 1000n;
