/*
 * Notes for each file of tests how much processor time its process and the services that it stopped took: a slow file works or waits.
 */
import { readFileSync } from 'node:fs';
import { afterAll } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** In seconds. */
    processorTime?: number;
  }
}

/** The first of utime, stime, cutime and cstime in /proc/self/stat (proc(5)), after a name that may have spaces. */
const FIRST_FIELD = 11;
const TICKS_PER_SECOND = 100;

function processorTime(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(FIRST_FIELD, FIRST_FIELD + 4).reduce((sum, field) => sum + Number(field), 0);
  return ticks / TICKS_PER_SECOND;
}

/** The process may have run other files. This module is loaded for each. */
const before = processorTime();

function note(_context: object, file: Parameters<Parameters<typeof afterAll>[0]>[1]): void {
  file.meta.processorTime = processorTime() - before;
}

// Vitest reads the source of a hook and demands a pattern for its first parameter; a bound function has no source.
afterAll(note.bind(undefined));
