/*
 * Any record that the store takes, of each type: with odd texts, bounds of numbers, and fields that are absent.
 */
import fc from 'fast-check';
import {
  EVENT_TYPES,
  type EvidenceRecord,
  EXIT_REASONS,
  FINDING_KINDS,
  MAX_INT4,
  PLEG_STATES,
  type RecordType,
} from '../../src/protocol/record.ts';

const HOUR = 3_600_000_000;
const at = fc.integer({ min: -HOUR, max: HOUR });
const duration = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: HOUR }));
const count = fc.oneof(fc.constant(0), fc.nat(), fc.integer({ min: MAX_INT4, max: 2 ** 46 }));
const int4 = fc.oneof(fc.constant(0), fc.nat(1000), fc.constant(MAX_INT4));
const text = (maxLength: number) =>
  fc.oneof(
    fc.string({ unit: 'binary', maxLength }).map((each) => each.replaceAll('\0', '-')),
    // With unpaired surrogates: JSON has them, and Postgres stores something else.
    fc
      .array(fc.integer({ min: 1, max: 0xffff }), { maxLength })
      .map((units) => String.fromCharCode(...units)),
  );
const id = text(40).map((each) => `${each}c`);
const uuid = fc.uuid().map((each, i = each.charCodeAt(0)) => (i % 2 === 0 ? each.toUpperCase() : each));
const orNull = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null });
const optional = <T, N extends string>(name: N, of: fc.Arbitrary<T>) =>
  fc.option(of, { nil: undefined }).map((value) => (value === undefined ? {} : { [name]: value }));
const window = fc.record({ from: at, to: at });
/** Postgres refuses unpaired surrogates in JSON. */
const proof = fc
  .dictionary(
    fc.string().map((key) => key.replaceAll('\0', '-')),
    fc.jsonValue({ maxDepth: 3 }).filter((value) => !JSON.stringify(value).includes('\\u0000')),
  )
  .filter((value) => JSON.stringify(value).length < 10_000);
const histogram = fc.array(fc.oneof(fc.constant(0), count), { maxLength: 30 });
const typed = <T extends RecordType>(type: T, more: fc.Arbitrary<object>) =>
  fc.tuple(at, more).map(([t, fields]) => ({ type, t, ...fields }) as unknown as EvidenceRecord);
const merged = (...parts: readonly fc.Arbitrary<object>[]) =>
  fc.tuple(...parts).map((each): object => Object.assign({}, ...each));

const calls = fc.record({ calls: count, errors: count, sum: count });
const kubelet = merged(
  fc.record({
    ...{ scraped: window, relists: count, hist: histogram, intervals: count, intervalSum: count },
    ...{ lastSeenAge: orNull(count), discarded: orNull(count), streamErrors: orNull(count) },
    ...{ listP99: orNull(count), resident: orNull(count) },
  }),
  optional(
    'calls',
    fc.record({
      ...{ from: at, to: at, relistSum: count, longestList: count, cpu: orNull(count) },
      ...{ sandboxLists: calls, containerLists: calls, sandboxStatuses: calls, containerStatuses: calls },
    }),
  ),
);
const hang = fc.record({
  ...{
    call: fc.constantFrom('ListPodSandbox', 'ListContainers'),
    from: at,
    to: orNull(at),
    waited: duration,
  },
  ...{
    verdict: fc.constantFrom('container', 'pod', 'runtime', 'none', 'unknown'),
    listed: int4,
    asked: int4,
  },
  ...{ quick: int4, unanswered: int4 },
});
const slowest = fc.record({
  ...{ containerId: id, isSandbox: fc.boolean(), at, took: duration, timedOut: fc.boolean() },
});
const statuses = merged(
  fc.record({ asked: int4, slow: int4, slowest: orNull(slowest) }),
  optional('hang', hang),
);
const pressure = fc.nat(60_000_000).chain((span) => {
  const wait = fc.nat(span);
  return fc.record({
    ...{ span: fc.constant(span), cpuSome: wait, ioSome: wait, ioFull: wait, memorySome: wait },
    memoryFull: wait,
  });
});
const lags = fc.array(int4, { maxLength: 18 });
const listed = fc.array(fc.integer({ min: -MAX_INT4, max: MAX_INT4 }), { maxLength: 40 });

const ANY: Readonly<Record<RecordType, fc.Arbitrary<EvidenceRecord>>> = {
  container_event: typed(
    'container_event',
    merged(
      fc.record({
        ...{ containerId: id, eventType: fc.nat(255), isSandbox: fc.boolean(), replayed: fc.boolean() },
        createdNs: fc.oneof(
          fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }).map(String),
          fc.constant('-007'),
        ),
        hasSandboxStatus: fc.boolean(),
      }),
      optional('exit', fc.record({ code: orNull(fc.nat(255)), reason: fc.constantFrom(...EXIT_REASONS) })),
    ),
  ),
  relist_change: typed(
    'relist_change',
    fc.record({
      ...{ containerId: id, isSandbox: fc.boolean(), window },
      ...{ oldState: fc.constantFrom(...PLEG_STATES), newState: fc.constantFrom(...PLEG_STATES) },
    }),
  ),
  finding: typed(
    'finding',
    fc.record({
      ...{ findingId: uuid, kind: fc.constantFrom(...FINDING_KINDS), cause: text(60), proof },
      ...{
        eventType: orNull(fc.constantFrom(...EVENT_TYPES)),
        containerId: orNull(id),
        window: orNull(window),
      },
      ...{ occurred: orNull(at), lateness: orNull(count), delivery: orNull(count) },
    }),
  ),
  mode_change: typed(
    'mode_change',
    fc.record({
      ...{ notBefore: at, model: text(60), from: text(60), to: text(60), reason: text(60), proof },
    }),
  ),
  relist_minute: typed(
    'relist_minute',
    merged(
      fc.record({
        ...{
          span: duration,
          wall: fc.integer({ min: 0, max: 8e15 }),
          lists: listed,
          relists: int4,
          errors: int4,
        },
        ...{ max: duration, hist: histogram, sandboxes: int4, containers: int4, exitedSandboxes: int4 },
        ...{ exitedContainers: int4, sandboxListBytes: int4, containerListBytes: int4, expected: int4 },
        ...{ matched: int4, unobservable: int4, covered: duration, decided: at },
      }),
      optional('kubelet', kubelet),
      optional('statuses', statuses),
      optional('kubeletLag', fc.record({ starts: lags, stops: lags })),
      optional('pressure', pressure),
    ),
  ),
  finding_resolved: typed('finding_resolved', fc.record({ findingId: uuid })),
  event_overdue: typed(
    'event_overdue',
    fc.record({
      ...{ findingId: uuid, containerId: id, eventType: fc.constantFrom('STARTED', 'STOPPED') },
      ...{ window: fc.record({ from: orNull(at), to: at }), occurred: orNull(at) },
    }),
  ),
  stream_session: typed(
    'stream_session',
    fc.record({
      ...{ sessionNo: fc.integer({ min: 1, max: 1000 }), opened: at, armed: orNull(at), closed: orNull(at) },
      ...{ code: orNull(text(60)), message: orNull(text(60)), events: fc.nat(), replayed: fc.nat() },
    }),
  ),
  gap: typed(
    'gap',
    fc.record({
      ...{ gapId: uuid, scope: fc.constantFrom('stream', 'list', 'kubelet'), cause: text(60), from: at },
      to: orNull(at),
    }),
  ),
  node_state: typed(
    'node_state',
    fc.record({
      stream: fc.record({
        ...{ state: fc.constantFrom('Active', 'Silent'), since: at, reason: text(60), lastError: text(60) },
      }),
      relist: fc.record({ healthy: fc.boolean(), reason: text(60) }),
      ...{ model: text(60), mode: text(60), modeSince: at, modeReason: text(60) },
    }),
  ),
};

export const anyRecord: fc.Arbitrary<EvidenceRecord> = fc.oneof(...Object.values(ANY));
