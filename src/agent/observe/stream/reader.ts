/*
 * The reader: a process that takes events from the runtime's socket and hands them to its parent, and does nothing else.
 *
 * A subscriber of containerd 2 that stops reading keeps pods from starting on the whole node. So this process does no file I/O (a thread
 * stuck on a disk keeps the socket open even after SIGKILL), never pauses the stream, and never waits for its parent: what the parent
 * does not take in time is dropped, payloads first, digests last, and counted.
 *
 *   start ──► Version (frame `version`) ──► a byte from the parent ──► subscribe (`opened`) ──► Version again
 *         ──► events, and `drained` every heartbeat ──► `ended`, and the process ends
 *
 * One process serves one session on one connection, and exits when its parent does. The end of the process ends the connection, in whatever
 * state its libraries are; one for many sessions could not promise that, and would save only 100 ms of CPU at each reconnect.
 *
 *   node reader.js <socket>     pipe to the parent on file descriptor 3, commands on standard input
 */
import { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { type ServiceError, status } from '@grpc/grpc-js';
import { CriClient, CriError, codeOf, statusName } from '../../../cri/client.ts';
import { readEvent } from '../../../cri/items.ts';
import { monoNow, wallNow } from '../../../platform/clock.ts';
import { invariant } from '../../../platform/invariant.ts';
import { cleanText } from '../../../protocol/text.ts';
import { encodeFrame, type Frame, HEARTBEAT } from './frames.ts';

// V8's optimising compilers would leave behind a quarter of this process's memory after the first burst of events; without them an
// event costs a hundredth of a millisecond more (docs/development/bench.md).
for (const flag of ['--no-opt', '--no-maglev']) setFlagsFromString(flag);

const VERSION_TIMEOUT_MS = 5_000;
/** Above this many unread bytes only digests are kept, above the second limit not even those. */
const MAX_BYTES_FOR_PAYLOADS = 16 * 1024 * 1024;
const MAX_BYTES_FOR_DIGESTS = 24 * 1024 * 1024;
/** The subscription reaches the runtime later than the call; an event built within this time may be older than it. */
const SUBSCRIBE_SLACK_NS = 1_000_000n;

class Reader {
  readonly #client: CriClient;
  readonly #pipe: Socket;
  #dropped = 0;
  #ending = false;

  constructor(socket: string) {
    this.#client = new CriClient(socket);
    this.#pipe = new Socket({ fd: 3, readable: false, writable: true });
    this.#pipe.on('error', () => process.exit(1));
    this.#pipe.on('close', () => process.exit(0));
  }

  async start(): Promise<void> {
    if (!(await this.#sendVersion())) return;
    process.stdin.once('data', () => this.#subscribe());
    process.stdin.once('end', () => process.exit(0));
    process.stdin.once('error', () => process.exit(0));
    setInterval(() => this.#heartbeat(), HEARTBEAT / 1000);
  }

  /** One turn of the event loop empties the socket: whatever was in it at the start has been read by then. */
  #heartbeat(): void {
    const at = monoNow();
    setImmediate(() =>
      setImmediate(() => {
        // Drops are sent first, so that the time until here does not count as covered.
        this.#sendDropped(monoNow());
        this.#send({ is: 'drained', at });
      }),
    );
  }

  async #sendVersion(): Promise<boolean> {
    try {
      const { name, version } = await this.#client.version(VERSION_TIMEOUT_MS);
      this.#send({ is: 'version', at: monoNow(), name, version });
      return true;
    } catch (error) {
      const code = error instanceof CriError ? error.code : 'INTERNAL';
      this.#end(code, error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  #subscribe(): void {
    const wallNs = BigInt(wallNow()) * 1000n + SUBSCRIBE_SLACK_NS;
    this.#send({ is: 'opened', at: monoNow(), wallNs });
    const stream = this.#client.events();
    stream.on('data', (bytes: Buffer) => this.#forward(bytes));
    stream.on('error', (error: ServiceError) => this.#end(codeOf(error), error.details ?? error.message));
    stream.on('end', () => this.#end(statusName(status.OK), ''));
    void this.#sendVersion();
  }

  #forward(bytes: Buffer): void {
    const at = monoNow();
    if (this.#pipe.writableLength < MAX_BYTES_FOR_PAYLOADS) {
      this.#sendDropped(at);
      this.#send({ is: 'event', at, bytes });
      return;
    }
    const event = this.#pipe.writableLength < MAX_BYTES_FOR_DIGESTS ? tryReadEvent(bytes) : null;
    if (event === null) {
      this.#dropped += 1;
      return;
    }
    this.#sendDropped(at);
    this.#send({ is: 'digest', at, id: event.id, type: event.type, createdNs: event.createdNs });
  }

  #sendDropped(at: Frame['at']): void {
    if (this.#dropped === 0) return;
    this.#send({ is: 'overflow', at, events: this.#dropped });
    this.#dropped = 0;
  }

  /** Sends nothing after `ended`: a write after the pipe's end would end the process before `ended` is out. */
  #send(frame: Frame): void {
    if (!this.#ending) this.#pipe.write(encodeFrame(frame));
  }

  #end(code: string, message: string): void {
    if (this.#ending) return;
    this.#sendDropped(monoNow());
    this.#ending = true;
    this.#pipe.end(encodeFrame({ is: 'ended', at: monoNow(), code, message: cleanText(message, 500) }));
    this.#client.close();
  }
}

function tryReadEvent(bytes: Buffer): { id: string; type: number; createdNs: bigint } | null {
  try {
    return readEvent(bytes, 0, monoNow());
  } catch {
    // Not an event at all; counted as dropped.
    return null;
  }
}

const socket = process.argv[2];
invariant(socket !== undefined, 'a reader without a socket');
await new Reader(socket).start();
