/*
 * The CRI client: the few calls that only read, over a unix socket, with answers as raw bytes.
 *
 * Nothing in here writes to the runtime. There is no keepalive: on a unix socket it is not needed, and runtimes answer
 * pings faster than one in five minutes by closing the connection.
 */
import {
  Client,
  type ClientOptions,
  type ClientReadableStream,
  credentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { MAX_NAME_LENGTH } from '../protocol/record.ts';
import { cleanText } from '../protocol/text.ts';
import { letGoOfClosedStreams } from './closedStreams.ts';
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

/** What the kubelet accepts too (cri-client pkg/utils.go); over it a call ends with RESOURCE_EXHAUSTED. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Room in the HTTP/2 window of a connection, so that a late moment of ours never makes the runtime wait. */
const FLOW_WINDOW_BYTES = 16 * 1024 * 1024;

const OPTIONS: ClientOptions = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc-node.flow_control_window': FLOW_WINDOW_BYTES,
  'grpc.enable_retries': 0,
  // Bookkeeping about every call, for a service that nobody offers here.
  'grpc.enable_channelz': 0,
  'grpc.initial_reconnect_backoff_ms': 500,
  'grpc.max_reconnect_backoff_ms': 10_000,
  // Each client has a connection of its own: what one suffers says nothing about another.
  'grpc.use_local_subchannel_pool': 1,
};

letGoOfClosedStreams();

const path = (method: keyof typeof RuntimeServiceDefinition.methods): string =>
  `/${RuntimeServiceDefinition.fullName}/${RuntimeServiceDefinition.methods[method].name}`;

const asIs = (bytes: Buffer): Buffer => bytes;

/** How a call ended, where it did not end well. */
export class CriError extends Error {
  override readonly name = 'CriError';
  /**
   * The gRPC status name, such as UNAVAILABLE. Of an answer that was too large to be one message it is whose limit that was:
   * OVER_OUR_LIMIT or OVER_RUNTIME_LIMIT. RESOURCE_EXHAUSTED is then left for a runtime that is out of something else. MALFORMED where it could not be read.
   */
  readonly code: string;

  constructor(call: string, error: ServiceError | MalformedMessage) {
    const [said, code, details] = wordsOf(error);
    super(`${call}: ${said}: ${cleanText(details, 300)}`, { cause: error });
    this.code = code;
  }
}

function wordsOf(error: ServiceError | MalformedMessage): [said: string, code: string, details: string] {
  if (error instanceof MalformedMessage) return [error.code, error.code, error.message];
  return [statusName(error.code), codeOf(error), error.details ?? ''];
}

/** The code of an {@link CriError}, of anything that gRPC ended. */
export const codeOf = (error: ServiceError): string => limitOf(error) ?? statusName(error.code);

/** Whose limit of a message an answer was over. No field of a status says it: these are the words of the libraries. */
function limitOf({ code, details }: ServiceError): 'OVER_OUR_LIMIT' | 'OVER_RUNTIME_LIMIT' | null {
  if (code !== status.RESOURCE_EXHAUSTED) return null;
  // grpc-js, stream-decoder.ts: it never left this process.
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

/** Reads the answer of a call. */
function read<T>(call: string, type: MessageFns<T>, bytes: Buffer): T {
  try {
    return decode(type, bytes);
  } catch (error) {
    throw error instanceof MalformedMessage ? new CriError(call, error) : error;
  }
}

/** When a call ends, whatever the runtime does. */
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
    const request = Buffer.from(VersionRequest.encode({ version: 'v1' }).finish());
    const answer = read('Version', VersionResponse, await this.#call('version', request, { timeoutMs }));
    return {
      name: cleanText(answer.runtimeName, MAX_NAME_LENGTH),
      version: cleanText(answer.runtimeVersion, MAX_NAME_LENGTH),
    };
  }

  /** The bytes of a ListPodSandboxResponse: all sandboxes, in all states. */
  listSandboxes(bounds: CallBounds): Promise<Buffer> {
    const request = Buffer.from(ListPodSandboxRequest.encode({ filter: undefined }).finish());
    return this.#call('listPodSandbox', request, bounds);
  }

  /** The bytes of a ListContainersResponse: all containers, in all states. */
  listContainers(bounds: CallBounds): Promise<Buffer> {
    const request = Buffer.from(ListContainersRequest.encode({ filter: undefined }).finish());
    return this.#call('listContainers', request, bounds);
  }

  /** The same sandboxes as batches, each the bytes of a StreamPodSandboxesResponse. A `take` that throws ends the call. */
  streamSandboxes(bounds: CallBounds, take: (batch: Buffer) => void): Promise<void> {
    const request = Buffer.from(StreamPodSandboxesRequest.encode({ filter: undefined }).finish());
    return this.#batches('streamPodSandboxes', request, bounds, take);
  }

  /** The same containers as batches, each the bytes of a StreamContainersResponse. A `take` that throws ends the call. */
  streamContainers(bounds: CallBounds, take: (batch: Buffer) => void): Promise<void> {
    const request = Buffer.from(StreamContainersRequest.encode({ filter: undefined }).finish());
    return this.#batches('streamContainers', request, bounds, take);
  }

  async containerStatus(id: string, timeoutMs: number): Promise<ContainerStatus | undefined> {
    const request = Buffer.from(ContainerStatusRequest.encode({ containerId: id, verbose: false }).finish());
    const answer = await this.#call('containerStatus', request, { timeoutMs });
    return read('ContainerStatus', ContainerStatusResponse, answer).status;
  }

  async sandboxStatus(id: string, timeoutMs: number): Promise<PodSandboxStatus | undefined> {
    const request = Buffer.from(
      PodSandboxStatusRequest.encode({ podSandboxId: id, verbose: false }).finish(),
    );
    const answer = await this.#call('podSandboxStatus', request, { timeoutMs });
    return read('PodSandboxStatus', PodSandboxStatusResponse, answer).status;
  }

  /** The event stream, each message as raw bytes. It must be read on without a pause. */
  events(): ClientReadableStream<Buffer> {
    const request = Buffer.from(GetEventsRequest.encode({}).finish());
    return this.#client.makeServerStreamRequest(path('getContainerEvents'), asIs, asIs, request);
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
      const options = { deadline: Date.now() + bounds.timeoutMs };
      const call = this.#client.makeUnaryRequest(
        path(method),
        asIs,
        asIs,
        request,
        options,
        (error, answer) => {
          release();
          if (error !== null) reject(new CriError(RuntimeServiceDefinition.methods[method].name, error));
          else resolve(answer ?? Buffer.alloc(0));
        },
      );
      const release = cancelOn(bounds.signal, call);
    });
  }

  /** Resolves at the orderly end of the stream; what came before any other end is no answer. */
  #batches(
    method: 'streamPodSandboxes' | 'streamContainers',
    request: Buffer,
    bounds: CallBounds,
    take: (batch: Buffer) => void,
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const options = { deadline: Date.now() + bounds.timeoutMs };
    const stream = this.#client.makeServerStreamRequest(path(method), asIs, asIs, request, options);
    let refused = false;
    stream.on('data', (batch: Buffer) => {
      // What was on its way when the call was cancelled.
      if (refused) return;
      try {
        take(batch);
      } catch (error) {
        refused = true;
        reject(error);
        stream.cancel();
      }
    });
    stream.on('error', (error: ServiceError) =>
      reject(new CriError(RuntimeServiceDefinition.methods[method].name, error)),
    );
    stream.on('end', resolve);
    return promise.finally(cancelOn(bounds.signal, stream));
  }
}

/** Cancels a call when the signal is aborted, until what is returned is called. */
function cancelOn(signal: AbortSignal | undefined, call: { cancel(): void }): () => void {
  const cancel = () => call.cancel();
  if (signal?.aborted === true) cancel();
  signal?.addEventListener('abort', cancel);
  return () => signal?.removeEventListener('abort', cancel);
}
