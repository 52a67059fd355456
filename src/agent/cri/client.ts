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
import {
  type ContainerStatus,
  ContainerStatusRequest,
  ContainerStatusResponse,
  GetEventsRequest,
  ListContainersRequest,
  ListPodSandboxRequest,
  RuntimeServiceDefinition,
  VersionRequest,
  VersionResponse,
} from '../../cri/runtime.ts';
import { MAX_NAME_LENGTH } from '../../evidence/record.ts';
import { clean } from './items.ts';
import type { RuntimeVersion } from './profiles.ts';

/** What the kubelet accepts too (cri-client pkg/utils.go); over it a call ends with RESOURCE_EXHAUSTED. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
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

const path = (method: keyof typeof RuntimeServiceDefinition.methods): string =>
  `/${RuntimeServiceDefinition.fullName}/${RuntimeServiceDefinition.methods[method].name}`;

const asIs = (bytes: Buffer): Buffer => bytes;

/** How a call ended, where it did not end well. */
export class CriError extends Error {
  override readonly name = 'CriError';
  /** The gRPC status name, such as UNAVAILABLE. */
  readonly code: string;

  constructor(call: string, error: ServiceError) {
    super(`${call}: ${statusName(error.code)}: ${clean(error.details ?? '', 300)}`, { cause: error });
    this.code = statusName(error.code);
  }
}

export const statusName = (code: number | undefined): string =>
  status[code ?? status.UNKNOWN] ?? `CODE_${code}`;

export class CriClient {
  readonly #client: Client;

  /** `socket` is an absolute path. */
  constructor(socket: string) {
    this.#client = new Client(`unix:${socket}`, credentials.createInsecure(), OPTIONS);
  }

  async version(timeoutMs: number): Promise<RuntimeVersion> {
    const request = Buffer.from(VersionRequest.encode({ version: 'v1' }).finish());
    const answer = VersionResponse.decode(await this.#call('version', request, timeoutMs));
    return {
      name: clean(answer.runtimeName, MAX_NAME_LENGTH),
      version: clean(answer.runtimeVersion, MAX_NAME_LENGTH),
    };
  }

  /** The bytes of a ListPodSandboxResponse: all sandboxes, in all states. */
  listSandboxes(timeoutMs: number): Promise<Buffer> {
    const request = Buffer.from(ListPodSandboxRequest.encode({ filter: undefined }).finish());
    return this.#call('listPodSandbox', request, timeoutMs);
  }

  /** The bytes of a ListContainersResponse: all containers, in all states. */
  listContainers(timeoutMs: number): Promise<Buffer> {
    const request = Buffer.from(ListContainersRequest.encode({ filter: undefined }).finish());
    return this.#call('listContainers', request, timeoutMs);
  }

  async containerStatus(id: string, timeoutMs: number): Promise<ContainerStatus | undefined> {
    const request = Buffer.from(ContainerStatusRequest.encode({ containerId: id, verbose: false }).finish());
    return ContainerStatusResponse.decode(await this.#call('containerStatus', request, timeoutMs)).status;
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
    method: 'version' | 'listPodSandbox' | 'listContainers' | 'containerStatus',
    request: Buffer,
    timeoutMs: number,
  ): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const deadline = Date.now() + timeoutMs;
      this.#client.makeUnaryRequest(path(method), asIs, asIs, request, { deadline }, (error, answer) => {
        if (error !== null) reject(new CriError(RuntimeServiceDefinition.methods[method].name, error));
        else resolve(answer ?? Buffer.alloc(0));
      });
    });
  }
}
