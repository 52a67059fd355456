/*
 * A process of a program: it writes its output to a file, is known to be ready, and always ends. Where setpriv exists,
 * the kernel kills the process when we die, even from a kill -9.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { PlegwatchError } from '../../src/platform/errors.ts';

export interface UnixUser {
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
  /** Runs it as another user; only root can. */
  readonly as?: UnixUser | undefined;
  /** Called with the process id until it returns true; until then the process does not count as started. */
  readonly ready?: (pid: number) => Promise<boolean>;
  readonly readyWithinMs?: number;
  /** The signal that asks it to end. Default: SIGTERM. */
  readonly stopSignal?: NodeJS.Signals;
  /** How long it may take to end before it is killed. */
  readonly stopWithinMs?: number;
}

interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RunningProcess {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when the process has ended, however it ended; never rejects. */
  readonly exited: Promise<ProcessExit>;
  running(): boolean;
  /** Sends a signal; does nothing when the process has ended. */
  kill(signal: NodeJS.Signals): void;
  /** Asks it to end, kills it after the deadline, and waits for its end. */
  stop(): Promise<ProcessExit>;
}

export const programFailed = (message: string, cure: string, cause?: unknown): PlegwatchError =>
  new PlegwatchError('PROGRAM_FAILED', message, cure, { cause });

const READY_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 10_000;
const TAIL_LINES = 20;

/** Starts a program and waits until it is ready. Throws PROGRAM_FAILED, with the end of its log, when it ends first. */
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

/** Runs a program to its end and returns its standard output. Throws PROGRAM_FAILED with its standard error. */
export async function run(
  command: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; as?: UnixUser | undefined; timeoutMs?: number; cwd?: string } = {},
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
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    const commandLine = [command, ...args].join(' ');
    const message = stderr === '' ? String(error) : stderr;
    throw programFailed(`${commandLine} failed: ${message}`, 'See the message.', error);
  }
}

/** Waits until the check returns true. Throws PROGRAM_FAILED after the deadline. */
export async function waitFor(
  what: string,
  withinMs: number,
  check: () => Promise<boolean> | boolean,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await check())) {
    if (Date.now() > deadline) {
      throw programFailed(`Not within ${withinMs} ms: ${what}.`, 'Is the machine very busy?');
    }
    await delay(25);
  }
}

/** A TCP port of 127.0.0.1 that is free at this moment. */
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
      // Its own process group: Ctrl-C on the terminal reaches only us, and we end it in order.
      detached: true,
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(hasSetpriv() ? {} : options.as),
    });
  } finally {
    closeSync(log);
  }
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => resolve({ code: 127, signal: null }));
  });
  const { pid } = child;
  if (pid === undefined) {
    const cure = 'Run devtools/localServices/where --list.';
    throw programFailed(`${options.name} (${command}) could not be started.`, cure);
  }
  const running = () => child.exitCode === null && child.signalCode === null;
  const kill = (signal: NodeJS.Signals) => void child.kill(signal);
  const stop = async () => {
    kill(options.stopSignal ?? 'SIGTERM');
    // A frozen process handles no other signal before this one.
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
  // Not ready is often an exception: a refused port, a missing file.
  const isReady = async () => ready(process.pid);
  while (!(await isReady().catch(() => false))) {
    if (!process.running()) throw failed(process, 'ended before it was ready');
    if (Date.now() > deadline) throw failed(process, `was not ready within ${withinMs} ms`);
    await delay(25);
  }
}

const failed = ({ name, logFile }: RunningProcess, what: string): PlegwatchError =>
  programFailed(`${name} ${what}. The end of its log:\n${tail(logFile)}`, 'See the log.');
