/*
 * Loaded into an agent before its program: adds the milliseconds in a file to each reading of the process's wall clock. The
 * monotonic clock is unchanged, as when a clock is set.
 *
 *   node --import 'file:///…/support/movedClock.ts?by=/path/of/the/file' …
 */
import fs, { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const HERE = new URL(import.meta.url);

/** Node's arguments for a program whose wall clock `moveClock` can move. */
export function clockArgs(file: string): string[] {
  const module = new URL(HERE.pathname, 'file:');
  module.searchParams.set('by', file);
  return ['--import', module.href];
}

/** Takes effect at the next reading. */
export function moveClock(file: string, byMs: number): void {
  writeFileSync(file, String(byMs));
}

/** The clocks of a process after the machine was suspended: all clocks but the monotonic one went on. Takes effect at the next reading. */
export function suspendMachine(file: string, movedMs: number, forMs: number): void {
  writeFileSync(file, `${movedMs + forMs} ${forMs}`);
}

const file = HERE.searchParams.get('by');
if (file !== null) {
  const machineNow = Date.now;
  let by = 0;
  Date.now = () => {
    // A half-written file may hold no number.
    const read = existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : 0;
    if (Number.isSafeInteger(read)) by = read;
    return machineNow() + by;
  };
  const read = fs.readFileSync;
  const uptime = (): string => {
    const [, suspendedMs = 0] = existsSync(file) ? String(read(file)).split(' ') : [];
    return String(Number.parseFloat(String(read('/proc/uptime'))) + Number(suspendedMs) / 1_000);
  };
  Object.assign(fs, {
    readFileSync: (...args: Parameters<typeof read>) =>
      args[0] === '/proc/uptime' ? uptime() : read(...args),
  });
  syncBuiltinESMExports();
}
