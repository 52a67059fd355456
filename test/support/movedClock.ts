/*
 * Loaded into an agent before its program: the wall clock of that process differs from the machine's by as many milliseconds
 * as a file says at each reading. The monotonic clock stays what it is, as it does when a clock is set.
 *
 *   node --import 'file:///…/support/movedClock.ts?by=/path/of/the/file' …
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const HERE = new URL(import.meta.url);

/** What Node is to be told so that a program's wall clock can be moved by `moveClock`. */
export function clockArgs(file: string): string[] {
  const module = new URL(HERE.pathname, 'file:');
  module.searchParams.set('by', file);
  return ['--import', module.href];
}

/** From the next reading on. */
export function moveClock(file: string, byMs: number): void {
  writeFileSync(file, String(byMs));
}

const file = HERE.searchParams.get('by');
if (file !== null) {
  const machine = Date.now;
  let by = 0;
  Date.now = () => {
    // Half written, it is no number yet.
    const said = existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : 0;
    if (Number.isSafeInteger(said)) by = said;
    return machine() + by;
  };
}
