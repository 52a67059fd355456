/*
 * Hostile runtimes: one sends mutated messages over gRPC, the other violates HTTP/2 or gRPC itself. Both listen on the socket of
 * a runtime.
 */
import { randomBytes } from 'node:crypto';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer, type Socket } from 'node:net';
import { Server, type ServerWritableStream } from '@grpc/grpc-js';
import { listenOn } from '../../devtools/simulator/listener.ts';
import { type Random, randomFor } from '../../devtools/simulator/random.ts';
import { clearSocketPath } from '../../devtools/simulator/socketPath.ts';
import {
  type Container,
  ListContainersResponse,
  ListPodSandboxResponse,
  type PodSandbox,
  RuntimeServiceDefinition,
} from '../../src/cri/runtime.ts';
import { type CriMessageKind, randomMessage } from './messages.ts';
import { mutate } from './mutations.ts';

const { fullName, methods } = RuntimeServiceDefinition;
/** The share of mutated answers; events are always mutated. */
const MUTATED_SHARE = 0.7;
/** Events that are sent in one turn of the event loop. */
const EVENTS_PER_TURN = 50;
/** A field that is longer than its message. */
const UNREADABLE = Buffer.from([0x0a, 0x7f, 1]);

type EventCall = ServerWritableStream<Buffer, Buffer>;

export class HostileRuntime {
  /** Whether answers to Version cannot be decoded. */
  unreadableVersion = false;
  /** The content of lists, unmutated; no answer to a status query can be decoded then. Null: lists and statuses are drawn and mutated. */
  pod: { readonly sandboxes: PodSandbox[]; readonly containers: Container[] } | null = null;
  readonly #random: Random;
  readonly #close: () => Promise<void>;
  #stream: EventCall | null = null;
  #answered = 0;

  private constructor(random: Random, close: () => Promise<void>) {
    this.#random = random;
    this.#close = close;
  }

  static async listen(socket: string, seed: number): Promise<HostileRuntime> {
    const server = new Server({ 'grpc.max_send_message_length': -1 });
    const runtime = new HostileRuntime(randomFor(seed, 'hostile'), () => listener.close());
    runtime.#serve(server);
    const listener = await listenOn(socket, server);
    return runtime;
  }

  /** The number of answered calls, without the stream. */
  get answered(): number {
    return this.#answered;
  }

  get subscribed(): boolean {
    return this.#stream !== null;
  }

  /** Sends mutated events; returns them as they were sent. */
  async announce(count: number): Promise<Buffer[]> {
    const stream = this.#stream;
    if (stream === null) throw new Error('there is no subscriber');
    const sent: Buffer[] = [];
    while (sent.length < count) {
      const flowing = Array.from({ length: EVENTS_PER_TURN }, () => {
        const { bytes } = mutate(randomMessage('event', this.#random, nowNs()), this.#random);
        sent.push(bytes);
        return stream.write(bytes);
      });
      if (flowing.includes(false)) await new Promise((resolve) => stream.once('drain', resolve));
      else await new Promise(setImmediate);
    }
    return sent;
  }

  /** Sends one message as it is given. */
  send(message: Buffer): void {
    this.#stream?.write(message);
  }

  stop(): Promise<void> {
    return this.#close();
  }

  #serve(server: Server): void {
    this.#answer(server, methods.version.name, () =>
      this.unreadableVersion ? UNREADABLE : randomMessage('version', this.#random, 0n),
    );
    this.#answer(server, methods.listPodSandbox.name, () => {
      if (this.pod === null) return this.#perhapsMutated('sandboxes');
      return Buffer.from(ListPodSandboxResponse.encode({ items: this.pod.sandboxes }).finish());
    });
    this.#answer(server, methods.listContainers.name, () => {
      if (this.pod === null) return this.#perhapsMutated('containers');
      return Buffer.from(ListContainersResponse.encode({ containers: this.pod.containers }).finish());
    });
    const status = (): Buffer => (this.pod === null ? this.#perhapsMutated('status') : UNREADABLE);
    this.#answer(server, methods.containerStatus.name, status);
    this.#answer(server, methods.podSandboxStatus.name, status);
    const subscribe = (stream: EventCall) => {
      this.#stream = stream;
      stream.on('error', () => undefined);
      stream.once('close', () => {
        if (this.#stream === stream) this.#stream = null;
      });
    };
    server.register(
      `/${fullName}/${methods.getContainerEvents.name}`,
      subscribe,
      unchanged,
      unchanged,
      'serverStream',
    );
  }

  #answer(server: Server, name: string, answer: () => Buffer): void {
    const handler = (_: unknown, callback: (error: null, bytes: Buffer) => void): void => {
      this.#answered += 1;
      callback(null, answer());
    };
    server.register(`/${fullName}/${name}`, handler, unchanged, unchanged, 'unary');
  }

  #perhapsMutated(kind: CriMessageKind): Buffer {
    const bytes = randomMessage(kind, this.#random, nowNs());
    return this.#random.chance(MUTATED_SHARE) ? mutate(bytes, this.#random).bytes : bytes;
  }
}

const unchanged = (bytes: Buffer): Buffer => bytes;

const nowNs = (): bigint => BigInt(Date.now()) * 1_000_000n;

// Below gRPC.

const SETTINGS = frame(4, 0, 0, Buffer.alloc(0));
const HOLD_MS = 300;

/** One HTTP/2 frame (RFC 9113, 4.1). */
function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer,
  length = payload.length,
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const times = (count: number, bytes: Buffer): Buffer => Buffer.alloc(count * bytes.length, bytes);

/** Malformed values of grpc-status. */
const STATUSES = ['99999', '-1', 'NaN', '', '1e308', 'OK', '14\u00e9'];
/** Message prefixes with a wrong length, a compression that was not negotiated, or an unknown flag. */
const PREFIXES = [
  [0, 0xff, 0xff, 0xff, 0xff],
  [1, 0, 0, 0, 4, 1, 2, 3, 4],
  [9, 0, 0, 0, 0],
  [0, 0, 0],
];

/** The violations by name: what is sent on a connection before it is cut. */
const VIOLATIONS_BY_NAME: Readonly<Record<string, (socket: Socket) => void>> = {
  'random bytes': (socket) => sendAndCut(socket, randomBytes(256 * 1024)),
  'settings, then random bytes': (socket) => sendAndCut(socket, SETTINGS, randomBytes(256 * 1024)),
  'half a frame': (socket) => sendAndCut(socket, SETTINGS, frame(0, 0, 1, Buffer.alloc(10), 16_384)),
  'a frame of 16 MiB': (socket) =>
    sendAndCut(socket, SETTINGS, frame(0, 0, 1, Buffer.alloc(1 << 20), 0xff_ff_ff)),
  'headers without an end': (socket) =>
    sendAndCut(
      socket,
      SETTINGS,
      frame(1, 0, 1, Buffer.alloc(16_384)),
      times(500, frame(9, 0, 1, Buffer.alloc(16_384))),
    ),
  'a storm of GOAWAY': (socket) =>
    sendAndCut(socket, SETTINGS, times(10_000, frame(7, 0, 0, Buffer.alloc(8)))),
  'a storm of SETTINGS and PING': (socket) =>
    sendAndCut(socket, times(10_000, SETTINGS), times(10_000, frame(6, 0, 0, Buffer.alloc(8)))),
  'a storm of RST_STREAM and WINDOW_UPDATE': (socket) =>
    sendAndCut(
      socket,
      SETTINGS,
      times(10_000, frame(3, 0, 1, Buffer.alloc(4))),
      times(10_000, frame(8, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff]))),
    ),
  'HTTP/1.1': (socket) =>
    sendAndCut(socket, Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nworld')),
  'an end at once': (socket) => socket.destroy(),
  silence: (socket) => sendAndCut(socket),
};

/** Sends bytes, waits a little, and cuts the connection. */
function sendAndCut(socket: Socket, ...bytes: readonly Buffer[]): void {
  for (const each of bytes) socket.write(each);
  const timer = setTimeout(() => socket.destroy(), HOLD_MS);
  socket.once('close', () => clearTimeout(timer));
}

/** An HTTP/2 server whose gRPC status and prefix are wrong, differently in each call. */
function wrongGrpc(): (socket: Socket) => void {
  let calls = 0;
  const server = createHttp2Server();
  server.on('sessionError', () => undefined);
  server.on('stream', (stream: ServerHttp2Stream) => {
    calls += 1;
    stream.on('error', () => undefined);
    const status = STATUSES[calls % STATUSES.length] ?? '';
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status, 'grpc-message': '%ff%00' }));
    stream.end(Buffer.from(PREFIXES[calls % PREFIXES.length] ?? []));
  });
  return (socket) => {
    server.emit('connection', socket);
    const timer = setTimeout(() => socket.destroy(), 5 * HOLD_MS);
    socket.once('close', () => clearTimeout(timer));
  };
}

export interface ViolatingRuntime {
  /** The violations that a connection has met. */
  readonly done: ReadonlySet<string>;
  stop(): Promise<void>;
}

export const VIOLATIONS: readonly string[] = [...Object.keys(VIOLATIONS_BY_NAME), 'wrong gRPC'];

/** Each connection meets the next violation in turn. */
export async function listenViolating(path: string, names = VIOLATIONS): Promise<ViolatingRuntime> {
  await clearSocketPath(path);
  const wrong = wrongGrpc();
  const violations = names.map((name) => ({ name, violate: VIOLATIONS_BY_NAME[name] ?? wrong }));
  const done = new Set<string>();
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    const violation = violations[connections % violations.length];
    connections += 1;
    if (violation === undefined) return;
    socket.once('close', () => done.add(violation.name));
    violation.violate(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    done,
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
