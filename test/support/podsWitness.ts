/*
 * A client of the kubelet's PodsAPI of the tests' own, with a decoder of its own: what plegwatch says of the kubelet's status is compared with it.
 */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials } from '@grpc/grpc-js';

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

export class PodsWitness {
  /** The ids that were shown as started and as stopped, in the order in which that was first seen. */
  readonly started = new Set<string>();
  readonly stopped = new Set<string>();
  readonly #client: Client;

  /** Watches until it is closed, or the kubelet ends. */
  constructor(socket: string) {
    this.#client = new Client(`unix:${socket}`, credentials.createInsecure());
    const same = (bytes: Buffer) => bytes;
    const stream = this.#client.makeServerStreamRequest(
      '/v1alpha1.Pods/WatchPods',
      same,
      same,
      Buffer.alloc(0),
    );
    stream.on('data', (event: Buffer) => this.#see(inside(event, 2)));
    stream.on('error', () => undefined);
  }

  close(): void {
    this.#client.close();
  }

  #see(pod: Uint8Array | undefined): void {
    const statuses = fieldsOf(inside(pod, 3) ?? new Uint8Array()).get(8) ?? [];
    for (const each of statuses) {
      const id = idOf(inside(each, 8));
      const ended = [inside(each, 2, 3), inside(each, 3, 3)].filter((state) => state !== undefined);
      if (inside(each, 2, 2) !== undefined) this.started.add(id);
      for (const state of ended) {
        const of = idOf(inside(state, 7));
        this.started.add(of);
        this.stopped.add(of);
      }
    }
  }
}
