/*
 * The CRI of a simulated runtime without a socket: the same messages, handed over in this process. A fleet needs neither gRPC nor a reader
 * process for each of its nodes. A list is encoded again only after something happened on its node.
 */
import { Metadata, status } from '@grpc/grpc-js';
import type {
  ReaderEvents,
  ReaderProcess,
  StartReader,
} from '../../src/agent/observe/stream/readerProcess.ts';
import { type CallBounds, CriError, type ObserverCalls } from '../../src/cri/client.ts';
import type { RuntimeVersion } from '../../src/cri/profiles.ts';
import type { ContainerStatus, PodSandboxStatus } from '../../src/cri/runtime.ts';
import { monoNow, wallNow } from '../../src/platform/clock.ts';
import type { Mono } from '../../src/protocol/units.ts';
import { containerStatus, sandboxMessage } from '../simulator/criMessages.ts';
import type { ListRequest } from '../simulator/lister.ts';
import type { RuntimeCore } from '../simulator/runtimeCore.ts';
import { SharedHeartbeat } from './sharedHeartbeat.ts';

/** A message may be built in the millisecond in which the stream opens. */
const SLACK_NS = 1_000_000n;

/** A buffer with so much beside it does not count as the answer's own, which a reader frees. */
const BESIDE_BYTES = 64;

export class DirectCalls implements ObserverCalls {
  readonly #core: RuntimeCore;
  /** By call, since something last happened; replaced when something does. */
  #answers = new Map<ListRequest['call'], Buffer[]>();

  constructor(core: RuntimeCore) {
    this.#core = core;
    core.truth.listen(({ what }) => {
      // A change that only the kubelet knows of changes no list.
      if (what !== 'status' && what !== 'watch') this.#answers = new Map();
    });
  }

  async version(): Promise<RuntimeVersion> {
    return versionOf(this.#core);
  }

  async listSandboxes({ signal }: CallBounds): Promise<Buffer> {
    return whole(await this.#list('ListPodSandbox', { call: 'listPodSandbox' }, signal));
  }

  async listContainers({ signal }: CallBounds): Promise<Buffer> {
    return whole(await this.#list('ListContainers', { call: 'listContainers' }, signal));
  }

  async streamSandboxes({ signal }: CallBounds, take: (batch: Buffer) => void): Promise<void> {
    for (const batch of await this.#list('StreamPodSandboxes', { call: 'streamPodSandboxes' }, signal))
      take(batch);
  }

  async streamContainers({ signal }: CallBounds, take: (batch: Buffer) => void): Promise<void> {
    for (const batch of await this.#list('StreamContainers', { call: 'streamContainers' }, signal))
      take(batch);
  }

  async containerStatus(id: string): Promise<ContainerStatus> {
    const container = this.#core.pods.containers.get(id);
    if (container === undefined) throw failed('ContainerStatus', status.NOT_FOUND, id);
    return containerStatus(container);
  }

  async sandboxStatus(id: string): Promise<PodSandboxStatus> {
    const sandbox = this.#core.pods.sandboxes.get(id);
    if (sandbox === undefined) throw failed('PodSandboxStatus', status.NOT_FOUND, id);
    return sandboxMessage(sandbox);
  }

  async #list(call: string, request: ListRequest, signal: AbortSignal | undefined): Promise<Buffer[]> {
    const answers = this.#answers;
    const known = answers.get(request.call);
    if (known !== undefined) return known;
    const { promise, resolve, reject } = Promise.withResolvers<Buffer[]>();
    const cancel = () => reject(failed(call, status.CANCELLED, 'cancelled'));
    signal?.addEventListener('abort', cancel);
    this.#core.lister.list(request, ({ messages, failure }) => {
      if (failure !== null) return reject(failed(call, failure.code, failure.details));
      const answer = messages.map(lasting);
      // If something happened meanwhile, this map is no longer asked.
      answers.set(request.call, answer);
      resolve(answer);
    });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }
}

/** Starts readers that read from this runtime, and beat as a reader process does. */
export const directReaderOf =
  (core: RuntimeCore): StartReader =>
  (_socket, events) =>
    new DirectReader(core, events);

const HEARTBEATS = new SharedHeartbeat();

class DirectReader implements ReaderProcess {
  readonly pid = process.pid;
  readonly #core: RuntimeCore;
  readonly #events: ReaderEvents;
  readonly #stopHeartbeat: () => void;
  #last = monoNow();
  #stream: number | null = null;
  #ended = false;

  constructor(core: RuntimeCore, events: ReaderEvents) {
    this.#core = core;
    this.#events = events;
    this.#stopHeartbeat = HEARTBEATS.add(() => this.#beat());
    setImmediate(() => this.#sendVersion());
  }

  subscribe(): void {
    this.#events.frame({ is: 'opened', at: monoNow(), wallNs: BigInt(wallNow()) * 1000n + SLACK_NS });
    this.#core.open((number) => {
      this.#stream = number;
      return {
        number,
        send: (message) => this.#events.frame({ is: 'event', at: monoNow(), bytes: Buffer.from(message) }),
        hasRoom: () => true,
        end: (code, details, cause) => {
          this.#events.frame({ is: 'ended', at: monoNow(), code: status[code], message: details });
          this.#end(cause, null);
        },
      };
    });
    this.#sendVersion();
  }

  kill(): void {
    this.#end('cancelled', 'the reader was killed');
  }

  lastHeartbeat(): Mono {
    return this.#last;
  }

  #beat(): void {
    this.#last = monoNow();
    this.#events.frame({ is: 'drained', at: this.#last });
  }

  #sendVersion(): void {
    if (!this.#ended) this.#events.frame({ is: 'version', at: monoNow(), ...versionOf(this.#core) });
  }

  #end(cause: string, why: string | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopHeartbeat();
    if (this.#stream !== null) this.#core.closed(this.#stream, cause, 0);
    setImmediate(() => this.#events.gone(why));
  }
}

const whole = ([first, ...more]: readonly Buffer[]): Buffer =>
  first !== undefined && more.length === 0 ? first : Buffer.concat([...(first ? [first] : []), ...more]);

/** A copy that a reader does not free. */
function lasting(message: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(message.length + BESIDE_BYTES).subarray(0, message.length);
  copy.set(message);
  return copy;
}

const versionOf = ({ profile }: RuntimeCore): RuntimeVersion => ({
  name: profile.runtimeName,
  version: profile.runtimeVersion,
});

const failed = (call: string, code: status, details: string): CriError =>
  new CriError(call, Object.assign(new Error(details), { code, details, metadata: new Metadata() }));
