/*
 * The machine's two clocks. Everything that decides something takes its time as an argument; only shells read it here.
 */
import { type Mono, mono, type Wall, wall } from '../protocol/units.ts';

/** Now on the monotonic clock: the same clock in every process of this boot. */
export const monoNow = (): Mono => mono(Number(process.hrtime.bigint() / 1000n));

/** Now on the wall clock, to the millisecond. It may be stepped, which is why nothing is decided by it. */
export const wallNow = (): Wall => wall(Date.now() * 1000);
