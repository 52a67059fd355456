/*
 * Inputs that no agent makes, each with its expected outcome. Same seed, same inputs.
 */
import { zstdCompressSync } from 'node:zlib';
import type { Random } from '../../devtools/simulator/random.ts';
import type { Rejection } from '../../src/controller/ingest/rejections.ts';
import { type Batch, encodeBatch, MAX_DECODED_BYTES } from '../../src/protocol/batch.ts';
import { agentIncarnation, type BatchIncarnation } from './batches.ts';
import { INJECTIONS, nested, objectsJson, oddValue, pick, recordsJson } from './hostileValues.ts';
import { event } from './records.ts';

export type InputOutcome =
  /** A row in `plegwatch.rejected` with this reason; nothing is stored. */
  | { readonly is: 'rejected'; readonly reason: Rejection['reason'] }
  /** An input of a newer version: neither stored, nor acknowledged, nor rejected. */
  | { readonly is: 'unacked' }
  /** A new epoch with seqs 1 to `last`: `stored` are stored, and the others become gaps. */
  | {
      readonly is: 'partly_stored';
      readonly incarnation: BatchIncarnation;
      readonly last: number;
      readonly stored: number;
    };

export interface HostileInput {
  /** The text in the inbox under an id. */
  readonly text: string | Buffer;
  readonly outcome: InputOutcome;
}

const packed = (text: string | Buffer): { z: string } => ({ z: zstdCompressSync(text).toString('base64') });
const bytesOf = (random: Random, n: number): Buffer =>
  Buffer.from(Array.from({ length: n }, () => Math.floor(random.next() * 256)));
const below = (random: Random, bound: number): number => Math.floor(random.between(0, bound));

const encoded = async (batch: object): Promise<string> => JSON.stringify(await encodeBatch(batch as Batch));

const rejected = (text: string | Buffer, reason: Rejection['reason']): HostileInput => ({
  text,
  outcome: { is: 'rejected', reason },
});
const notABatch = (text: string | Buffer): HostileInput => rejected(text, 'not_a_batch');
const notJson = (text: string | Buffer): HostileInput => rejected(text, 'not_json');

/** The first batch of an incarnation of its own. */
const ownBatch = (name: string): Batch => agentIncarnation(name).batch(1, [event(1)]);
const compressed = async (name: string): Promise<Buffer> =>
  Buffer.from((await encodeBatch(ownBatch(name))).z, 'base64');

/** Bombs are reused: making one takes longer than refusing it. */
const BOMBS = [9, 64].map((mib) => packed(Buffer.alloc(mib * 1024 * 1024)));

/** Values that the fields of a batch refuse. */
const FIELD_VALUES: Readonly<Record<string, readonly unknown[]>> = {
  first: [-5, 0, 2_147_483_647, 1.5, '1; DROP TABLE store.container_event'],
  last: [-1, 2_147_483_647, 9],
  oldestSeq: [0, 2 ** 53],
  ackGeneration: [0, -1],
  incarnation: [-1, 2 ** 40],
  mono0: [-1, 2 ** 60],
  wall0: [-1, 1e300],
  epoch: ['not-a-uuid'],
  prev: ['not-a-uuid'],
  v: [0, '1', 1.5, -1],
  cluster: ['', '{plegwatch:test:0}'],
  node: ['Node_A', 'a'.repeat(300)],
  nodeUid: ['\0'],
  bootId: ['b'.repeat(65)],
  context: [null, { no: 0 }],
  lost: [
    [{ from: 5, to: 4, cause: 'x' }],
    [{ from: 1, to: 1, cause: 'overlaps' }],
    [{ from: -1, to: 2 ** 31, cause: 'x' }],
    Array.from({ length: 1_001 }, (_, i) => ({ from: i + 100, to: i + 100, cause: 'x' })),
  ],
  held: [[{ epoch: '', incarnation: 1, last: 1 }], { length: 1 }],
  objects: ['x'],
  records: [null, { 0: {}, length: 1 }, Array.from({ length: 501 }, () => null)],
  constructor: [{}],
  unheard: [1],
};
const FIELDS = Object.entries(FIELD_VALUES).flatMap(([field, values]) =>
  values.map((value) => [field, value] as const),
);

type InputMaker = (
  random: Random,
  victim: BatchIncarnation,
  n: number,
) => Promise<HostileInput> | HostileInput;

/** `victim`: the incarnation whose epoch the inputs attack. */
const MAKERS: Readonly<Record<string, InputMaker>> = {
  'data of a wrong type': (random) => notABatch(JSON.stringify(oddValue(random) ?? null)),
  'z of a wrong type': (random) => notABatch(JSON.stringify({ z: oddValue(random) })),
  'base64 garbage': (random) =>
    notABatch(JSON.stringify({ z: bytesOf(random, 1 + below(random, 200)).toString('base64') })),
  'no base64': (random) => notABatch(JSON.stringify({ z: `!§$%&/()=?${random.next()}` })),
  'zstd that is cut': async (random, _, n) => {
    const raw = await compressed(`cut-${n}`);
    return notABatch(
      JSON.stringify({ z: raw.subarray(0, below(random, raw.length - 1)).toString('base64') }),
    );
  },
  'zstd that is no zstd': async (_random, _, n) => {
    const raw = await compressed(`flip-${n}`);
    // In the frame's magic number: a flip in the text may make another valid batch.
    raw.writeUInt8(0, 1);
    return notABatch(JSON.stringify({ z: raw.toString('base64') }));
  },
  [`a zstd bomb of over ${MAX_DECODED_BYTES} bytes`]: (random, _, n) =>
    notABatch(JSON.stringify({ ...pick(random, BOMBS), n })),
  'compressed bytes that are not UTF-8': (random) =>
    notABatch(
      JSON.stringify(
        packed(Buffer.concat([Buffer.from('{"v":1,"node":"'), bytesOf(random, 40), Buffer.from([0xff])])),
      ),
    ),
  'compressed text that is not JSON': (random) =>
    notABatch(JSON.stringify(packed(`{"v":1,${random.next()}`))),
  'deeply nested data': (random) => notABatch(`{"z":${nested(10 + below(random, 60_000))}}`),
  'a deeply nested batch': (random) =>
    notABatch(JSON.stringify(packed(`{"v":1,"records":${nested(10 + below(random, 60_000))}}`))),
  'huge data': (random, _, n) =>
    notABatch(JSON.stringify({ z: String(random.next()).repeat(n % 50 === 0 ? 100_000 : 2_000) })),
  'a batch with a wrong field': async (random, _, n) => {
    const [field, value] = pick(random, FIELDS);
    return notABatch(await encoded({ ...ownBatch(`field-${n}`), [field]: value }));
  },
  'a batch without a field': (random, _, n) => {
    const fields = Object.entries(ownBatch(`without-${n}`));
    const [removed] = pick(random, fields);
    const others = Object.fromEntries(fields.filter(([field]) => field !== removed));
    return notABatch(JSON.stringify(packed(JSON.stringify(others))));
  },
  'a batch that would be a prototype': (random, _, n) => {
    const json = JSON.stringify(ownBatch(`proto-${n}`));
    const prototype = pick(random, [
      '"__proto__":{"ok":true}',
      '"constructor":{"prototype":{"ok":true}}',
      '"toString":1',
    ]);
    return notABatch(JSON.stringify(packed(`{${prototype},${json.slice(1)}`)));
  },
  'a node that is SQL': async (random, _, n) =>
    notABatch(await encoded({ ...ownBatch(`sql-${n}`), node: pick(random, INJECTIONS) })),
  "another cluster's batch": async (random, victim, n) => {
    const cluster = pick(random, ['other', 'test2', 'test.', 'production']);
    const text = await encoded({ ...victim.batch(1 + (n % 9), [event(1)]), cluster });
    return cluster === 'test.' ? notABatch(text) : rejected(text, 'other_cluster');
  },
  "another node's epoch": async (random, victim, n) => {
    // It becomes an epoch of the thief's own.
    const thief = { ...agentIncarnation(`poisoned-thief-${n}`), epoch: victim.epoch };
    const epoch = random.chance(0.5) ? victim.epoch.toUpperCase() : victim.epoch;
    const stolen = { node: thief.node, epoch };
    return {
      text: await encoded({ ...victim.batch(1, [event(n)]), ...stolen }),
      outcome: { is: 'partly_stored', incarnation: thief, last: 1, stored: 1 },
    };
  },
  'a batch of a newer version': async (random, victim, n) => {
    const v = pick(random, [2, 3, 1_000, 2 ** 31, 2 ** 53]);
    return { text: await encoded({ ...victim.batch(6, [event(n)]), v }), outcome: { is: 'unacked' } };
  },
  'data that is not JSON': (random) => notJson(Buffer.concat([Buffer.from('{'), bytesOf(random, 50)])),
  'data that ends early': (random) => notJson(`{"z":"${random.next()}`),
  'an input of another application': (random) =>
    notABatch(JSON.stringify({ to: 'someone@example.com', n: random.next() })),
  'a batch with records that cannot be stored': (random, _, n) => unstorable(random, n),
};

/** A batch of its own epoch in which every second record cannot be stored. */
function unstorable(random: Random, n: number): HostileInput {
  const own = agentIncarnation(`poisoned-${n}`);
  const held = [{ epoch: own.epoch, incarnation: 1, last: 6 }];
  const text = JSON.stringify({ ...own.batch(1, []), records: [], objects: [], last: 6, held })
    .replace('"records":[]', () => `"records":${recordsJson(random)}`)
    .replace('"objects":[]', () => `"objects":${objectsJson(random)}`);
  return {
    text: JSON.stringify(packed(text)),
    outcome: { is: 'partly_stored', incarnation: own, last: 6, stored: 3 },
  };
}

const ALL_MAKERS = Object.values(MAKERS);

/** The `n`th hostile input. */
export async function hostileInput(
  random: Random,
  victim: BatchIncarnation,
  n: number,
): Promise<HostileInput> {
  const make = ALL_MAKERS[n % ALL_MAKERS.length];
  if (make === undefined) throw new Error('there is no such input');
  return make(random, victim, n);
}
