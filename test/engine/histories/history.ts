/*
 * A history: everything that chance decides about random containers on a random runtime, watched by a random agent, in
 * simulated time. The consequences are worked out in groundTruth.ts. For tests. All times are whole milliseconds from 0.
 */
import * as fc from 'fast-check';
import { millis } from '../../../src/protocol/units.ts';

export const HORIZON = 150_000;
export const OVERDUE_AFTER = 2_000;
export const MISSED_AFTER = 15_000;
export const LATE_AFTER = 1_000;
export const KUBELET_LATE_AFTER = 3_000;
export const LEAD = millis(10_000) / 1000;
/** An ordinary delay of an event ends well before the judgement; a long one may outlast it. */
const ORDINARY_WAIT = 8_000;
const LONG_WAIT = 40_000;

const ms = (max: number, min = 0) => fc.integer({ min, max });
const many = <T>(each: fc.Arbitrary<T>, maxLength: number) => fc.array(each, { maxLength });

/** `containerd-2.5` restores pods, and announces no CREATED of what it restores. */
export type HistoryRuntime = 'containerd' | 'containerd-2.4' | 'containerd-2.5' | 'crio' | 'isulad';
const RUNTIMES: readonly HistoryRuntime[] = ['crio', 'crio', 'isulad', 'containerd-2.4', 'containerd-2.5'];
export const isContainerd = (runtime: HistoryRuntime): boolean => runtime.startsWith('containerd');

const aContainer = fc.record({
  create: ms(4_000),
  start: ms(4_000),
  /**
   * 0, 2 and 4: its start fails. 6 and 13: where containers are restored, it is. Odd: where removed sandboxes take their containers along, this one is removed with it. A
   * third of them have a name of their own; the others share one name and may overlap.
   */
  habit: ms(23),
  run: fc.oneof(ms(300), ms(30_000)),
  remove: fc.oneof(ms(300), ms(15_000)),
});

const aPod = fc.record({
  at: ms(90_000),
  /**
   * 0, 1: its sandbox never comes up. 2: it has two sandboxes that are ready. 3: its sandbox is removed while it runs. 4: where pods are
   * restored, its sandbox is.
   */
  habit: ms(15),
  containers: fc.array(aContainer, { maxLength: 3 }),
  pause: fc.oneof(ms(200), ms(10_000)),
  remove: fc.oneof(ms(200), ms(12_000)),
  lead: ms(LEAD - 500),
});

/** Lists and statuses show something other than the truth. */
const aWrongView = fc.record({
  which: fc.nat(),
  /** `late`: running after its end. `back`: running again some time after its end. */
  kind: fc.constantFrom('late', 'back', 'absent', 'unknown'),
  after: ms(15_000),
  for: ms(20_000, 1),
});

const aWait = fc.record({
  which: fc.nat(),
  ms: fc.oneof({ arbitrary: ms(ORDINARY_WAIT), weight: 4 }, ms(LONG_WAIT)),
  builtLate: fc.boolean(),
});

const aKubelet = fc.record({
  firstWatch: ms(10_000),
  watches: fc.array(
    fc.record({
      sync: ms(400),
      after: ms(60_000),
      down: ms(6_000, 1),
      /** It ends because the kubelet restarts, which then has statuses that are so old until it has looked again. */
      restarts: fc.boolean(),
      stale: ms(30_000),
      looksAfter: ms(8_000),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  /** How long after a change the kubelet looks. */
  delays: fc.array(
    fc.oneof(
      { arbitrary: ms(40), weight: 4 },
      { arbitrary: ms(2_000), weight: 2 },
      { arbitrary: ms(30_000), weight: 2 },
    ),
    { minLength: 1, maxLength: 6 },
  ),
  /** Messages that the kubelet drops. */
  drops: many(fc.nat(), 6),
  unknownPods: many(fc.nat(), 1),
  /** Pods that terminate, and how long before their last container stops. */
  terminations: many(fc.record({ which: fc.nat(), before: ms(20_000) }), 2),
  /** How long after its last stop a pod has ended; null: not at all. */
  ends: fc.array(fc.oneof(ms(20_000), fc.constant(null)), { minLength: 1, maxLength: 3 }),
  answers: fc.array(fc.record({ lag: ms(600), lost: ms(5).map((n) => n === 0) }), {
    minLength: 1,
    maxLength: 4,
  }),
});

/** Numbers that pick something do so by remainder. */
export const anyHistory = fc.record({
  runtime: ms(8).map((n): HistoryRuntime => RUNTIMES[n] ?? 'containerd'),
  pods: fc.array(aPod, { minLength: 1, maxLength: 5 }),
  drops: many(fc.nat(), 6),
  waits: many(aWait, 4),
  /** Containers whose STOPPED is sent before their STARTED. */
  swaps: many(fc.nat(), 2),
  copies: many(fc.record({ which: fc.nat(), after: ms(20_000, 1) }), 2),
  spurious: many(fc.record({ which: fc.nat(), type: ms(3), at: ms(HORIZON) }), 2),
  /** Events of which only the digest could be kept. */
  digests: many(fc.nat(), 3),
  wrongViews: many(aWrongView, 2),
  /** How many events are replayed to each new subscription. */
  replay: fc.oneof(fc.constant(0), ms(6)),
  /** 0 and 1: that session receives no event at all. */
  silentSession: ms(30),
  sessions: fc.array(fc.record({ after: ms(60_000), down: ms(8_000, 1), register: ms(2_000) }), {
    minLength: 1,
    maxLength: 4,
  }),
  firstList: ms(8_000),
  lists: fc.array(
    /** A fate of 0: it fails. 1: an item cannot be read. */
    fc.record({ gap: fc.oneof(ms(6_000, 300), ms(400, 200)), took: ms(900, 1), fate: ms(24), lag: ms(200) }),
    { minLength: 5, maxLength: 20 },
  ),
  streamGaps: many(ms(HORIZON), 2),
  clockSteps: many(
    fc.record({ at: ms(HORIZON), by: fc.oneof(ms(1_500, -1_500), ms(4_000_000, -4_000_000)) }),
    2,
  ),
  readerStalls: many(fc.record({ at: ms(HORIZON), for: ms(20_000) }), 1),
  statusAnswers: fc.array(fc.record({ lag: ms(4_000), lost: fc.boolean() }), { minLength: 1, maxLength: 4 }),
  kubelet: aKubelet,
  backlog: fc.boolean(),
  unknowns: fc.boolean(),
  pipe: ms(400),
  salt: fc.nat(),
});
export type History = typeof anyHistory extends fc.Arbitrary<infer T> ? T : never;
