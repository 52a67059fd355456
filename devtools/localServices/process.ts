/*
 * A process of a program: it writes its output to a file, is known to be ready, and always ends. Where setpriv exists,
 * the kernel kills the process when we die, even from a kill -9.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { PlegwatchError } from '../../src/platform/errors.ts';

export interface UnixUser {
  readonly uid: number;
  readonly gid: number;
}

/** Where a service listens that is not on this machine's loopback: in the network namespace of a process. */
export interface ServiceNetwork {
  readonly address: string;
  readonly port: number;
  readonly of?: number;
}

/** For programs that refuse to run as root. */
export const NOBODY: UnixUser = { uid: 65534, gid: 65534 };

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
  /** Runs it in the network namespace of this process; only root can. Default: this machine's network. */
  readonly networkOf?: number | undefined;
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

/** Far beyond what a busy machine needs: only a hang exceeds them. */
const READY_WITHIN_MS = 240_000;
const STOP_WITHIN_MS = 240_000;
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

interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly as?: UnixUser | undefined;
  readonly networkOf?: number | undefined;
  readonly timeoutMs?: number;
  readonly cwd?: string;
}

/** Runs a program to its end and returns its standard output. Throws PROGRAM_FAILED with its standard error. */
export async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  try {
    const [file, fileArgs] = inNetwork(options.networkOf, command, args);
    const { stdout } = await promisify(execFile)(file, fileArgs, {
      maxBuffer: 64 * 1024 * 1024,
      timeout: options.timeoutMs ?? 240_000,
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

/**
 * A TCP port of 127.0.0.1 that nobody listens on. Until this process ends it is given to no other, and no connection gets it as its own
 * port: the kernel takes those from a range above.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, Math.max(firstEphemeralPort(), 2 * FIRST_PORT));
    // An abstract socket, which the kernel releases when the process ends, however it ends.
    if ((await listens(`\0plegwatch-port-${port}`)) === null) continue;
    const server = await listens(port);
    if (server === null) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

const FIRST_PORT = 12_000;

export const firstEphemeralPort = (): number =>
  Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);

/** Listens there; null if somebody else does. */
const listens = (at: number | string): Promise<Server | null> =>
  new Promise((resolve) => {
    const server = createServer().unref();
    server.once('error', () => resolve(null));
    const listening = () => resolve(server);
    if (typeof at === 'string') server.listen(at, listening);
    else server.listen(at, '127.0.0.1', listening);
  });

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
  const [command, args] = ownedByUs(options);
  return inNetwork(options.networkOf, command, args);
}

/** The command that runs another one in the network namespace of a process. nsenter starts no process of its own for that. */
export function inNetwork(
  pid: number | undefined,
  command: string,
  args: readonly string[],
): [string, string[]] {
  if (pid === undefined) return [command, [...args]];
  return ['nsenter', [`--net=/proc/${pid}/ns/net`, '--', command, ...args]];
}

function ownedByUs(options: ProcessOptions): [string, string[]] {
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
