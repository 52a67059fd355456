/*
 * The batch: consecutive records of one epoch, and the unit of delivery.
 *
 *   envelope   everything in a batch but its records and objects: the sender, its epoch and what its spool holds
 *   sealed     a batch is built once; every re-send has the same bytes and the same id
 *   probe      a batch without records: it asks the store for an ack reply and shows that the agent runs
 *   known      what an agent knows without a record, once everything that it wrote was sent
 *   base       the wall-clock time of an epoch's start; the store fixes it at the first batch, from `wall0 - mono0`
 *
 * A batch never spans two contexts (versions of runtime, kubelet and agent, and settings). Lost ranges travel in the envelope (`oldestSeq`,
 * `lost`): a record that came after them could never become contiguous.
 */
import { createHash, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress, zstdDecompressSync } from 'node:zlib';
import * as v from 'valibot';
import {
  type ContainerIdentity,
  ContainerIdentitySchema,
  type EvidenceRecord,
  MAX_OFFSET,
  MAX_WALL,
} from './record.ts';
import { batchStatement, signatureOf } from './signature.ts';
import { MAX_NAME_LENGTH } from './text.ts';
import { int4, invalid, type Parsed, parse, text, uuid } from './validation.ts';

/** The envelope version that agents write. */
export const BATCH_VERSION = 1;
/** The envelope versions that controllers read. */
export const ACCEPTED_VERSIONS: readonly number[] = [1];

/** A batch ends at this many records or this many bytes of JSON, whichever comes first. */
export const MAX_BATCH_RECORDS = 500;
export const MAX_BATCH_BYTES = 256 * 1024;
/** The largest JSON, in bytes, that is decompressed; more is refused. */
export const MAX_DECODED_BYTES = 8 * 1024 * 1024;
/** The same of a sign of life, many of which are read at a time. */
export const MAX_SIGN_DECODED_BYTES = 64 * 1024;
/** The largest input, in bytes of its data, that is fetched from an inbox; a larger one is removed. No batch of an agent is half as large. */
export const MAX_INPUT_BYTES = 2 * 1024 * 1024;

const positive = v.pipe(int4, v.minValue(1));

/** A cluster's name. It becomes part of Redis keys and of SQL rows, so its alphabet is small. */
export const ClusterName = v.pipe(v.string(), v.regex(/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/));
/** A node's name: what the API server allows. */
export const NodeName = v.pipe(v.string(), v.regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/));

/** A list whose elements are checked elsewhere: `v.array` would make an object for each of them, and a copy. */
const list = (max: number) => v.pipe(v.custom<unknown[]>(Array.isArray, 'Expected a list'), v.maxLength(max));

const duration = v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(MAX_OFFSET));
/** A century, in microseconds: no machine runs for longer. */
const MAX_UPTIME = 36_525 * 86_400 * 1_000_000;

export const ContextSchema = v.strictObject({
  /** The number of the context in its epoch, from 1. */
  no: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000)),
  runtime: v.strictObject({ name: text(MAX_NAME_LENGTH), version: text(MAX_NAME_LENGTH) }),
  /** Empty until the kubelet's version is known. */
  kubelet: text(MAX_NAME_LENGTH),
  agent: text(MAX_NAME_LENGTH),
  /** The settings of the agent that decide about findings, in microseconds. */
  settings: v.strictObject({
    relistPeriod: duration,
    overdueAfter: duration,
    missedAfter: duration,
    lateAfter: duration,
  }),
});
/** The versions and settings that records were observed under. */
export type Context = v.InferOutput<typeof ContextSchema>;

const recordTime = v.pipe(v.number(), v.safeInteger(), v.minValue(-MAX_OFFSET), v.maxValue(MAX_OFFSET));

const digest = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{43}$/));
const SignedHeadSchema = v.strictObject({
  /** The seq that its chain begins at. */
  from: positive,
  /** `t` of the last record. */
  at: recordTime,
  /** The digests of the records, by how long they are kept. */
  events: digest,
  findings: digest,
  sig: v.pipe(v.string(), v.regex(/^[A-Za-z0-9+/]{86}==$/)),
  /** A byte for each record of the batch, in base64. Not signed: they only help to find a record. */
  hints: v.pipe(v.string(), v.maxLength(4 * Math.ceil(MAX_BATCH_RECORDS / 3)), v.base64()),
});
/** The head of a record chain after the last record of a batch: see recordChain.ts. */
export type SignedHead = v.InferOutput<typeof SignedHeadSchema>;

const KnownSchema = v.strictObject({ decided: recordTime, scraped: v.nullable(recordTime) });
/**
 * The knowledge of an agent without a record: up to when everything is decided, and when its kubelet was last scraped; null if it never was. In
 * microseconds since the epoch's start.
 */
export type Known = v.InferOutput<typeof KnownSchema>;

const EnvelopeSchema = v.strictObject({
  v: v.literal(BATCH_VERSION),
  cluster: ClusterName,
  node: NodeName,
  /** Empty when the agent does not know it. */
  nodeUid: text(128),
  bootId: text(64),
  epoch: uuid,
  /** When the epoch started on the monotonic clock of the boot, in microseconds: places all epochs of a boot on one timeline. */
  startedMono: v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(MAX_UPTIME)),
  /** Numbers the agent runs of this node's spool; together with `prev` it orders epochs without a clock. */
  incarnation: positive,
  /** The epoch before this one in the spool. */
  prev: v.nullable(uuid),
  /** The epochs of this spool that the store must keep open, this one included, with the last seq of each. */
  held: v.pipe(
    v.array(v.strictObject({ epoch: uuid, incarnation: positive, last: int4 })),
    v.maxLength(1000),
  ),
  /** Raised by the agent to ask again for what is acknowledged. */
  ackGeneration: positive,
  context: ContextSchema,
  /** The seqs of the first and the last record. In a probe `last` is `first` - 1. */
  first: positive,
  last: int4,
  /** The lowest seq of this epoch that is still in the spool. */
  oldestSeq: positive,
  /** Seqs that will never be sent, and why. */
  lost: v.pipe(v.array(v.strictObject({ from: positive, to: positive, cause: text(64) })), v.maxLength(1000)),
  /** When the batch was built: microseconds since the epoch's start, and the wall clock at that time. */
  mono0: duration,
  wall0: v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(MAX_WALL)),
  /** The node's signature of all records up to the last one of the batch. Absent in a probe, and where the node has no key. */
  head: v.optional(SignedHeadSchema),
  /** In a probe that follows everything that was written, and in no other batch. */
  known: v.optional(KnownSchema),
  objects: list(4 * MAX_BATCH_RECORDS),
  records: list(MAX_BATCH_RECORDS),
});

/** A decoded batch. Its records and objects are not validated yet: each is checked on its own. */
export type Envelope = v.InferOutput<typeof EnvelopeSchema>;

export type Batch = Omit<Envelope, 'records' | 'objects'> & {
  readonly records: readonly EvidenceRecord[];
  readonly objects: readonly ContainerIdentity[];
};

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);
/** To hand so little to another thread costs more than to decompress it. */
const SMALL_BYTES = 4 * 1024;

/** The content of an inbox: the batch as JSON, compressed, in base64. */
export interface BatchData {
  readonly z: string;
  /** The node that signed it; absent if it is not signed. */
  readonly node?: string;
  readonly sig?: string;
}

/** `key`: signs the batch with the key of its node. */
export async function encodeBatch(batch: Batch, key?: KeyObject): Promise<BatchData> {
  const packed = await compress(Buffer.from(JSON.stringify(batch), 'utf8'));
  const data = { z: packed.toString('base64') };
  return key === undefined
    ? data
    : { ...data, node: batch.node, sig: signatureOf(key, batchStatement(batch, packed)) };
}

const SignedSchema = v.looseObject({
  z: v.pipe(v.string(), v.maxLength(MAX_INPUT_BYTES)),
  node: NodeName,
  sig: v.pipe(v.string(), v.maxLength(100)),
});

export interface SignedBatch {
  readonly node: string;
  readonly packed: Buffer;
  readonly sig: string;
}

/** An input's statement about its signature, without reading the batch. Null if it is not signed. */
export function signedBatchIn(data: unknown): SignedBatch | null {
  const signed = parse(SignedSchema, data);
  if (!signed.ok) return null;
  const { z, node, sig } = signed.value;
  return { node, packed: Buffer.from(z, 'base64'), sig };
}

/** Why an input is not a batch. `version`: the sender uses a newer protocol. */
export type RefusedBatch = {
  readonly ok: false;
  readonly reason: 'not_a_batch' | 'version';
  readonly error: string;
  /** The node that the input names, unverified. Empty when it names none. */
  readonly claimedNode: string;
};

/** Reads an input, which may be anything at all. `bytes`: the length of its JSON, at most `maxBytes`. Never throws on bad input. */
export async function decodeBatch(
  data: unknown,
  maxBytes: number = MAX_DECODED_BYTES,
): Promise<{ ok: true; value: Envelope; bytes: number } | RefusedBatch> {
  const opened = await open(data, maxBytes);
  if (!opened.ok) return refused('not_a_batch', opened.error, undefined);
  const { json, bytes } = opened.value;
  const version = fieldOf(json, 'v');
  if (typeof version === 'number' && Number.isInteger(version) && version > BATCH_VERSION) {
    return refused('version', `v: ${version} is newer than ${BATCH_VERSION}`, json);
  }
  const envelope = parse(EnvelopeSchema, json);
  if (!envelope.ok) return refused('not_a_batch', envelope.error, json);
  const error = inconsistency(envelope.value);
  return error === null ? { ...envelope, bytes } : refused('not_a_batch', error, json);
}

/** The valid identities in an envelope. */
export function readObjects({ objects }: Envelope): ContainerIdentity[] {
  return objects.filter((object) => v.is(ContainerIdentitySchema, object));
}

/** The beginning of the ids of a node's inputs, before a dot. Anybody may use it: it only says whose turn it is. */
export const senderId = (node: string): string =>
  createHash('sha256').update(node).digest('hex').slice(0, 16);

/**
 * The id of a batch, which begins with its sender: the same for every re-send of a sealed batch, different for any other batch. An
 * inbox or a queue that still has that id ignores the second add and its data.
 */
export function batchId(
  batch: Pick<Envelope, 'node' | 'epoch' | 'first' | 'last' | 'ackGeneration'>,
): string {
  const id = `${senderId(batch.node)}.${batch.epoch}.${batch.first}.${batch.last}`;
  return batch.last < batch.first ? `${id}.r${batch.ackGeneration}` : id;
}

function refused(reason: RefusedBatch['reason'], error: string, input: unknown): RefusedBatch {
  const claimed = fieldOf(input, 'node');
  const claimedNode = typeof claimed === 'string' ? claimed.replaceAll('\0', '').slice(0, 253) : '';
  return { ok: false, reason, error, claimedNode };
}

function fieldOf(input: unknown, name: string): unknown {
  return typeof input === 'object' && input !== null ? Reflect.get(input, name) : undefined;
}

async function open(
  data: unknown,
  maxOutputLength: number,
): Promise<Parsed<{ json: unknown; bytes: number }>> {
  const packed = fieldOf(data, 'z');
  if (typeof packed !== 'string') return invalid('z: Expected a string');
  if (packed.length > MAX_INPUT_BYTES) return invalid(`z: longer than ${MAX_INPUT_BYTES} characters`);
  try {
    const bytes = Buffer.from(packed, 'base64');
    const limit = { maxOutputLength };
    const raw =
      bytes.length <= SMALL_BYTES ? zstdDecompressSync(bytes, limit) : await decompress(bytes, limit);
    const json: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(raw));
    return { ok: true, value: { json, bytes: raw.length } };
  } catch (error) {
    return invalid(`z: ${String(error)}`);
  }
}

/** The fault in an envelope that fits the schema, or null. */
function inconsistency(e: Envelope): string | null {
  if (e.last !== e.first + e.records.length - 1) return 'last: does not fit first and the number of records';
  if (e.lost.some((range) => range.to < range.from)) return 'lost: a range ends before it begins';
  if (e.lost.some((range) => range.from <= e.last && range.to >= e.first))
    return 'lost: overlaps the records';
  if (e.head !== undefined && !isHeadOf(e.head, e)) return 'head: is not about the records';
  if (e.prev === e.epoch) return 'prev: is the epoch itself';
  return null;
}

const isHeadOf = ({ from, hints }: SignedHead, { first, records }: Envelope): boolean =>
  from <= first && records.length > 0 && Buffer.byteLength(hints, 'base64') === records.length;
