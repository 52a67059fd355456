/*
 * CRI method definitions for @grpc/grpc-js, from the generated types, and a typed client of the whole service for drivers
 * and tests.
 */
import {
  type CallOptions,
  type ChannelOptions,
  Client,
  type ClientReadableStream,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import {
  type ContainerEventResponse,
  type MessageFns,
  RuntimeServiceDefinition,
} from '../../src/cri/runtime.ts';

const methods = RuntimeServiceDefinition.methods;
export const EVENTS_PATH = `/${RuntimeServiceDefinition.fullName}/${methods.getContainerEvents.name}`;

/** The limit of real runtimes for a message; lists of full nodes come near it. */
export const MAX_MESSAGE_BYTES = 16 * 1024 ** 2;

interface Described<Q, A> {
  readonly name: string;
  readonly requestType: MessageFns<Q>;
  readonly responseType: MessageFns<A>;
  readonly responseStream: boolean;
}

function define<Q, A>(described: Described<Q, A>): MethodDefinition<Q, A> {
  const { name, requestType, responseType, responseStream } = described;
  return {
    path: `/${RuntimeServiceDefinition.fullName}/${name}`,
    originalName: name,
    requestStream: false,
    responseStream,
    requestSerialize: (value) => Buffer.from(requestType.encode(value).finish()),
    requestDeserialize: (bytes) => requestType.decode(bytes),
    responseSerialize: (value) => Buffer.from(responseType.encode(value).finish()),
    responseDeserialize: (bytes) => responseType.decode(bytes),
  };
}

/** Every method, by its name in the generated code. */
export const CRI_METHODS = {
  version: define(methods.version),
  listPodSandbox: define(methods.listPodSandbox),
  listContainers: define(methods.listContainers),
  podSandboxStatus: define(methods.podSandboxStatus),
  containerStatus: define(methods.containerStatus),
  getContainerEvents: define(methods.getContainerEvents),
  streamPodSandboxes: define(methods.streamPodSandboxes),
  streamContainers: define(methods.streamContainers),
  runPodSandbox: define(methods.runPodSandbox),
  stopPodSandbox: define(methods.stopPodSandbox),
  removePodSandbox: define(methods.removePodSandbox),
  createContainer: define(methods.createContainer),
  startContainer: define(methods.startContainer),
  stopContainer: define(methods.stopContainer),
  removeContainer: define(methods.removeContainer),
  updateContainerResources: define(methods.updateContainerResources),
};

type Wire = typeof CRI_METHODS;
type StreamingName = 'getContainerEvents' | 'streamPodSandboxes' | 'streamContainers';
type UnaryName = Exclude<keyof Wire, StreamingName>;
type Request<K extends keyof Wire> = Wire[K] extends MethodDefinition<infer Q, infer _> ? Q : never;
type Response<K extends keyof Wire> = Wire[K] extends MethodDefinition<infer _, infer A> ? A : never;

export interface CriTestClient {
  /** One call. Rejects with grpc-js's ServiceError, whose `code` is the gRPC status. */
  call<K extends UnaryName>(method: K, request: Request<K>, options?: CallOptions): Promise<Response<K>>;
  events(options?: CallOptions): ClientReadableStream<ContainerEventResponse>;
  /** A list in batches. */
  stream<K extends Exclude<StreamingName, 'getContainerEvents'>>(
    method: K,
    request: Request<K>,
    options?: CallOptions,
  ): ClientReadableStream<Response<K>>;
  close(): void;
}

/** A client with its own connection. `socket` is a path. */
export function connectCri(socket: string, options: ChannelOptions = {}): CriTestClient {
  const client = new Client(`unix:${socket}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 1000,
    ...options,
  });
  return {
    call: (method, request, callOptions) => unary(client, CRI_METHODS[method], request, callOptions ?? {}),
    events: (callOptions) => streaming(client, CRI_METHODS.getContainerEvents, {}, callOptions ?? {}),
    stream: (method, request, callOptions) =>
      streaming(client, CRI_METHODS[method], request, callOptions ?? {}),
    close: () => client.close(),
  };
}

// Looking up a table entry loses the relation of its request and response types; the type parameters restore it.
function unary<Q, A>(client: Client, method: unknown, request: Q, options: CallOptions): Promise<A> {
  const { path, requestSerialize, responseDeserialize } = method as MethodDefinition<Q, A>;
  const { promise, resolve, reject } = Promise.withResolvers<A>();
  const answer = (error: ServiceError | null, value?: A) => {
    if (error !== null) reject(error);
    else if (value === undefined) reject(new Error(`${path} returned no message`));
    else resolve(value);
  };
  client.makeUnaryRequest(
    path,
    requestSerialize,
    responseDeserialize,
    request,
    new Metadata(),
    options,
    answer,
  );
  return promise;
}

function streaming<Q, A>(client: Client, method: unknown, request: Q, options: CallOptions) {
  const { path, requestSerialize, responseDeserialize } = method as MethodDefinition<Q, A>;
  return client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, options);
}
