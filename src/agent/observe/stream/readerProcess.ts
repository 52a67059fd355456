/*
 * The reader process as its parent sees it: started for one session, killed when its heartbeat (`HEARTBEAT` in frames.ts) stops.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { monoNow } from '../../../platform/clock.ts';
import { messageOf } from '../../../platform/errors.ts';
import { between, type Micros, type Mono, millis } from '../../../protocol/units.ts';
import { type Frame, FrameReader } from './frames.ts';

/** Without a frame for this long the reader is killed, unless a test sets another time: it may be holding the runtime up. */
const SILENCE: Micros = millis(2_000);
/** Loading may take longer than that. */
const START_SILENCE: Micros = millis(10_000);
/** A timer that fires later than this shows that this process itself did not run. */
const OWN_STALL: Micros = millis(500);
/** A silence is tolerated for this many stalls of this process in a row; after that the reader is to blame. */
const MAX_TOLERATED_STALLS = 2;
/**
 * Options for Node.js where memory matters more than speed, on every node: a small young generation, one helper thread for V8. The
 * chart sets them for the agent as NODE_OPTIONS.
 */
export const NODE_FLAGS = ['--max-semi-space-size=1', '--v8-pool-size=1'];
const MAX_STDERR = 500;

export interface ReaderProcess {
  /** Lets it subscribe. */
  subscribe(): void;
  /** Ends it at once; `ended` still follows. */
  kill(): void;
  lastHeartbeat(): Mono;
  readonly pid: number;
}

export interface ReaderEvents {
  frame(frame: Frame): void;
  /** The process has ended; always the last call, exactly once. `why` is null if a frame `ended` came before. */
  gone(why: string | null): void;
}

/** Starts a reader for the socket at an absolute path. */
export type StartReader = (socket: string, events: ReaderEvents) => ReaderProcess;

export function startReaderProcess(
  socket: string,
  events: ReaderEvents,
  silence: Micros = SILENCE,
): ReaderProcess {
  const child = spawn(process.execPath, [...NODE_FLAGS, readerScript(), socket], {
    stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
    env: {},
  });
  const watchdog = new SilenceWatchdog(child, silence);
  const frames = new FrameReader();
  let ended = false;
  let failure: string | null = null;
  /** After something that is not a frame, nothing more can be decoded. */
  function* decode(chunk: Buffer): Generator<Frame> {
    try {
      yield* frames.push(chunk);
    } catch (error) {
      failure ??= `the reader sent an invalid frame: ${messageOf(error)}`;
      child.kill('SIGKILL');
    }
  }
  // A child that could not be started for lack of file descriptors has no pipes.
  const pipe = (child.stdio as readonly unknown[] | undefined)?.[3] as Readable | undefined;
  pipe?.on('data', (chunk: Buffer) => {
    watchdog.heartbeat();
    for (const frame of decode(chunk)) {
      ended ||= frame.is === 'ended';
      events.frame(frame);
    }
  });
  // The end of the process follows, and is reported.
  pipe?.on('error', () => child.kill('SIGKILL'));
  child.stdin?.on('error', () => child.kill('SIGKILL'));
  // The end of what a defect makes it print.
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-MAX_STDERR);
  });
  child.on('error', (error) => {
    failure = error.message;
  });
  child.on('close', (code, signal) => {
    watchdog.stop();
    events.gone(
      ended ? null : (failure ?? watchdog.reason ?? `the reader ended with ${signal ?? code}: ${stderr}`),
    );
  });
  return {
    subscribe: () => child.stdin?.write('s'),
    kill: () => child.kill('SIGKILL'),
    lastHeartbeat: () => watchdog.last,
    pid: child.pid ?? -1,
  };
}

/**
 * Kills a child that is silent for too long; time in which this process itself did not run does not count. While the child sends, every
 * frame postpones the one timer, and Node notices that only when it fires: about every 1.8 s.
 */
class SilenceWatchdog {
  last: Mono = monoNow();
  reason: string | null = null;
  readonly #child: ChildProcess;
  readonly #silence: Micros;
  #limit: Micros;
  /** Stalls of this process tolerated since the reader last sent anything. */
  #toleratedStalls = 0;
  #timer: NodeJS.Timeout;

  constructor(child: ChildProcess, silence: Micros) {
    this.#child = child;
    this.#silence = silence;
    this.#limit = millis(Math.max(START_SILENCE, silence) / 1_000);
    this.#timer = this.#arm(this.#limit);
  }

  heartbeat(): void {
    this.last = monoNow();
    this.#toleratedStalls = 0;
    if (this.#limit === this.#silence) this.#timer.refresh();
    else this.#rearm(this.#silence);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(limit: Micros): NodeJS.Timeout {
    return setTimeout(() => this.#silenceExpired(), limit / 1000);
  }

  #rearm(limit: Micros): void {
    clearTimeout(this.#timer);
    this.#limit = limit;
    this.#timer = this.#arm(limit);
  }

  #silenceExpired(): void {
    const stalled = between(this.last, monoNow()) > this.#limit + OWN_STALL;
    if (stalled && this.#toleratedStalls < MAX_TOLERATED_STALLS) {
      this.#toleratedStalls += 1;
      // It may have sent something meanwhile, or stalled as this process did.
      this.last = monoNow();
      this.#rearm(this.#limit);
      return;
    }
    const last = this.last;
    // Data that it has just sent is read before this runs.
    setImmediate(() => {
      if (this.last > last) return;
      this.reason = 'the reader fell silent and was killed';
      this.#child.kill('SIGKILL');
    });
  }
}

/** In the bundle it is `reader.js` beside the folder of this chunk, in the source tree `reader.ts` beside this file. */
function readerScript(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const bundled = join(here, '..', 'reader.js');
  return existsSync(bundled) ? bundled : join(here, 'reader.ts');
}
