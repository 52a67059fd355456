/*
 * The kubelet's PodsAPI for tests: encoded messages, and a server over a real unix socket whose answers a test scripts. A pod is encoded with
 * everything that a kubelet sends and nobody may keep: environment values, annotations, volumes, messages.
 */
import { rmSync } from 'node:fs';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  status,
} from '@grpc/grpc-js';

export const POD_EVENT = { added: 1, modified: 2, deleted: 3, synced: 4 } as const;

/** In every text of an encoded pod that is not a name, a UID or an id of a container. */
export const SECRET = 'hunter2';

export interface EncodedContainer {
  readonly name?: string;
  /** With its scheme. */
  readonly id?: string;
  readonly state?: 'waiting' | 'running' | 'terminated';
  /** The id in `state.terminated`, with its scheme. Default: `id`. */
  readonly terminatedId?: string;
  /** The id in `lastState.terminated`, with its scheme. */
  readonly lastId?: string;
}

export interface EncodedPod {
  readonly uid?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly isTerminating?: boolean;
  readonly phase?: string;
  readonly containers?: readonly EncodedContainer[];
  readonly initContainers?: readonly EncodedContainer[];
  readonly ephemeralContainers?: readonly EncodedContainer[];
  /** More bytes in each of two environment values. */
  readonly padding?: number;
}

type Fields = readonly (readonly [field: number, value: string | Uint8Array | number])[];

/** A message of these fields, by number, in their order. */
export function message(fields: Fields): Buffer {
  const writer = new BinaryWriter();
  for (const [field, value] of fields) {
    if (typeof value === 'number') writer.uint32(field * 8).int32(value);
    else if (typeof value === 'string') writer.uint32(field * 8 + 2).string(value);
    else writer.uint32(field * 8 + 2).bytes(value);
  }
  return Buffer.from(writer.finish());
}

/** The bytes of a core/v1 Pod. */
export function podBytes(pod: EncodedPod = {}): Buffer {
  const {
    uid = 'u1',
    name = 'web',
    namespace = 'shop',
    isTerminating = false,
    phase = 'Running',
    padding = 0,
  } = pod;
  const time = message([[1, 1_700_000_000]]);
  const label = message([
    [1, `label.${SECRET}`],
    [2, SECRET],
  ]);
  const metadata = message([
    [1, name],
    [2, SECRET],
    [3, namespace],
    [5, uid],
    [6, SECRET],
    [8, time],
    ...(isTerminating ? ([[9, time]] as const) : []),
    [11, label],
    [12, label],
    [13, message([[1, SECRET]])],
  ]);
  const env = message([
    [1, 'PASSWORD'],
    [2, SECRET + 'x'.repeat(padding)],
  ]);
  const container = message([
    [1, 'app'],
    [2, SECRET],
    [3, SECRET],
    [7, env],
  ]);
  const spec = message([
    [1, message([[1, SECRET]])],
    [2, container],
    [20, container],
  ]);
  const statusOf = (field: number, all: readonly EncodedContainer[] = []) =>
    all.map((each) => [field, containerStatus(each)] as const);
  const podStatus = message([
    [1, phase],
    [
      2,
      message([
        [1, 'Ready'],
        [2, 'False'],
        [5, SECRET],
        [6, SECRET],
      ]),
    ],
    [3, SECRET],
    [4, SECRET],
    [5, '10.0.0.1'],
    ...statusOf(8, pod.containers),
    ...statusOf(10, pod.initContainers),
    ...statusOf(13, pod.ephemeralContainers),
  ]);
  return message([
    [1, metadata],
    [2, spec],
    [3, podStatus],
  ]);
}

function containerStatus({
  name = 'app',
  id = '',
  state = 'waiting',
  terminatedId = id,
  lastId,
}: EncodedContainer): Buffer {
  const terminated = (ofId: string) =>
    message([
      [1, 137],
      [3, SECRET],
      [4, SECRET],
      [7, ofId],
    ]);
  const states = {
    waiting: message([
      [
        1,
        message([
          [1, SECRET],
          [2, SECRET],
        ]),
      ],
    ]),
    running: message([[2, message([[1, message([[1, 1_700_000_000]])]])]]),
    terminated: message([[3, terminated(terminatedId)]]),
  };
  return message([
    [1, name],
    [2, states[state]],
    [3, lastId === undefined ? Buffer.alloc(0) : message([[3, terminated(lastId)]])],
    [4, 1],
    [6, SECRET],
    [7, SECRET],
    [8, id],
  ]);
}

/** A WatchPodsEvent. */
export const podEvent = (type: number, pod: Uint8Array = Buffer.alloc(0)): Buffer =>
  message([
    [1, type],
    [2, pod],
  ]);

export const SYNCED = podEvent(POD_EVENT.synced);

/** A GetPodResponse. */
export const podAnswer = (pod: Uint8Array): Buffer => message([[1, pod]]);

const unchanged = (bytes: Uint8Array): Buffer => Buffer.from(bytes);

function method(name: string, responseStream: boolean): MethodDefinition<Buffer, Buffer> {
  return {
    path: `/v1alpha1.Pods/${name}`,
    requestStream: false,
    responseStream,
    requestSerialize: unchanged,
    requestDeserialize: unchanged,
    responseSerialize: unchanged,
    responseDeserialize: unchanged,
  };
}

const METHODS = { watchPods: method('WatchPods', true), getPod: method('GetPod', false) };

type Watcher = ServerWritableStream<Buffer, Buffer>;

export class FakePodsApi {
  readonly socket: string;
  /** Open streams, in the order in which they came. */
  readonly watchers: Watcher[] = [];
  /** How many streams were asked for. */
  asked = 0;
  /** The UIDs of GetPod calls, in order. */
  readonly queried: string[] = [];
  /** What a new watcher is sent first. */
  initial: readonly Buffer[] = [SYNCED];
  /** What a new watch fails with; null: it is served. */
  refusal: status | null = null;
  /** The answer to GetPod; null: none ever; a status: it fails with that. */
  answer: (podUid: string) => Buffer | status | null = () => status.NOT_FOUND;
  #server: Server | null = null;

  constructor(socket: string) {
    this.socket = socket;
  }

  async start({ implementsPods = true }: { readonly implementsPods?: boolean } = {}): Promise<void> {
    const server = new Server();
    if (implementsPods) {
      server.addService(METHODS, {
        watchPods: (call: Watcher) => this.#watch(call),
        getPod: (
          { request }: { readonly request: Buffer },
          done: (error: { code: status } | null, answer?: Buffer) => void,
        ) => {
          // The tag and the length of a short UID come first.
          const podUid = request.toString('utf8', 2);
          this.queried.push(podUid);
          const answer = this.answer(podUid);
          if (Buffer.isBuffer(answer)) done(null, answer);
          else if (answer !== null) done({ code: answer });
        },
      });
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.bindAsync(`unix:${this.socket}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
    await promise;
    this.#server = server;
  }

  /** Breaks every connection and removes the socket. */
  stop(): void {
    this.#server?.forceShutdown();
    this.#server = null;
    this.watchers.length = 0;
    rmSync(this.socket, { force: true });
  }

  send(...messages: readonly Buffer[]): void {
    for (const each of this.watchers) for (const bytes of messages) each.write(bytes);
  }

  /** Ends every stream. */
  end(code: status): void {
    for (const each of this.watchers.splice(0)) {
      if (code === status.OK) each.end();
      else each.emit('error', { code, details: 'ended on purpose' });
    }
  }

  #watch(call: Watcher): void {
    this.asked += 1;
    if (this.refusal !== null) {
      call.emit('error', { code: this.refusal, details: 'refused on purpose' });
      return;
    }
    this.watchers.push(call);
    call.on('cancelled', () => {
      const at = this.watchers.indexOf(call);
      if (at !== -1) this.watchers.splice(at, 1);
    });
    for (const bytes of this.initial) call.write(bytes);
  }
}
