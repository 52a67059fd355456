/*
 * The batch: consecutive records of one epoch, the unit that travels.
 *
 *   envelope   who speaks, in which life, and what its spool holds; the same in every batch
 *   sealed     a batch is cut once; every re-send is the same bytes under the same id
 *   hello      a batch without records: it asks the store for a reply and says that the agent lives
 *   base       the wall-clock time of an epoch's start; the store fixes it at first sight, from `wall0 - mono0`
 *
 * A batch never spans two contexts (versions of runtime, kubelet and agent). Holes travel in the header (`floor`, `lost`),
 * because a record behind a hole could never become contiguous.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import * as v from 'valibot';
import {
  type ContainerIdentity,
  ContainerIdentitySchema,
  type EvidenceRecord,
  MAX_NAME_LENGTH,
  type Parsed,
  parse,
} from './record.ts';

/** The version of the envelope that this program writes, and the versions it understands. */
export const BATCH_VERSION = 1;
export const ACCEPTED_VERSIONS: readonly number[] = [1];

/** A batch is cut at this many records or this many bytes of JSON, whichever comes first. */
export const MAX_BATCH_RECORDS = 500;
export const MAX_BATCH_BYTES = 256 * 1024;
/** More than this after decompression is refused unread. */
export const MAX_DECODED_BYTES = 8 * 1024 * 1024;

const noNul = v.check((s: string) => !s.includes('\0'), 'contains a NUL character');
const text = (max: number) => v.pipe(v.string(), v.maxLength(max), noNul);
const uuid = v.pipe(v.string(), v.uuid());
/** A seq fits an int4 column: 2,147,483,647 records are 68 years at one a second. */
const position = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(2_147_483_646));
const positive = v.pipe(position, v.minValue(1));

/** A cluster's name: it becomes part of Redis keys and of SQL rows, so it is kept simple. */
export const ClusterName = v.pipe(v.string(), v.regex(/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/));
/** A node's name, as the API server allows it. */
export const NodeName = v.pipe(v.string(), v.regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/));

const ContextSchema = v.strictObject({
  /** Counts the contexts of this epoch from 1. */
  no: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000)),
  runtime: v.strictObject({ name: text(MAX_NAME_LENGTH), version: text(MAX_NAME_LENGTH) }),
  /** Empty until a kubelet has told its version. */
  kubelet: text(MAX_NAME_LENGTH),
  agent: text(MAX_NAME_LENGTH),
});
export type Context = v.InferOutput<typeof ContextSchema>;

const EnvelopeSchema = v.strictObject({
  v: v.literal(BATCH_VERSION),
  cluster: ClusterName,
  node: NodeName,
  /** Empty where the agent was not told it. */
  nodeUid: text(128),
  bootId: text(64),
  epoch: uuid,
  /** Counts the agent lives of this node's spool; with `prev` it orders epochs without any clock. */
  incarnation: positive,
  prev: v.nullable(uuid),
  /** Every epoch the spool still holds, this one included, with its last seq. */
  held: v.pipe(
    v.array(v.strictObject({ epoch: uuid, incarnation: positive, last: position })),
    v.maxLength(1000),
  ),
  ackGeneration: positive,
  context: ContextSchema,
  /** A hello has `last` = `first` - 1. */
  first: positive,
  last: position,
  /** The lowest seq of this epoch that the spool still holds. */
  oldestSeq: positive,
  /** Seqs that will never come, with why. */
  lost: v.pipe(v.array(v.strictObject({ from: positive, to: positive, cause: text(64) })), v.maxLength(1000)),
  /** When the batch was cut: microseconds since the epoch's start, and the wall clock at that moment. */
  mono0: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  wall0: v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(8.64e15)),
  objects: v.pipe(v.array(v.unknown()), v.maxLength(4 * MAX_BATCH_RECORDS)),
  records: v.pipe(v.array(v.unknown()), v.maxLength(MAX_BATCH_RECORDS)),
  /** Reserved for attribution. */
  sig: v.optional(text(1024)),
});

/** An envelope whose records and objects have not been looked at yet: each is checked by itself. */
export type Envelope = v.InferOutput<typeof EnvelopeSchema>;

/** A batch as an agent makes it. */
export type Batch = Omit<Envelope, 'records' | 'objects'> & {
  readonly records: readonly EvidenceRecord[];
  readonly objects: readonly ContainerIdentity[];
};

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** The data of a queue job: the batch as JSON, compressed, in base64. */
export interface JobData {
  readonly z: string;
}

export async function encodeBatch(batch: Batch): Promise<JobData> {
  const packed = await compress(Buffer.from(JSON.stringify(batch), 'utf8'));
  return { z: packed.toString('base64') };
}

/** Why an input is not a batch. `version`: the sender speaks a newer protocol. */
export type RefusedBatch = {
  readonly ok: false;
  readonly reason: 'not_a_batch' | 'version';
  readonly problem: string;
  /** Only claimed: nothing of a refused input is believed. */
  readonly claimedNode: string;
};

/** Reads a job's data, which may be anything at all. Never throws on bad input. */
export async function decodeBatch(data: unknown): Promise<{ ok: true; value: Envelope } | RefusedBatch> {
  const opened = await open(data);
  if (!opened.ok) return refused('not_a_batch', opened.problem, undefined);
  const version = fieldOf(opened.value, 'v');
  if (typeof version === 'number' && Number.isInteger(version) && version > BATCH_VERSION) {
    return refused('version', `v: ${version} is newer than ${BATCH_VERSION}`, opened.value);
  }
  const envelope = parse(EnvelopeSchema, opened.value);
  if (!envelope.ok) return refused('not_a_batch', envelope.problem, opened.value);
  const problem = inconsistency(envelope.value);
  return problem === null ? envelope : refused('not_a_batch', problem, opened.value);
}

/** The identities in an envelope that are well formed; the rest is counted. */
export function readObjects(envelope: Envelope): { objects: ContainerIdentity[]; refused: number } {
  const objects: ContainerIdentity[] = [];
  for (const input of envelope.objects) {
    const object = parse(ContainerIdentitySchema, input);
    if (object.ok) objects.push(object.value);
  }
  return { objects, refused: envelope.objects.length - objects.length };
}

/**
 * The id of a batch's queue job. The same for every re-send of a sealed batch, different for every other batch: a queue
 * that still knows the id answers a second add with the first job and drops the second's data.
 */
export function batchId(
  batch: Pick<Envelope, 'node' | 'epoch' | 'first' | 'last' | 'ackGeneration'>,
): string {
  const node = createHash('sha256').update(batch.node).digest('hex').slice(0, 16);
  const id = `${node}.${batch.epoch}.${batch.first}.${batch.last}`;
  return batch.last < batch.first ? `${id}.r${batch.ackGeneration}` : id;
}

function refused(reason: RefusedBatch['reason'], problem: string, input: unknown): RefusedBatch {
  const claimed = fieldOf(input, 'node');
  const claimedNode = typeof claimed === 'string' ? claimed.replaceAll('\0', '').slice(0, 253) : '';
  return { ok: false, reason, problem, claimedNode };
}

function fieldOf(input: unknown, name: string): unknown {
  return typeof input === 'object' && input !== null ? Reflect.get(input, name) : undefined;
}

async function open(data: unknown): Promise<Parsed<unknown>> {
  const packed = fieldOf(data, 'z');
  if (typeof packed !== 'string') return { ok: false, problem: 'z: Expected a string' };
  try {
    const raw = await decompress(Buffer.from(packed, 'base64'), { maxOutputLength: MAX_DECODED_BYTES });
    return { ok: true, value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(raw)) };
  } catch (error) {
    return { ok: false, problem: `z: ${String(error).replaceAll('\0', '\\0').slice(0, 300)}` };
  }
}

/** What a schema cannot say about an envelope, or null. */
function inconsistency(e: Envelope): string | null {
  if (e.last !== e.first + e.records.length - 1) return 'last: does not fit first and the number of records';
  if (e.lost.some((hole) => hole.to < hole.from)) return 'lost: a hole ends before it begins';
  if (e.lost.some((hole) => hole.from <= e.last && hole.to >= e.first)) return 'lost: overlaps the records';
  if (e.prev === e.epoch) return 'prev: is the epoch itself';
  return null;
}
