/*
 * The processor time and the memory of a running process, as the kernel counts them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** User and system time of all threads, in milliseconds. The scheduler's own count: /proc/PID/stat moves in steps of 10. */
export function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanos = threads.map((thread) => Number(fieldsOf(`/proc/${pid}/task/${thread}/schedstat`)[0]));
  return nanos.reduce((sum, each) => sum + each, 0) / 1e6;
}

/** Processor time of the children of a process that have ended. In steps of a hundredth of a second. */
export function reapedCpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // After the name, which may have spaces: the state is field 3, cutime and cstime are fields 16 and 17.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

export interface ProcessMemory {
  /** Memory that is mapped and present. */
  readonly rss: number;
  /** The same, each shared page divided by the number of its users. */
  readonly pss: number;
  /** Without the pages of files. */
  readonly anonymous: number;
}

/** In bytes. */
export function memory(pid: number): ProcessMemory {
  const lines = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').split('\n');
  const bytes = (key: string): number => {
    const line = lines.find((each) => each.startsWith(`${key}:`));
    if (line === undefined) throw new Error(`/proc/${pid}/smaps_rollup has no ${key}`);
    return Number(line.split(/\s+/)[1]) * 1024;
  };
  return { rss: bytes('Rss'), pss: bytes('Pss'), anonymous: bytes('Anonymous') };
}

/** The child that runs this script. Throws where there is none. */
export function childRunning(pid: number, script: string): number {
  const children = fieldsOf(`/proc/${pid}/task/${pid}/children`).filter((child) => child !== '');
  const found = children.find((child) =>
    readFileSync(`/proc/${child}/cmdline`, 'utf8')
      .split('\0')
      .some((arg) => basename(arg) === script),
  );
  if (found === undefined) throw new Error(`process ${pid} has no child that runs ${script}`);
  return Number(found);
}

/** The mean number of runnable processes in the last minute. */
export const loadAverage = (): number => Number(fieldsOf('/proc/loadavg')[0]);

const fieldsOf = (file: string): string[] => readFileSync(file, 'utf8').trim().split(' ');

/** The children of a process. */
export const childrenOf = (pid: number): number[] =>
  fieldsOf(`/proc/${pid}/task/${pid}/children`)
    .filter((child) => child !== '')
    .map(Number);
