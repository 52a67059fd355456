/*
 * The reader as its parent sees it: started for one session, killed when it stops giving signs of life.
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

/** Without a frame for this long the reader is killed: it may be holding the runtime up. */
const SILENCE: Micros = millis(2_000);
/** It may take longer than that to load. */
const START: Micros = millis(10_000);
/** Firing later than this, a timer of ours tells that we did not run ourselves. */
const OWN_PAUSE: Micros = millis(500);
/** So often in a row our own pauses excuse a silence: one that goes on is the reader's, however badly we run ourselves. */
const MOST_EXCUSES = 2;
/** As bin/plegwatch starts the agent: little room for young objects, one thread to help V8. */
const NODE_FLAGS = ['--max-semi-space-size=1', '--v8-pool-size=1'];
const MOST_SAID = 500;

export interface ReaderProcess {
  /** Lets it subscribe. */
  subscribe(): void;
  /** Ends it at once; `ended` still follows. */
  kill(): void;
  /** When it last gave a sign of life. */
  lastSign(): Mono;
  readonly pid: number;
}

export interface ReaderEvents {
  frame(frame: Frame): void;
  /** The process is gone; always the last call, exactly once. `why` is null where a frame `ended` told it. */
  gone(why: string | null): void;
}

/** Starts a reader for the socket at an absolute path. */
export function startReader(socket: string, events: ReaderEvents): ReaderProcess {
  const child = spawn(process.execPath, [...NODE_FLAGS, readerScript(), socket], {
    stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
    env: {},
  });
  const watch = new Watch(child);
  const frames = new FrameReader();
  let told = false;
  let failure: string | null = null;
  /** What follows something that is no frame cannot be cut into frames any more. */
  function* whole(chunk: Buffer): Generator<Frame> {
    try {
      yield* frames.push(chunk);
    } catch (error) {
      failure ??= `the reader does not speak in frames: ${messageOf(error)}`;
      child.kill('SIGKILL');
    }
  }
  // A child that could not be started has no pipes at all where there was no file descriptor left for one.
  const pipe = (child.stdio as readonly unknown[] | undefined)?.[3] as Readable | undefined;
  pipe?.on('data', (chunk: Buffer) => {
    watch.sign();
    for (const frame of whole(chunk)) {
      told ||= frame.is === 'ended';
      events.frame(frame);
    }
  });
  // A broken pipe is told by the end of the process, which always follows.
  pipe?.on('error', () => child.kill('SIGKILL'));
  child.stdin?.on('error', () => child.kill('SIGKILL'));
  // What a defect makes it say; one that says much is cut short.
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-MOST_SAID);
  });
  child.on('error', (error) => {
    failure = error.message;
  });
  child.on('close', (code, signal) => {
    watch.stop();
    events.gone(
      told ? null : (failure ?? watch.reason ?? `the reader ended with ${signal ?? code}: ${said}`),
    );
  });
  return {
    subscribe: () => child.stdin?.write('s'),
    kill: () => child.kill('SIGKILL'),
    lastSign: () => watch.last,
    pid: child.pid ?? -1,
  };
}

/**
 * Kills a child that is silent for too long, by our own clock; time in which we did not run ourselves does not count.
 * Nothing wakes up for it while the child speaks: every sign only puts the one timer off.
 */
class Watch {
  last: Mono = monoNow();
  reason: string | null = null;
  readonly #child: ChildProcess;
  #limit: Micros = START;
  /** How often a pause of ours excused it since its last sign. */
  #excuses = 0;
  #timer: NodeJS.Timeout;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.#timer = this.#arm(START);
  }

  sign(): void {
    this.last = monoNow();
    this.#excuses = 0;
    if (this.#limit === SILENCE) this.#timer.refresh();
    else this.#again(SILENCE);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(limit: Micros): NodeJS.Timeout {
    return setTimeout(() => this.#silent(), limit / 1000);
  }

  #again(limit: Micros): void {
    clearTimeout(this.#timer);
    this.#limit = limit;
    this.#timer = this.#arm(limit);
  }

  #silent(): void {
    const paused = between(this.last, monoNow()) > this.#limit + OWN_PAUSE;
    if (paused && this.#excuses < MOST_EXCUSES) {
      this.#excuses += 1;
      // It may have spoken meanwhile, or stood still as we did.
      this.last = monoNow();
      this.#again(this.#limit);
      return;
    }
    const last = this.last;
    // What it said in the last moment is read before this runs.
    setImmediate(() => {
      if (this.last > last) return;
      this.reason = 'the reader gave no sign of life and was killed';
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
