/*
 * One WatchPods stream of the kubelet's PodsAPI, on a connection of its own, with the GetPod calls beside it.
 *
 *   opened ── first message ──► syncing ── INITIAL_SYNC_COMPLETE ──► synced
 *      └──────────────────────────┴── ends, once, with a cause ────────┘
 *
 * The kubelet drops a client whose 100 updates wait, so messages are taken at once. There is no keepalive: a unix socket does not need it.
 */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { Client, type ClientReadableStream, credentials, type ServiceError } from '@grpc/grpc-js';
import { codeOf } from '../../../cri/client.ts';
import { bytesTag } from '../../../cri/fields.ts';
import { MAX_ITEM_BYTES, MalformedMessage } from '../../../cri/malformed.ts';
import { monoNow } from '../../../platform/clock.ts';
import { messageOf } from '../../../platform/errors.ts';
import type { KubeletPodAnswer, KubeletSight } from '../../../protocol/observation.ts';
import type { Mono } from '../../../protocol/units.ts';
import { type PodMessage, readPodAnswer, readPodMessage } from './podDecoder.ts';

/** Far more than a kubelet runs. The stream ends beyond it. */
const MAX_PODS = 2_000;
const CALL_TIMEOUT_MS = 5_000;
const SERVICE = '/v1alpha1.Pods';
/** The tag of the only field of GetPodRequest. */
const REQUEST_UID = bytesTag(1);

const OPTIONS = {
  'grpc.max_receive_message_length': MAX_ITEM_BYTES,
  'grpc-node.flow_control_window': MAX_ITEM_BYTES,
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  'grpc.use_local_subchannel_pool': 1,
};

/** Why a stream ended; a gap has it as its cause. */
export const PODS_STREAM_ENDS = [
  'closed_by_kubelet',
  'kubelet_unavailable',
  'kubelet_initializing',
  'unimplemented',
  'message_too_large',
  'malformed',
  'too_many_pods',
  'agent_stalled',
  'ended',
] as const;
export type PodsStreamEnd = (typeof PODS_STREAM_ENDS)[number];

const END_OF_CODE: Readonly<Record<string, PodsStreamEnd>> = {
  // Also of a kubelet that was asked to stop (kubelet pkg/kubelet/apis/pods/server.go, broadcaster.run).
  RESOURCE_EXHAUSTED: 'closed_by_kubelet',
  UNAVAILABLE: 'kubelet_unavailable',
  FAILED_PRECONDITION: 'kubelet_initializing',
  UNIMPLEMENTED: 'unimplemented',
  OVER_OUR_LIMIT: 'message_too_large',
  OVER_RUNTIME_LIMIT: 'message_too_large',
};

export interface PodsStreamEvents {
  /** Called before a message is taken; false if nothing may be taken any more. */
  mayTake(at: Mono): boolean;
  sight(sight: KubeletSight): void;
  /** A message, or the pod in it, could not be decoded. */
  malformed(): void;
  /** Called once, unless {@link PodsStream.close} came first. */
  ended(cause: PodsStreamEnd, error: string): void;
}

const unchanged = (bytes: Buffer): Buffer => bytes;

export class PodsStream {
  /** When the call began: before the kubelet knew of it. */
  readonly opened = monoNow();
  readonly #client: Client;
  readonly #stream: ClientReadableStream<Buffer>;
  readonly #events: PodsStreamEvents;
  readonly #pods = new Set<string>();
  #hasMessage = false;
  #isSynced = false;
  #closed = false;

  constructor(socket: string, events: PodsStreamEvents) {
    this.#events = events;
    this.#client = new Client(`unix:${socket}`, credentials.createInsecure(), OPTIONS);
    this.#stream = this.#client.makeServerStreamRequest(
      `${SERVICE}/WatchPods`,
      unchanged,
      unchanged,
      Buffer.alloc(0),
    );
    this.#stream.on('data', (bytes: Buffer) => this.#take(bytes));
    this.#stream.on('error', (error: ServiceError) =>
      this.#end(END_OF_CODE[codeOf(error)] ?? 'ended', messageOf(error)),
    );
    this.#stream.on('end', () => this.#end('ended', ''));
  }

  get hasMessage(): boolean {
    return this.#hasMessage;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Asks the kubelet for the pod. Never rejects. */
  getPod(podUid: string): Promise<KubeletPodAnswer> {
    const asked = monoNow();
    const { promise, resolve } = Promise.withResolvers<KubeletPodAnswer>();
    const notFound = (reason: string) => resolve({ podUid, asked, at: monoNow(), found: false, reason });
    this.#client.makeUnaryRequest(
      `${SERVICE}/GetPod`,
      unchanged,
      unchanged,
      Buffer.from(new BinaryWriter().uint32(REQUEST_UID).string(podUid).finish()),
      { deadline: Date.now() + CALL_TIMEOUT_MS },
      (error, bytes = Buffer.alloc(0)) => {
        if (error !== null) return notFound(codeOf(error));
        try {
          const pod = readPodAnswer(bytes);
          if (pod.podUid !== podUid) return notFound('OTHER_POD');
          resolve({ podUid, asked, at: monoNow(), found: true, pod });
        } catch (failure) {
          if (!(failure instanceof MalformedMessage)) throw failure;
          this.#events.malformed();
          notFound(failure.code);
        }
      },
    );
    return promise;
  }

  close(): void {
    this.#closed = true;
    this.#client.close();
    this.#stream.cancel();
  }

  #end(cause: PodsStreamEnd, error: string): void {
    if (this.#closed) return;
    this.close();
    this.#events.ended(cause, error);
  }

  #take(bytes: Buffer): void {
    const at = monoNow();
    if (this.#closed || !this.#events.mayTake(at)) return;
    if (!this.#hasMessage) this.#events.sight({ is: 'opened', at: this.opened });
    this.#hasMessage = true;
    try {
      this.#show(readPodMessage(bytes), at);
    } catch (error) {
      if (!(error instanceof MalformedMessage)) throw error;
      this.#events.malformed();
      this.#end('malformed', error.message);
    }
  }

  #show(message: PodMessage, at: Mono): void {
    switch (message.is) {
      case 'synced':
        this.#isSynced = true;
        this.#events.sight({ is: 'synced', at });
        break;
      case 'removed':
        this.#pods.delete(message.podUid);
        this.#events.sight({ ...message, at });
        break;
      case 'pod':
        if (this.#hasRoom(message.pod.podUid)) this.#events.sight({ ...message, at });
        break;
      case 'unknown':
        this.#events.malformed();
        if (this.#hasRoom(message.podUid)) this.#events.sight({ ...message, at });
        break;
      case 'other':
        this.#events.malformed();
        break;
    }
  }

  #hasRoom(podUid: string): boolean {
    this.#pods.add(podUid);
    if (this.#pods.size <= MAX_PODS) return true;
    this.#end('too_many_pods', `more than ${MAX_PODS} pods`);
    return false;
  }
}
