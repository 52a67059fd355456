/*
 * A real program under our control: started with its output in a file, known to be ready, and certainly gone
 * afterwards. Where setpriv is there, the kernel kills the program when we die, even by kill -9.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { PlegwatchError } from '../../src/platform/errors.ts';

export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

export interface ProcessOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Standard output and error are appended here. */
  readonly logFile: string;
  /** Run as somebody else; only root can. */
  readonly as?: Identity | undefined;
  /** Asked, with the process id, until it answers true; until then the process does not count as started. */
  readonly ready?: (pid: number) => Promise<boolean>;
  readonly readyWithinMs?: number;
  /** What asks it to end in order. SIGTERM when not said. */
  readonly stopSignal?: NodeJS.Signals;
  /** How long it may take to end in order before it is killed. */
  readonly stopWithinMs?: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RunningProcess {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Settles when the process has ended, however it ended; never rejects. */
  readonly exited: Promise<Exit>;
  running(): boolean;
  /** Sends a signal. A process that has ended ignores it. */
  kill(signal: NodeJS.Signals): void;
  /** Asks it to end, kills it after the deadline, and waits until it is gone. */
  stop(): Promise<Exit>;
}

const READY_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 10_000;
const TAIL_LINES = 20;

/** Starts a program and waits until it is ready. Throws PART_FAILED, with the end of its log, when it ends before. */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const process = launch(options);
  if (options.ready === undefined) return process;
  try {
    await becomesReady(process, options.ready, options.readyWithinMs ?? READY_WITHIN_MS);
  } catch (error) {
    await process.stop();
    throw error;
  }
  return process;
}

/** Runs a program to its end and gives its standard output. Throws PART_FAILED with what it said. */
export async function run(
  command: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; as?: Identity | undefined; timeoutMs?: number; cwd?: string } = {},
): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(command, [...args], {
      maxBuffer: 64 * 1024 * 1024,
      timeout: options.timeoutMs ?? 60_000,
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...options.as,
    });
    return stdout;
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    const asked = [command, ...args].join(' ');
    throw new PlegwatchError(
      'PART_FAILED',
      `${asked} failed: ${said === '' ? String(error) : said}`,
      'See the message.',
      {
        cause: error,
      },
    );
  }
}

/** Waits until the check answers true. Throws PART_FAILED after the deadline. */
export async function waitFor(
  what: string,
  withinMs: number,
  check: () => Promise<boolean> | boolean,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await check())) {
    if (Date.now() > deadline) {
      throw new PlegwatchError(
        'PART_FAILED',
        `${what}: still not so after ${withinMs} ms.`,
        'Is the machine very busy?',
      );
    }
    await delay(25);
  }
}

/** A TCP port of 127.0.0.1 that nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
  return address.port;
}

/** The last lines of a log, for a message. */
export function tail(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  } catch {
    return '(no log)';
  }
}

function launch(options: ProcessOptions): RunningProcess {
  const log = openSync(options.logFile, 'a');
  const [command, args] = wrapped(options);
  let child: ChildProcess;
  try {
    child = spawn(command, args, {
      stdio: ['ignore', log, log],
      // A process group of its own: Ctrl-C on the terminal is for us, and we end what we started in order.
      detached: true,
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(hasSetpriv() ? {} : options.as),
    });
  } finally {
    closeSync(log);
  }
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => resolve({ code: 127, signal: null }));
  });
  const { pid } = child;
  if (pid === undefined) {
    throw new PlegwatchError(
      'PART_FAILED',
      `${options.name} (${command}) cannot be run.`,
      'Run devtools/localServices/where --list.',
    );
  }
  const running = () => child.exitCode === null && child.signalCode === null;
  const kill = (signal: NodeJS.Signals) => void child.kill(signal);
  const stop = async () => {
    kill(options.stopSignal ?? 'SIGTERM');
    // One that is frozen takes no other signal before this.
    kill('SIGCONT');
    const timer = setTimeout(() => kill('SIGKILL'), options.stopWithinMs ?? STOP_WITHIN_MS);
    const exit = await exited;
    clearTimeout(timer);
    return exit;
  };
  return { name: options.name, pid, logFile: options.logFile, exited, running, kill, stop };
}

function wrapped(options: ProcessOptions): [string, string[]] {
  const args = [...options.args];
  if (!hasSetpriv()) return [options.command, args];
  const as =
    options.as === undefined
      ? []
      : [`--reuid=${options.as.uid}`, `--regid=${options.as.gid}`, '--clear-groups'];
  return ['setpriv', [...as, '--pdeathsig=KILL', '--', options.command, ...args]];
}

let setpriv: boolean | undefined;

function hasSetpriv(): boolean {
  setpriv ??= spawnSync('setpriv', ['--pdeathsig=KILL', '--', 'true']).status === 0;
  return setpriv;
}

async function becomesReady(
  process: RunningProcess,
  ready: (pid: number) => Promise<boolean>,
  withinMs: number,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  // Not there yet is often an exception: a port that refuses, a file that is still to be written.
  const asked = async () => ready(process.pid);
  while (!(await asked().catch(() => false))) {
    if (!process.running()) throw failed(process, 'ended at its start');
    if (Date.now() > deadline) throw failed(process, `was not ready within ${withinMs} ms`);
    await delay(25);
  }
}

function failed(process: RunningProcess, what: string): PlegwatchError {
  return new PlegwatchError(
    'PART_FAILED',
    `${process.name} ${what}. The end of its log:\n${tail(process.logFile)}`,
    'The log says why.',
  );
}
