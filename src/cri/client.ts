/*
 * The CRI client: the few read-only calls, over a unix socket, with answers as raw bytes. Nothing here writes to the runtime.
 *
 * There is no keepalive: a unix socket does not need it, and runtimes close a connection that sends more than one ping in five minutes.
 */
import { subscribe } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import {
  Client,
  type ClientOptions,
  type ClientReadableStream,
  credentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { cleanText, MAX_NAME_LENGTH } from '../protocol/text.ts';
import { decode, MalformedMessage } from './malformed.ts';
import type { RuntimeVersion } from './profiles.ts';
import {
  type ContainerStatus,
  ContainerStatusRequest,
  ContainerStatusResponse,
  GetEventsRequest,
  ListContainersRequest,
  ListPodSandboxRequest,
  type MessageFns,
  type PodSandboxStatus,
  PodSandboxStatusRequest,
  PodSandboxStatusResponse,
  RuntimeServiceDefinition,
  StreamContainersRequest,
  StreamPodSandboxesRequest,
  VersionRequest,
  VersionResponse,
} from './runtime.ts';

/** The kubelet's limit too (cri-client pkg/utils.go); a larger answer ends the call with RESOURCE_EXHAUSTED. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** The HTTP/2 window of a connection: large, so that a delay in this process never makes the runtime wait. */
const FLOW_WINDOW_BYTES = 16 * 1024 * 1024;

const OPTIONS: ClientOptions = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc-node.flow_control_window': FLOW_WINDOW_BYTES,
  'grpc.enable_retries': 0,
  // Records every call for a service that is not offered here.
  'grpc.enable_channelz': 0,
  'grpc.initial_reconnect_backoff_ms': 500,
  // The first list after a restart of the runtime waits for this long at most.
  'grpc.max_reconnect_backoff_ms': 2_000,
  // Each client has its own connection, so that the failure of one does not affect another.
  'grpc.use_local_subchannel_pool': 1,
};

/** Node's documented channel for closed client streams. If it is silent, memory is only released later. */
const CLOSED_STREAMS = 'http2.client.stream.close';

/*
 * Each HTTP/2 stream has an internal object of Node's that survives collections of the young generation. It holds the stream, whose listeners
 * hold the call, which holds the answer: all of it waited for a full collection, 34 kB and the buffers of both answers per relist. A
 * closed stream emits nothing more, so its listeners can be removed.
 */
subscribe(CLOSED_STREAMS, (message) => {
  const stream: unknown = Reflect.get(Object(message), 'stream');
  // It may still have data to be read, and its end comes after that. After its own `close` nothing follows but what its listeners do in
  // the same turn.
  if (stream instanceof EventEmitter) stream.once('close', () => setImmediate(removeListeners, stream));
});

function removeListeners(stream: EventEmitter): void {
  stream.removeAllListeners();
  // An error without a listener would end the process.
  stream.on('error', () => undefined);
}

const path = (method: keyof typeof RuntimeServiceDefinition.methods): string =>
  `/${RuntimeServiceDefinition.fullName}/${RuntimeServiceDefinition.methods[method].name}`;

const unchanged = (bytes: Buffer): Buffer => bytes;

const encoded = <T>(type: MessageFns<T>, request: T): Buffer => Buffer.from(type.encode(request).finish());
/** All of a list, in all states. */
const ALL = { filter: undefined };

export class CriError extends Error {
  override readonly name = 'CriError';
  /**
   * The gRPC status name, such as UNAVAILABLE. For an answer too large for one message, whose limit it was: OVER_OUR_LIMIT or
   * OVER_RUNTIME_LIMIT; RESOURCE_EXHAUSTED then means that the runtime is out of something else. MALFORMED if it could not be decoded.
   */
  readonly code: string;

  constructor(call: string, error: ServiceError | MalformedMessage) {
    const [summary, code, details] = describe(error);
    super(`${call}: ${summary}: ${cleanText(details, 300)}`, { cause: error });
    this.code = code;
  }
}

function describe(error: ServiceError | MalformedMessage): [summary: string, code: string, details: string] {
  if (error instanceof MalformedMessage) return [error.code, error.code, error.message];
  return [statusName(error.code), codeOf(error), error.details ?? ''];
}

/** The code that a {@link CriError} has for an error of gRPC. */
export const codeOf = (error: ServiceError): string => limitOf(error) ?? statusName(error.code);

/** Whose message limit an answer exceeded. No field of a status says so, only the libraries' messages. */
function limitOf({ code, details }: ServiceError): 'OVER_OUR_LIMIT' | 'OVER_RUNTIME_LIMIT' | null {
  if (code !== status.RESOURCE_EXHAUSTED) return null;
  // grpc-js, stream-decoder.ts, in this process.
  if (/^Received message larger than max \(/.test(details)) return 'OVER_OUR_LIMIT';
  // grpc-go, server.go, sendResponse and SendMsg.
  return /trying to send message larger than max \(/.test(details) ? 'OVER_RUNTIME_LIMIT' : null;
}

/** The calls whose answers are decoded. */
export const CRI_CALLS = [
  'Version',
  'ListPodSandbox',
  'ListContainers',
  'ContainerStatus',
  'PodSandboxStatus',
  'GetContainerEvents',
] as const;
export type CriCall = (typeof CRI_CALLS)[number];

/** Every code that a {@link CriError} can have. */
export const CALL_CODES: readonly string[] = [
  ...Object.keys(status).filter((name) => Number.isNaN(Number(name))),
  'OVER_OUR_LIMIT',
  'OVER_RUNTIME_LIMIT',
  'MALFORMED',
];

/** A number that gRPC has no name for is UNKNOWN, so that the number of names is bounded. */
export const statusName = (code: number | undefined): string => status[code ?? status.UNKNOWN] ?? 'UNKNOWN';

function read<T>(call: string, type: MessageFns<T>, bytes: Buffer): T {
  try {
    return decode(type, bytes);
  } catch (error) {
    throw error instanceof MalformedMessage ? new CriError(call, error) : error;
  }
}

/**
 * The runtime knows the deadline too, and may cancel the call before our timer does: then that is the cause (grpc-go,
 * internal/transport/http2_client.go, handleRSTStream).
 */
function failureOf(
  method: keyof typeof RuntimeServiceDefinition.methods,
  error: ServiceError,
  deadline: number,
): CriError {
  if (error.code === status.CANCELLED && Date.now() >= deadline) error.code = status.DEADLINE_EXCEEDED;
  return new CriError(RuntimeServiceDefinition.methods[method].name, error);
}

/** Ends a call, whatever the runtime does. */
export interface CallBounds {
  readonly timeoutMs: number;
  /** Ends it as CANCELLED. */
  readonly signal?: AbortSignal;
}

export class CriClient {
  readonly #client: Client;

  /** `socket` is an absolute path. */
  constructor(socket: string) {
    this.#client = new Client(`unix:${socket}`, credentials.createInsecure(), OPTIONS);
  }

  async version(timeoutMs: number): Promise<RuntimeVersion> {
    const request = encoded(VersionRequest, { version: 'v1' });
    const answer = read('Version', VersionResponse, await this.#call('version', request, { timeoutMs }));
    return {
      name: cleanText(answer.runtimeName, MAX_NAME_LENGTH),
      version: cleanText(answer.runtimeVersion, MAX_NAME_LENGTH),
    };
  }

  /** The bytes of a ListPodSandboxResponse. */
  listSandboxes(bounds: CallBounds): Promise<Buffer> {
    return this.#call('listPodSandbox', encoded(ListPodSandboxRequest, ALL), bounds);
  }

  /** The bytes of a ListContainersResponse. */
  listContainers(bounds: CallBounds): Promise<Buffer> {
    return this.#call('listContainers', encoded(ListContainersRequest, ALL), bounds);
  }

  /** The same sandboxes in batches, each the bytes of a StreamPodSandboxesResponse. If `take` throws, the call ends. */
  streamSandboxes(bounds: CallBounds, take: (batch: Buffer) => void): Promise<void> {
    return this.#batches('streamPodSandboxes', encoded(StreamPodSandboxesRequest, ALL), bounds, take);
  }

  /** The same containers in batches, each the bytes of a StreamContainersResponse. If `take` throws, the call ends. */
  streamContainers(bounds: CallBounds, take: (batch: Buffer) => void): Promise<void> {
    return this.#batches('streamContainers', encoded(StreamContainersRequest, ALL), bounds, take);
  }

  async containerStatus(id: string, bounds: CallBounds): Promise<ContainerStatus | undefined> {
    const request = encoded(ContainerStatusRequest, { containerId: id, verbose: false });
    const answer = await this.#call('containerStatus', request, bounds);
    return read('ContainerStatus', ContainerStatusResponse, answer).status;
  }

  async sandboxStatus(id: string, bounds: CallBounds): Promise<PodSandboxStatus | undefined> {
    const request = encoded(PodSandboxStatusRequest, { podSandboxId: id, verbose: false });
    const answer = await this.#call('podSandboxStatus', request, bounds);
    return read('PodSandboxStatus', PodSandboxStatusResponse, answer).status;
  }

  /** The event stream, each message as raw bytes. It must be read without a pause. */
  events(): ClientReadableStream<Buffer> {
    const request = encoded(GetEventsRequest, {});
    return this.#client.makeServerStreamRequest(path('getContainerEvents'), unchanged, unchanged, request);
  }

  close(): void {
    this.#client.close();
  }

  #call(
    method: 'version' | 'listPodSandbox' | 'listContainers' | 'containerStatus' | 'podSandboxStatus',
    request: Buffer,
    bounds: CallBounds,
  ): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const deadline = Date.now() + bounds.timeoutMs;
      const call = this.#client.makeUnaryRequest(
        path(method),
        unchanged,
        unchanged,
        request,
        { deadline },
        (error, answer) => {
          release();
          if (error !== null) reject(failureOf(method, error, deadline));
          else resolve(answer ?? Buffer.alloc(0));
        },
      );
      const release = cancelOn(bounds.signal, call);
    });
  }

  /** Resolves when the stream ends with OK; after any other end the batches are no answer. */
  #batches(
    method: 'streamPodSandboxes' | 'streamContainers',
    request: Buffer,
    bounds: CallBounds,
    take: (batch: Buffer) => void,
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const deadline = Date.now() + bounds.timeoutMs;
    const stream = this.#client.makeServerStreamRequest(path(method), unchanged, unchanged, request, {
      deadline,
    });
    let refused = false;
    stream.on('data', (batch: Buffer) => {
      // Was under way when the call was cancelled.
      if (refused) return;
      try {
        take(batch);
      } catch (error) {
        refused = true;
        reject(error);
        stream.cancel();
      }
    });
    stream.on('error', (error: ServiceError) => reject(failureOf(method, error, deadline)));
    stream.on('end', resolve);
    return promise.finally(cancelOn(bounds.signal, stream));
  }
}

/** The calls of an observer, apart from the event stream, which has a process of its own. */
export type ObserverCalls = Omit<{ [K in keyof CriClient]: CriClient[K] }, 'events' | 'close'>;

/** Cancels a call when the signal is aborted, until the returned function is called. */
function cancelOn(signal: AbortSignal | undefined, call: { cancel(): void }): () => void {
  const cancel = () => call.cancel();
  if (signal?.aborted === true) cancel();
  signal?.addEventListener('abort', cancel);
  return () => signal?.removeEventListener('abort', cancel);
}
