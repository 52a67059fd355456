/*
 * The machine's two clocks. Only I/O code reads them; code that decides something takes the time as an argument.
 */
import { type Mono, mono, type Wall, wall } from '../protocol/units.ts';

/** The monotonic clock: the same in every process of this boot. */
export const monoNow = (): Mono => mono(Number(process.hrtime.bigint() / 1000n));

/** The wall clock, to the millisecond. It may be stepped, so nothing is decided by it. */
export const wallNow = (): Wall => wall(Date.now() * 1000);
