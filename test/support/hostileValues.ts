/*
 * Values, texts and records that the store refuses or that a parser stumbles over. Same seed, same values.
 */
import type { Random } from '../../devtools/simulator/random.ts';
import { event, hexId, missedFinding, relistMinute, streamSession } from './records.ts';

export const INJECTIONS = [
  "'; DROP TABLE store.container_event; --",
  '"; DELETE FROM store.epoch; --',
  '$1::int4); TRUNCATE store.node; --',
  '%s%s%s%n',
  '{plegwatch:test:0}:evidence:wait',
  '../../../../etc/passwd',
] as const;

/** A value of a wrong type, or one that does not fit. */
export const oddValue = (random: Random): unknown =>
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

export const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

export function pick<T>(random: Random, from: readonly T[]): T {
  const one = from[Math.floor(random.next() * from.length)];
  if (one === undefined) throw new Error('nothing to pick from');
  return one;
}

/** Text that is inserted into a batch as it is. */
class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
const asJson = (value: unknown): string =>
  value instanceof RawJson ? value.text : (JSON.stringify(value, undefined, 0) ?? 'null');

const finding = (proof: Readonly<Record<string, unknown>>) => missedFinding({ proof });
const deepProof = (depth: number): RawJson =>
  new RawJson(JSON.stringify(finding({})).replace('"proof":{}', `"proof":{"a":${nested(depth)}}`));

type MinuteStatuses = NonNullable<Parameters<typeof relistMinute>[0]>['statuses'];
const statuses = (slowest: Readonly<Record<string, unknown>>, more: Readonly<Record<string, unknown>> = {}) =>
  ({
    ...{ asked: 2, slow: 1, ...more },
    slowest: { containerId: hexId(1), isSandbox: true, at: 1, took: 5e6, timedOut: true, ...slowest },
  }) as MinuteStatuses;

/** Statuses of a minute that cannot be stored, each for another reason. */
export const HOSTILE_STATUSES: readonly MinuteStatuses[] = [
  statuses({ containerId: '' }),
  statuses({ containerId: '\0' }),
  statuses({ containerId: 'a'.repeat(257) }),
  statuses({ containerId: null }),
  statuses({ at: 2 ** 53 }),
  statuses({ at: 0.5 }),
  statuses({ took: -1 }),
  statuses({ took: 2 ** 60 }),
  statuses({ timedOut: 'yes' }),
  statuses({ isSandbox: 1 }),
  statuses({ more: 1 }),
  statuses({}, { asked: 2 ** 31 }),
  statuses({}, { slow: -1 }),
  statuses({}, { more: 1 }),
  JSON.parse('[]'),
  JSON.parse('{"asked": 1, "slow": 1}'),
];

/** Records that cannot be stored, each for another reason. */
const UNSTORABLE: readonly ((random: Random) => unknown)[] = [
  (random) => oddValue(random),
  (random) => ({
    ...event(1),
    [pick(random, ['t', 'containerId', 'eventType', 'createdNs'])]: pick(random, [null, -1.5, [], {}, '\0']),
  }),
  () => new RawJson(JSON.stringify(event(1)).replace('{', '{"__proto__":{"type":"node_state"},')),
  () => new RawJson(nested(50_000)),
  () => deepProof(8_000),
  () => deepProof(100_000),
  () => finding({ text: '\ud800' }),
  () => finding({ text: '\0' }),
  () => finding({ text: 'x'.repeat(20_000) }),
  () => ({ ...event(1), t: 30 * 86_400_000_000 }),
  () => ({ ...event(1), t: -300 * 86_400_000_000 }),
  () => ({ ...event(1), t: Number.MAX_SAFE_INTEGER }),
  (random) => ({
    ...event(1),
    exit: pick(random, [
      null,
      {},
      { code: 7, reason: "'; --" },
      { code: 2 ** 31, reason: 'Error' },
      { code: -1, reason: 'Error' },
      { code: 7, reason: 'Error', more: 1 },
    ]),
  }),
  () => ({ ...event(1), createdNs: '-9999999999999999999' }),
  () => relistMinute({ sandboxes: 2 ** 40 }),
  (random) => relistMinute({ statuses: pick(random, HOSTILE_STATUSES) }),
  () => relistMinute({ hist: Array.from({ length: 65 }, () => 1) }),
  () => streamSession({ sessionNo: 2 ** 50 }),
  () => ({ type: 'no-such-type', t: 1 }),
  () => ({ type: '__proto__', t: 1 }),
];

/** The JSON of six records, of which every second cannot be stored. */
export function recordsJson(random: Random): string {
  const records: unknown[] = [];
  for (let i = 0; i < 3; i++) records.push(event(i + 1), pick(random, UNSTORABLE)(random));
  return `[${records.map(asJson).join(',')}]`;
}

/** The JSON of objects that cannot be stored. */
export function objectsJson(random: Random): string {
  const identity = { sandbox: '', isSandbox: false, podUid: '', namespace: '', pod: '', container: '' };
  const objects = [
    oddValue(random),
    new RawJson(nested(20_000)),
    { id: hexId(1), ...identity, attempt: 2 ** 52 },
  ];
  return `[${objects.map(asJson).join(',')}]`;
}
