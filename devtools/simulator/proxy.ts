/*
 * A proxy between a CRI client (an agent, a kubelet) and a runtime. It forwards HTTP/2 streams below gRPC, so every call
 * passes unchanged, whatever its method, metadata, deadline, status or size. Only GetContainerEvents is decoded: a filter
 * decides on each event, and delivered and dropped events are recorded.
 *
 *   client connection ──► its own connection to the runtime, opened at the first call and again after it broke
 *
 * An `:authority` that Node.js refuses is changed (authority.ts), so that every kubelet's client is served; no runtime reads it.
 *
 * While the runtime is down, calls end with UNAVAILABLE. The proxy always reads the runtime's events, however slow the
 * client is, queues them for the client, and cuts off a client whose queue grows too large.
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import {
  connect as connectSocket,
  createServer as createSocketServer,
  type Server,
  type Socket,
} from 'node:net';
import { Duplex } from 'node:stream';
import { status } from '@grpc/grpc-js';
import { ContainerEventResponse } from '../../src/cri/runtime.ts';
import { monoNow } from '../../src/platform/clock.ts';
import type { Mono } from '../../src/protocol/units.ts';
import { DottedAuthority } from './authority.ts';
import { EVENTS_PATH, MAX_MESSAGE_BYTES } from './criClient.ts';
import { FrameSplitter } from './grpcFrames.ts';
import { clearSocketPath } from './socketPath.ts';

/** `twice` delivers an event and its copy. `until` holds it back, so that later events overtake it. */
export type EventDecision = 'deliver' | 'drop' | 'twice' | { readonly until: Promise<void> };
export type EventFilter = (event: ContainerEventResponse) => EventDecision;

export interface CriProxyOptions {
  /** The runtime's socket, a path. */
  readonly upstream: string;
  /** Where to listen, an absolute path. */
  readonly socket: string;
  /** Default: everything is delivered. */
  readonly filter?: EventFilter;
  /** The limit of queued events for one client, in bytes. Default 64 MiB. */
  readonly queueBytes?: number;
}

export interface ProxiedEvent {
  readonly event: ContainerEventResponse;
  /** When the proxy passed it on, or dropped it. */
  readonly mono: Mono;
  /** The number of the event stream, from 1. */
  readonly stream: number;
}

const DEFAULT_QUEUE_BYTES = 64 * 1024 ** 2;
const SESSION_OPTIONS = {
  settings: { initialWindowSize: MAX_MESSAGE_BYTES },
  // In megabytes. The default of 10 resets streams during one large list.
  maxSessionMemory: 1024,
};

/** Starts a proxy; the runtime may start later. Throws SETTING_INVALID when the socket cannot be used. */
export async function startCriProxy(options: CriProxyOptions): Promise<CriProxy> {
  const proxy = new CriProxy(options);
  await proxy.listen();
  return proxy;
}

export class CriProxy {
  readonly socket: string;
  /** These grow as long as the proxy runs, because it is only for tests. */
  readonly delivered: ProxiedEvent[] = [];
  readonly dropped: ProxiedEvent[] = [];
  /** How often each method was called, by name without the service. */
  readonly calls = new Map<string, number>();
  readonly #options: CriProxyOptions;
  readonly #streams = new Map<number, ForwardedCall>();
  readonly #sockets = new Set<Socket>();
  #filter: EventFilter;
  #refusal: status | null = null;
  /** Methods whose calls wait, by name without the service, and the callbacks that resume the waiting calls. */
  #held: ReadonlySet<string> = new Set();
  #waiting: (() => void)[] = [];
  #server: Server | null = null;
  #opened = 0;

  /** Use {@link startCriProxy}. */
  constructor(options: CriProxyOptions) {
    this.socket = options.socket;
    this.#options = options;
    this.#filter = options.filter ?? (() => 'deliver');
  }

  /** The number of open event streams. */
  get streams(): number {
    return this.#streams.size;
  }

  setFilter(filter: EventFilter): void {
    this.#filter = filter;
  }

  /** Ends every open event stream with a status; clients may subscribe again at once. */
  breakStreams(code: status = status.UNAVAILABLE): void {
    for (const call of [...this.#streams.values()]) call.end(code, 'the stream was broken on purpose');
  }

  /** Ends every new call with this status; null lifts the refusal. */
  refuse(code: status | null): void {
    this.#refusal = code;
  }

  /** Holds calls of these methods (`ListContainers`), as a runtime that hangs; calls that were held before are released. */
  hold(...methods: readonly string[]): void {
    this.#held = new Set(methods);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  /** Starts or restarts listening. */
  async listen(): Promise<void> {
    if (this.#server !== null) return;
    await clearSocketPath(this.socket);
    const http2 = createServer(SESSION_OPTIONS);
    http2.on('session', (session) => this.#accept(session));
    const server = createSocketServer((socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      const readable = socket.pipe(new DottedAuthority());
      http2.emit('connection', Duplex.from({ readable, writable: socket }));
    });
    const listening = Promise.withResolvers<void>();
    server.once('error', listening.reject);
    server.listen(this.socket, listening.resolve);
    await listening.promise;
    this.#server = server;
  }

  /** Destroys every connection and removes the socket, as a killed runtime; {@link listen} starts it again. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    const closed = Promise.withResolvers<void>();
    server.close(() => closed.resolve());
    for (const socket of this.#sockets) socket.destroy();
    await closed.promise;
  }

  #accept(session: Http2Session): void {
    const upstream = new Upstream(this.#options.upstream);
    session.on('error', () => session.destroy());
    session.once('close', () => upstream.close());
    session.setLocalWindowSize(2 * MAX_MESSAGE_BYTES);
    session.on('stream', (stream, headers) => {
      const method = methodOf(headers);
      this.calls.set(method, (this.calls.get(method) ?? 0) + 1);
      this.#forward(stream as ServerHttp2Stream, headers, upstream);
    });
  }

  #forward(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, upstream: Upstream): void {
    if (this.#refusal !== null) {
      stream.on('error', () => stream.destroy());
      stream.respond(statusHeaders(this.#refusal, 'refused on purpose'), { endStream: true });
      return;
    }
    if (this.#held.has(methodOf(headers))) {
      stream.on('error', () => stream.destroy());
      // A call that was cancelled meanwhile needs no response.
      this.#waiting.push(() => stream.destroyed || this.#forward(stream, headers, upstream));
      return;
    }
    const call = new ForwardedCall(stream, upstream.session().request({ ...headers }));
    if (headers[constants.HTTP2_HEADER_PATH] !== EVENTS_PATH) {
      call.passAll();
      return;
    }
    this.#opened += 1;
    const number = this.#opened;
    this.#streams.set(number, call);
    stream.once('close', () => this.#streams.delete(number));
    const queueBytes = this.#options.queueBytes ?? DEFAULT_QUEUE_BYTES;
    call.passEvents((event, pass) => this.#decide(event, number, pass), queueBytes);
  }

  #decide(event: ContainerEventResponse, stream: number, pass: () => void): void {
    const decision = this.#filter(event);
    const record = (all: ProxiedEvent[]) => all.push({ event, mono: monoNow(), stream });
    if (decision === 'drop') {
      record(this.dropped);
      return;
    }
    const deliver = () => {
      record(this.delivered);
      pass();
    };
    if (typeof decision === 'object') {
      void decision.until.then(deliver);
      return;
    }
    deliver();
    if (decision === 'twice') deliver();
  }
}

/** The connection to the runtime for one client connection. */
class Upstream {
  readonly #path: string;
  #session: ClientHttp2Session | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  session(): ClientHttp2Session {
    const present = this.#session;
    if (present !== null && !present.closed && !present.destroyed) return present;
    const session = connect('http://localhost', {
      ...SESSION_OPTIONS,
      createConnection: () => connectSocket(this.#path),
    });
    // Each open call gets the error through its own stream.
    session.on('error', () => session.destroy());
    session.once('connect', () => session.setLocalWindowSize(2 * MAX_MESSAGE_BYTES));
    this.#session = session;
    return session;
  }

  close(): void {
    this.#session?.destroy();
  }
}

/** One forwarded call. */
class ForwardedCall {
  readonly #client: ServerHttp2Stream;
  readonly #runtime: ClientHttp2Stream;
  /** The trailers for the client: the runtime's, or ours where it sent none. */
  #trailers: OutgoingHttpHeaders | null = null;
  #failure = 'the runtime went away';

  constructor(client: ServerHttp2Stream, runtime: ClientHttp2Stream) {
    this.#client = client;
    this.#runtime = runtime;
    client.pipe(runtime);
    client.on('wantTrailers', () => client.sendTrailers(this.#trailers ?? this.#unavailable()));
    client.on('error', () => client.destroy());
    client.once('close', () => runtime.close(constants.NGHTTP2_CANCEL));
    runtime.on('response', (headers, flags) => this.#respond(headers, flags));
    runtime.on('trailers', (trailers) => {
      this.#trailers ??= { ...trailers };
    });
    runtime.on('error', (error) => {
      this.#failure = error.message;
    });
    runtime.once('close', () => this.#finish());
  }

  passAll(): void {
    this.#runtime.pipe(this.#client, { end: false });
  }

  /** `decide` calls `pass` for each time that the client is to get the event. Compression is never requested. */
  passEvents(decide: (event: ContainerEventResponse, pass: () => void) => void, queueBytes: number): void {
    const splitter = new FrameSplitter();
    this.#runtime.on('data', (chunk: Buffer) => {
      for (const frame of splitter.push(chunk)) {
        if (frame.compressed) this.#pass(frame.bytes, queueBytes);
        else decide(ContainerEventResponse.decode(frame.payload), () => this.#pass(frame.bytes, queueBytes));
      }
    });
  }

  #pass(bytes: Buffer, queueBytes: number): void {
    if (this.#trailers !== null || this.#client.destroyed) return;
    this.#client.write(bytes);
    if (this.#client.writableLength > queueBytes) this.#client.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /** Ends the call for the client and cancels it at the runtime. */
  end(code: status, message: string): void {
    this.#trailers = trailersOf(code, message);
    this.#runtime.close(constants.NGHTTP2_CANCEL);
    this.#finish();
  }

  #respond(headers: IncomingHttpHeaders, flags: number): void {
    if (this.#client.destroyed || this.#client.headersSent) return;
    const ends = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    if (ends) this.#client.respond({ ...headers }, { endStream: true });
    else this.#client.respond({ ...headers }, { waitForTrailers: true });
  }

  #finish(): void {
    const client = this.#client;
    if (client.destroyed || client.writableEnded) return;
    if (client.headersSent) client.end();
    else {
      const trailers = this.#trailers ?? this.#unavailable();
      client.respond({ ...ANSWER_HEADERS, ...trailers }, { endStream: true });
    }
  }

  #unavailable(): OutgoingHttpHeaders {
    return trailersOf(status.UNAVAILABLE, this.#failure);
  }
}

const methodOf = ({ [constants.HTTP2_HEADER_PATH]: path }: IncomingHttpHeaders): string =>
  String(path).split('/').at(-1) ?? '';

const ANSWER_HEADERS = { ':status': 200, 'content-type': 'application/grpc' } as const;

const statusHeaders = (code: status, message: string): OutgoingHttpHeaders => ({
  ...ANSWER_HEADERS,
  ...trailersOf(code, message),
});

function trailersOf(code: status, message: string): OutgoingHttpHeaders {
  // gRPC percent-encodes everything but printable ASCII, and the percent sign.
  const encoded = message.replaceAll(/[^ -$&-~]+/gu, encodeURIComponent);
  return { 'grpc-status': String(code), 'grpc-message': encoded };
}
