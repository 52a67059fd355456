/*
 * The machine's two clocks. Only I/O code reads them; code that decides something takes the time as an argument.
 */
import { readFileSync } from 'node:fs';
import { between, type Micros, type Mono, millis, mono, type Wall, wall } from '../protocol/units.ts';

/** Far longer than both readings take, and short beside what is decided by them. */
const MAX_APART: Micros = millis(1);
const MAX_READINGS = 10;

/** The monotonic clock: the same in every process of this boot. */
export const monoNow = (): Mono => mono(Number(process.hrtime.bigint() / 1000n));

/**
 * The boot-time clock, to ten milliseconds: it goes on while the machine is suspended, and the monotonic clock does not. Null where /proc does not
 * have it.
 */
export function bootNow(): Mono | null {
  try {
    const seconds = Number.parseFloat(readFileSync('/proc/uptime', 'utf8'));
    return Number.isFinite(seconds) ? mono(Math.round(seconds * 1e6)) : null;
  } catch {
    return null;
  }
}

/** The wall clock, to the millisecond. It may be stepped, so nothing is decided by it. */
export const wallNow = (): Wall => wall(Date.now() * 1000);

/** Both clocks at one moment. Where the machine was busy with something else between the two, they are read again. */
export function readClocks(
  readMono = monoNow,
  readWall = wallNow,
): { readonly mono: Mono; readonly wall: Wall } {
  const read = () => {
    const mono = readMono();
    const wall = readWall();
    return { mono, wall, apart: between(mono, readMono()) };
  };
  let best = read();
  for (let readings = 1; best.apart > MAX_APART && readings < MAX_READINGS; readings += 1) {
    const next = read();
    if (next.apart < best.apart) best = next;
  }
  return best;
}
