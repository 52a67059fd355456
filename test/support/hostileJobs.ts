/*
 * Jobs that no agent of ours would make, each with what has to become of it. Same seed, same jobs.
 *
 *   rejected   nobody's: a row in `plegwatch.rejected` with this reason, nothing else moves
 *   unacked    of a newer version: not stored, not acknowledged, not rejected
 *   record     a batch that can be attributed, with records that cannot be stored: those become gaps, the others are stored
 *   stored     strange, and still a batch: all of it is stored
 */
import { randomUUID } from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';
import type { Random } from '../../devtools/simulator/random.ts';
import type { Rejection } from '../../src/controller/ingest/rejections.ts';
import { type Batch, encodeBatch, MAX_DECODED_BYTES } from '../../src/protocol/batch.ts';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { agentIncarnation, type BatchIncarnation, event, hexId } from './batches.ts';

export type Fate =
  | { readonly is: 'rejected'; readonly reason: Rejection['reason'] }
  | { readonly is: 'unacked' }
  /** Seqs 1 to `last` of a new epoch, of which `stored` are stored. */
  | {
      readonly is: 'record';
      readonly incarnation: BatchIncarnation;
      readonly last: number;
      readonly stored: number;
    };

/** The contents of a hostile job: raw fields of its hash, a key of another type, or no key at all. */
export type Lying =
  | { readonly is: 'fields'; readonly fields: Readonly<Record<string, string | Buffer>> }
  | { readonly is: 'nothing' }
  | { readonly is: 'list' };

export interface HostileJob {
  readonly what: string;
  readonly lying: Lying;
  readonly fate: Fate;
}

/** The incarnation whose epoch hostile batches attack. */
export interface Victim {
  readonly incarnation: BatchIncarnation;
}

const NOT_A_BATCH: Fate = { is: 'rejected', reason: 'not_a_batch' };
const NOT_JSON: Fate = { is: 'rejected', reason: 'not_json' };

const INJECTIONS = [
  "'; DROP TABLE store.container_event; --",
  '"; DELETE FROM store.epoch; --',
  '$1::int4); TRUNCATE store.node; --',
  '%s%s%s%n',
  '{plegwatch-test-0}:evidence:wait',
  '../../../../etc/passwd',
] as const;

const OPTIONS: readonly object[] = [
  { attempts: 1_000, backoff: { type: 'exponential', delay: 1 } },
  { attempts: -1 },
  { removeOnComplete: false, removeOnFail: false },
  { removeOnComplete: { count: 1e9 }, keepLogs: 1e9 },
  { repeat: { every: 1, limit: 1e9 }, repeatJobKey: 'for-ever', prevMillis: 1 },
  { parent: { id: '1', queue: 'bull:others' }, failParentOnFailure: true },
  { delay: 1e12, lifo: true },
  { timestamp: -1, stackTraceLimit: 1e9 },
  { deduplication: { id: 'all', ttl: 1e12 } },
  { telemetry: { metadata: '{' } },
];

/** Values that stand where others should. */
const odd = (random: Random): unknown =>
  pick(random, [
    null,
    true,
    -1,
    0.5,
    1e308,
    Number.MAX_SAFE_INTEGER,
    2 ** 31,
    '',
    'x',
    '\0',
    '\ud800',
    [],
    {},
    [[]],
    { length: 1e9 },
    JSON.parse('{"__proto__": {"v": 1}}'),
    'a'.repeat(20_000),
    ...INJECTIONS,
  ]);

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const packed = (text: string | Buffer): { z: string } => ({ z: zstdCompressSync(text).toString('base64') });
const bytesOf = (random: Random, n: number): Buffer =>
  Buffer.from(Array.from({ length: n }, () => Math.floor(random.next() * 256)));

function pick<T>(random: Random, from: readonly T[]): T {
  const one = from[Math.floor(random.next() * from.length)];
  if (one === undefined) throw new Error('nothing to pick from');
  return one;
}

/** A job as BullMQ would write it, with any data. */
function job(data: string | Buffer, opts: string | Buffer = '{}', more: Record<string, string> = {}): Lying {
  return { is: 'fields', fields: { name: 'batch', data, opts, timestamp: '1', delay: '0', ...more } };
}
const withData = (data: unknown): Lying => job(JSON.stringify(data));

/** Bombs are the same again and again: making one takes longer than refusing it. */
const BOMBS = [9, 64].map((mib) => packed(Buffer.alloc(mib * 1024 * 1024)));

type Maker = (random: Random, victim: Victim, n: number) => Promise<HostileJob> | HostileJob;

/** A batch with one field that is not as it should be. */
const FIELDS: readonly (readonly [string, unknown])[] = [
  ['first', -5],
  ['first', 0],
  ['first', 2_147_483_647],
  ['first', 1.5],
  ['first', '1; DROP TABLE store.container_event'],
  ['last', -1],
  ['last', 2_147_483_647],
  ['last', 9],
  ['oldestSeq', 0],
  ['oldestSeq', 2 ** 53],
  ['ackGeneration', 0],
  ['ackGeneration', -1],
  ['incarnation', -1],
  ['incarnation', 2 ** 40],
  ['mono0', -1],
  ['mono0', 2 ** 60],
  ['wall0', -1],
  ['wall0', 1e300],
  ['epoch', 'not-a-uuid'],
  ['prev', 'not-a-uuid'],
  ['v', 0],
  ['v', '1'],
  ['v', 1.5],
  ['v', -1],
  ['cluster', ''],
  ['cluster', '{plegwatch-test-0}'],
  ['node', 'Node_A'],
  ['node', 'a'.repeat(300)],
  ['nodeUid', '\0'],
  ['bootId', 'b'.repeat(65)],
  ['context', null],
  ['context', { no: 0 }],
  ['lost', [{ from: 5, to: 4, cause: 'x' }]],
  ['lost', [{ from: 1, to: 1, cause: 'overlaps' }]],
  ['lost', [{ from: -1, to: 2 ** 31, cause: 'x' }]],
  ['lost', Array.from({ length: 1_001 }, (_, i) => ({ from: i + 100, to: i + 100, cause: 'x' }))],
  ['held', [{ epoch: '', incarnation: 1, last: 1 }]],
  ['held', { length: 1 }],
  ['objects', 'x'],
  ['records', null],
  ['records', { 0: {}, length: 1 }],
  ['records', Array.from({ length: 501 }, () => null)],
  ['constructor', {}],
  ['unheard', 1],
];

const MAKERS: readonly Maker[] = [
  // Wrong types, and data that is no object.
  (random) => ({ what: 'data of a wrong type', lying: withData(odd(random) ?? null), fate: NOT_A_BATCH }),
  (random) => ({ what: 'z of a wrong type', lying: withData({ z: odd(random) }), fate: NOT_A_BATCH }),
  (random) => ({
    what: 'base64 garbage',
    lying: withData({ z: bytesOf(random, 1 + Math.floor(random.between(0, 200))).toString('base64') }),
    fate: NOT_A_BATCH,
  }),
  (random) => ({
    what: 'no base64',
    lying: withData({ z: `!§$%&/()=?${random.next()}` }),
    fate: NOT_A_BATCH,
  }),
  // Compression.
  async (random, _, n) => {
    const { z } = await encodeBatch(agentIncarnation(`cut-${n}`).batch(1, [event(1)]));
    const raw = Buffer.from(z, 'base64');
    const cut = raw.subarray(0, Math.floor(random.between(0, raw.length - 1)));
    return { what: 'zstd that is cut', lying: withData({ z: cut.toString('base64') }), fate: NOT_A_BATCH };
  },
  async (_random, _, n) => {
    const { z } = await encodeBatch(agentIncarnation(`flip-${n}`).batch(1, [event(1)]));
    const raw = Buffer.from(z, 'base64');
    // In the frame's magic number: a flip in the text may make another batch that is as good.
    raw.writeUInt8(0, 1);
    return {
      what: 'zstd that is no zstd',
      lying: withData({ z: raw.toString('base64') }),
      fate: NOT_A_BATCH,
    };
  },
  (random, _, n) => ({
    what: `a zstd bomb of over ${MAX_DECODED_BYTES} bytes`,
    lying: withData({ ...pick(random, BOMBS), n }),
    fate: NOT_A_BATCH,
  }),
  (random) => ({
    what: 'compressed bytes that are not UTF-8',
    lying: withData(
      packed(Buffer.concat([Buffer.from('{"v":1,"node":"'), bytesOf(random, 40), Buffer.from([0xff])])),
    ),
    fate: NOT_A_BATCH,
  }),
  (random) => ({
    what: 'compressed text that is not JSON',
    lying: withData(packed(`{"v":1,${random.next()}`)),
    fate: NOT_A_BATCH,
  }),
  // Nesting that a parser reads and a recursion does not.
  (random) => ({
    what: 'data that is nested deeply',
    lying: job(`{"z":${nested(10 + Math.floor(random.between(0, 60_000)))}}`),
    fate: NOT_A_BATCH,
  }),
  (random) => ({
    what: 'a batch that is nested deeply',
    lying: withData(packed(`{"v":1,"records":${nested(10 + Math.floor(random.between(0, 60_000)))}}`)),
    fate: NOT_A_BATCH,
  }),
  // Size.
  (random, _, n) => ({
    what: 'data that is huge',
    lying: withData({ z: String(random.next()).repeat(n % 50 === 0 ? 100_000 : 2_000) }),
    fate: NOT_A_BATCH,
  }),
  // Fields of the envelope.
  async (random, _, n) => {
    const [field, value] = pick(random, FIELDS);
    const batch: object = { ...agentIncarnation(`field-${n}`).batch(1, [event(1)]), [field]: value };
    return {
      what: `a batch whose ${field} is ${JSON.stringify(value).slice(0, 20)}`,
      lying: withData(await encodeBatch(batch as Batch)),
      fate: NOT_A_BATCH,
    };
  },
  async (random, _, n) => {
    const batch = agentIncarnation(`without-${n}`).batch(1, [event(1)]);
    const field = pick(random, Object.keys(batch));
    const { [field as keyof Batch]: removed, ...rest } = batch;
    return {
      what: `a batch without ${field} (${typeof removed})`,
      lying: withData(packed(JSON.stringify(rest))),
      fate: NOT_A_BATCH,
    };
  },
  (random, _, n) => {
    const json = JSON.stringify(agentIncarnation(`proto-${n}`).batch(1, [event(1)]));
    const with_ = pick(random, [
      '"__proto__":{"ok":true}',
      '"constructor":{"prototype":{"ok":true}}',
      '"toString":1',
    ]);
    return {
      what: 'a batch that would be a prototype',
      lying: withData(packed(`{${with_},${json.slice(1)}`)),
      fate: NOT_A_BATCH,
    };
  },
  async (random, _, n) => {
    const batch = { ...agentIncarnation(`sql-${n}`).batch(1, [event(1)]), node: pick(random, INJECTIONS) };
    return { what: 'a node that is SQL', lying: withData(await encodeBatch(batch)), fate: NOT_A_BATCH };
  },
  // Batches in the name of others.
  async (random, { incarnation: theirs }, n) => {
    const cluster = pick(random, ['other', 'test2', 'test.', 'production']);
    const batch = { ...theirs.batch(1 + (n % 9), [event(1)]), cluster };
    const fate: Fate = { is: 'rejected', reason: cluster === 'test.' ? 'not_a_batch' : 'other_cluster' };
    return { what: "another cluster's batch", lying: withData(await encodeBatch(batch)), fate };
  },
  async (random, { incarnation: theirs }, n) => {
    const first = 1 + Math.floor(random.between(0, 1_000));
    const lost = [{ from: first + 10, to: 2_000_000, cause: 'stolen' }];
    const epoch = random.chance(0.5) ? theirs.epoch.toUpperCase() : theirs.epoch;
    const batch = {
      ...theirs.batch(first, [event(n)]),
      node: `thief-${n % 50}`,
      lost,
      epoch,
      oldestSeq: first,
    };
    return {
      what: "another node's epoch",
      lying: withData(await encodeBatch(batch)),
      fate: { is: 'rejected', reason: 'epoch_of_another_node' },
    };
  },
  // Batches of another version.
  async (random, { incarnation: theirs }, n) => {
    const v = pick(random, [2, 3, 1_000, 2 ** 31, 2 ** 53]);
    const batch: object = { ...theirs.batch(6, [event(n)]), v };
    return {
      what: 'a batch of a newer version',
      lying: withData(await encodeBatch(batch as Batch)),
      fate: { is: 'unacked' },
    };
  },
  // Bytes in the hash of the job itself.
  (random) => ({
    what: 'data that is not JSON',
    lying: job(Buffer.concat([Buffer.from('{'), bytesOf(random, 50)])),
    fate: NOT_JSON,
  }),
  (random) => ({ what: 'data that ends early', lying: job(`{"z":"${random.next()}`), fate: NOT_JSON }),
  (random) => ({
    what: 'options that are not JSON',
    lying: job('{}', Buffer.concat([Buffer.from('{'), bytesOf(random, 20)])),
    fate: NOT_JSON,
  }),
  (random) => ({
    what: 'progress or parent that is not JSON',
    lying: job(
      '{}',
      '{}',
      random.chance(0.5) ? { progress: `{${random.next()}` } : { parent: `{${random.next()}` },
    ),
    fate: NOT_JSON,
  }),
  () => ({
    what: 'a job without data',
    lying: { is: 'fields', fields: { name: 'batch', opts: '{}', timestamp: '1' } },
    fate: NOT_A_BATCH,
  }),
  () => ({ what: 'a job without a hash', lying: { is: 'nothing' }, fate: NOT_A_BATCH }),
  () => ({ what: 'a job that is a list', lying: { is: 'list' }, fate: NOT_JSON }),
  (random) => ({
    what: 'a job whose counters are no numbers',
    lying: job(
      '{}',
      '{}',
      pick(random, [{ ats: 'x' }, { atm: 'x' }, { stc: 'x', ats: '9223372036854775807' }, { ats: '1e5' }]),
    ),
    fate: NOT_JSON,
  }),
  (random) => ({
    what: 'a job of another application',
    lying: job(
      JSON.stringify({ to: 'someone@example.com', n: random.next() }),
      JSON.stringify(pick(random, OPTIONS)),
      pick(random, [
        { name: 'send-mail', rjk: 'for-ever', nrjid: '1' },
        { name: '__proto__', priority: '7', ats: '-1', atm: '-1', stc: '7' },
        { name: '', parentKey: 'bull:others:1', deid: 'all' },
        { name: 'batch', defa: '{"x":1}', failedReason: '{', returnvalue: '{' },
        {
          name: 'batch',
          stacktrace: '{',
          tm: '{',
          timestamp: 'yesterday',
          processedOn: 'x',
          finishedOn: '-1',
        },
      ]),
    ),
    fate: NOT_A_BATCH,
  }),
  // Records of a batch that is fine.
  async (random, _, n) => poisoned(random, n),
];

/** A batch of an epoch of its own in which every second record cannot be stored. */
async function poisoned(random: Random, n: number): Promise<HostileJob> {
  const own = agentIncarnation(`poisoned-${n}`);
  const records: unknown[] = [];
  for (let i = 0; i < 3; i++) records.push(event(i + 1), pick(random, POISON)(random));
  const objects: unknown[] = [
    odd(random),
    new Json(nested(20_000)),
    {
      id: hexId(1),
      sandbox: '',
      isSandbox: false,
      podUid: '',
      namespace: '',
      pod: '',
      container: '',
      attempt: 2 ** 52,
    },
  ];
  const batch: object = { ...own.batch(1, []), records: [], objects: [] };
  const text = JSON.stringify({ ...batch, last: 6, held: [{ epoch: own.epoch, incarnation: 1, last: 6 }] })
    .replace('"records":[]', () => `"records":[${records.map(asJson).join(',')}]`)
    .replace('"objects":[]', () => `"objects":[${objects.map(asJson).join(',')}]`);
  return {
    what: 'a batch with records that cannot be stored',
    lying: withData(packed(text)),
    fate: { is: 'record', incarnation: own, last: 6, stored: 3 },
  };
}

/** Text that is JSON already stays as it is. */
class Json {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
const asJson = (value: unknown): string =>
  value instanceof Json ? value.text : (JSON.stringify(value, undefined, 0) ?? 'null');

const finding = (proof: unknown): Record<string, unknown> => ({
  type: 'finding',
  t: 1,
  findingId: randomUUID(),
  kind: 'missed',
  eventType: 'STARTED',
  cause: 'sequence',
  containerId: hexId(1),
  window: { from: 0, to: 1 },
  occurred: null,
  lateness: null,
  delivery: null,
  proof,
});
const deepProof = (depth: number): Json =>
  new Json(JSON.stringify(finding({})).replace('"proof":{}', `"proof":{"a":${nested(depth)}}`));
const minute: EvidenceRecord = {
  type: 'relist_minute',
  t: 1,
  span: 1,
  relists: 1,
  errors: 0,
  max: 1,
  hist: [],
  sandboxes: 0,
  containers: 0,
  bytes: 0,
  expected: 0,
  matched: 0,
  unobservable: 0,
  covered: 0,
};

/** Records that cannot be stored, each for another reason. */
const POISON: readonly ((random: Random) => unknown)[] = [
  (random) => odd(random),
  (random) => ({
    ...event(1),
    [pick(random, ['t', 'containerId', 'eventType', 'createdNs'])]: pick(random, [null, -1.5, [], {}, '\0']),
  }),
  () => new Json(JSON.stringify(event(1)).replace('{', '{"__proto__":{"type":"node_state"},')),
  () => new Json(nested(50_000)),
  () => deepProof(8_000),
  () => deepProof(100_000),
  () => finding({ text: '\ud800' }),
  () => finding({ text: '\0' }),
  () => finding({ text: 'x'.repeat(20_000) }),
  () => ({ ...event(1), t: 30 * 86_400_000_000 }),
  () => ({ ...event(1), t: -300 * 86_400_000_000 }),
  () => ({ ...event(1), t: Number.MAX_SAFE_INTEGER }),
  () => ({ ...event(1), createdNs: '-9999999999999999999' }),
  () => ({ ...minute, sandboxes: 2 ** 40 }),
  () => ({ ...minute, hist: Array.from({ length: 65 }, () => 1) }),
  () => ({
    type: 'stream_session',
    t: 1,
    sessionNo: 2 ** 50,
    opened: 1,
    armed: null,
    closed: null,
    code: null,
    message: null,
    events: 0,
    replayed: 0,
  }),
  () => ({ type: 'no-such-type', t: 1 }),
  () => ({ type: '__proto__', t: 1 }),
];

/** The `n`th hostile job. */
export async function hostileJob(random: Random, victim: Victim, n: number): Promise<HostileJob> {
  const make = MAKERS[n % MAKERS.length];
  if (make === undefined) throw new Error('there is no such job');
  return make(random, victim, n);
}
