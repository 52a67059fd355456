/*
 * A client of the kubelet's PodsAPI of the tests' own, with a decoder of its own: what plegwatch says of the kubelet's status is compared with it.
 */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials } from '@grpc/grpc-js';
import { monoNow } from '../../src/platform/clock.ts';
import type { Mono } from '../../src/protocol/units.ts';

type Fields = ReadonlyMap<number, readonly Uint8Array[]>;

/** The fields of a message that are texts, bytes or messages. */
function fieldsOf(bytes: Uint8Array): Fields {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, Uint8Array[]>();
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType === WireType.LengthDelimited)
      fields.set(field, [...(fields.get(field) ?? []), reader.bytes()]);
    else reader.skip(wireType, field);
  }
  return fields;
}

const inside = (message: Uint8Array | undefined, ...path: readonly number[]): Uint8Array | undefined =>
  path.reduce((each, field) => each && fieldsOf(each).get(field)?.at(-1), message);

const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString();
const idOf = (bytes: Uint8Array | undefined): string => text(bytes).replace(/^.*:\/\//, '');

const RETRY_MS = 200;

/** When a message first showed something, on the monotonic clock. */
export interface Sighting {
  readonly at: Mono;
  /** Since when the watch that brought it was open. */
  readonly watchedSince: Mono;
  /** The pod had a deletionTimestamp, then or before. */
  readonly isTerminating: boolean;
}

export class PodsWitness {
  /** By id: when it was first shown as started and as stopped. */
  readonly started = new Map<string, Sighting>();
  readonly stopped = new Map<string, Sighting>();
  readonly #client: Client;
  /** UIDs of pods that are or were terminating. */
  readonly #terminating = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** Watches until it is closed, and again after the kubelet ended. */
  constructor(socket: string) {
    this.#client = new Client(`unix:${socket}`, credentials.createInsecure());
    this.#watch();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#client.close();
  }

  #watch(): void {
    const same = (bytes: Buffer) => bytes;
    const watchedSince = monoNow();
    const stream = this.#client.makeServerStreamRequest(
      '/v1alpha1.Pods/WatchPods',
      same,
      same,
      Buffer.alloc(0),
    );
    stream.on('data', (event: Buffer) => this.#see(inside(event, 2), watchedSince));
    stream.on('error', () => {
      if (!this.#isClosed) this.#timer = setTimeout(() => this.#watch(), RETRY_MS);
    });
  }

  #see(pod: Uint8Array | undefined, watchedSince: Mono): void {
    const uid = text(inside(pod, 1, 5));
    if (inside(pod, 1, 9) !== undefined) this.#terminating.add(uid);
    const sighting = { at: monoNow(), watchedSince, isTerminating: this.#terminating.has(uid) };
    const see = (seen: Map<string, Sighting>, id: string) => {
      if (!seen.has(id)) seen.set(id, sighting);
    };
    const statuses = fieldsOf(inside(pod, 3) ?? new Uint8Array()).get(8) ?? [];
    for (const each of statuses) {
      const id = idOf(inside(each, 8));
      const ended = [inside(each, 2, 3), inside(each, 3, 3)].filter((state) => state !== undefined);
      if (inside(each, 2, 2) !== undefined) see(this.started, id);
      for (const state of ended) {
        const of = idOf(inside(state, 7));
        see(this.started, of);
        see(this.stopped, of);
      }
    }
  }
}
