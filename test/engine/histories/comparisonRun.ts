/*
 * Feeds a history to a comparison as an agent would, in the order in which an agent learns of things. For tests.
 */

import { Comparison } from '../../../src/agent/compare/comparison.ts';
import type { Emission } from '../../../src/agent/compare/emitter.ts';
import type { UnobservableCause } from '../../../src/agent/compare/unobservableReason.ts';
import type { PlegProfile } from '../../../src/protocol/eventProfile.ts';
import type { ExactTimes, ListAnswer, ShownStatus } from '../../../src/protocol/observation.ts';
import { EVENT_TYPES, type KubeletLagMinute, type RecordOf } from '../../../src/protocol/record.ts';
import { type Mono, millis, mono } from '../../../src/protocol/units.ts';
import { CONTAINERD, CONTAINERD_2_4, CONTAINERD_2_5, CRIO, ISULAD, RecognisedItems } from '../timeline.ts';
import { type Announcement, type Delivery, type HistorySession, isShownRunning } from './announcements.ts';
import { type HistoryContainer, isListedEarly, shownAt, timesAt } from './containers.ts';
import { type GroundTruth, wallAt } from './groundTruth.ts';
import {
  type History,
  type HistoryRuntime,
  HORIZON,
  KUBELET_LATE_AFTER,
  LATE_AFTER,
  MISSED_AFTER,
  OVERDUE_AFTER,
} from './history.ts';
import { isDown, statusAt } from './kubelet.ts';
import type { HistoryListCall, HistoryRelist } from './relists.ts';

export const PROFILES: Readonly<Record<HistoryRuntime, PlegProfile>> = {
  containerd: CONTAINERD,
  'containerd-2.4': CONTAINERD_2_4,
  'containerd-2.5': CONTAINERD_2_5,
  crio: CRIO,
  isulad: ISULAD,
};
export const TICK = 250;
/** The last list begins before the horizon, and has been compared this long after it. */
const LAST_LIST = 3_000;
/** How often the reader reports how far it has drained. */
const HEARTBEAT = 900;
/** The causes of gaps within a session: a stall, or an event that nobody could read. */
const GAP_CAUSES = ['agent_stalled', 'malformed_event', 'agent_stalled', 'reader_overflow'] as const;
const EVENT_LOSSES: ReadonlySet<UnobservableCause> = new Set(['malformed_event', 'reader_overflow']);

/** A finding, when it was reported, and the event that it is about. */
export interface ReportedFinding {
  readonly finding: RecordOf<'finding'>;
  readonly reportedAt: number;
  /** Null where it is about no event, or about one that did not come. */
  readonly delivery: Delivery | null;
}

export interface ComparisonRun {
  readonly reported: readonly ReportedFinding[];
  /** When each resolved finding was resolved. */
  readonly resolved: ReadonlyMap<string, number>;
  readonly counters: Comparison['counters'];
  readonly pending: number;
  readonly kubeletLag: KubeletLagMinute;
  readonly emissions: readonly Emission[];
  /** Misses of a time of which everything had been said to be decided. */
  readonly afterDecided: readonly RecordOf<'finding'>[];
  /** When less was said to be decided than before. */
  readonly undecidedAt: readonly number[];
  /** Until when everything was said to be decided, in microseconds. */
  readonly decidedUntil: number;
  readonly streamGaps: readonly StreamGap[];
  /** Lets everything end and a quarter of an hour pass, and returns how many ids are still tracked then. */
  trackedAfterEnd(): number;
}

/** A gap of the stream within a session, or at its end. */
interface StreamGap {
  readonly cause: string;
  readonly from: Mono;
  readonly to: Mono;
  /** When the comparison learnt of it, in milliseconds. */
  readonly known: number;
  /** How many lists had been compared by then. */
  readonly listsBefore: number;
}

interface ScheduledStep {
  readonly at: number;
  readonly act: () => void;
}

/** A position on the monotonic clock. */
const at = (ms: number): Mono => mono(ms * 1000);

/**
 * `recognised`: an unchanged item is the same object in each list, as it is to an agent; otherwise it is a new one each time.
 */
export function runComparison(truth: GroundTruth, recognised = true): ComparisonRun {
  const { history } = truth;
  let minted = 0;
  const comparison = new Comparison({
    epochStart: mono(0),
    overdueAfter: millis(OVERDUE_AFTER),
    missedAfter: millis(MISSED_AFTER),
    lateAfter: millis(LATE_AFTER),
    kubeletLateAfter: millis(KUBELET_LATE_AFTER),
    profile: PROFILES[history.runtime],
    mintId: () => {
      minted += 1;
      return `00000000-0000-4000-8000-${String(minted).padStart(12, '0')}`;
    },
  });
  comparison.unsubscribed(mono(0), 'down');
  const runner = new HistoryRunner(truth, comparison, recognised);
  runner.run();
  return runner.outcome();
}

class HistoryRunner {
  readonly #truth: GroundTruth;
  readonly #comparison: Comparison;
  readonly #reported: ReportedFinding[] = [];
  readonly #emissions: Emission[] = [];
  readonly #resolved = new Map<string, number>();
  readonly #afterDecided: RecordOf<'finding'>[] = [];
  readonly #undecidedAt: number[] = [];
  #decidedUntil = 0;
  #now = 0;
  #compared = 0;
  #later: ScheduledStep[] = [];
  #queried = 0;
  #podsQueried = 0;
  readonly #recognised: boolean;
  readonly #streamGaps: StreamGap[] = [];
  readonly #sandboxes = new RecognisedItems();
  readonly #containers = new RecognisedItems();
  /** The last watermark that the reader reported; null before its first in this session. */
  #drained: number | null = null;

  constructor(truth: GroundTruth, comparison: Comparison, recognised: boolean) {
    this.#truth = truth;
    this.#comparison = comparison;
    this.#recognised = recognised;
  }

  run(): void {
    const { sessions, deliveries, lists, failures, history, kubelet } = this.#truth;
    const steps: ScheduledStep[] = [
      ...sessions.flatMap((session) => this.#sessionSteps(session)),
      ...deliveries.map((delivery) => this.#eventStep(delivery)),
      ...failures.map((ms) => ({ at: ms, act: () => this.#comparison.listFailed() })),
      ...lists.map((list) => ({ at: list.compared, act: () => this.#relisted(list) })),
      ...kubelet.sights.map(({ received, sight }) => ({
        at: received,
        act: () => this.#comparison.kubeletShowed(sight),
      })),
      ...history.streamGaps.map((ms) => ({
        at: ms,
        act: () => this.#streamGap(ms, ms, GAP_CAUSES[ms % GAP_CAUSES.length] ?? 'agent_stalled'),
      })),
      ...Array.from({ length: (HORIZON + LAST_LIST) / TICK }, (_, n) => this.#tickStep(n * TICK)),
      ...Array.from({ length: HORIZON / HEARTBEAT }, (_, n) => this.#heartbeatStep(n * HEARTBEAT)),
    ];
    for (const step of steps.sort((a, b) => a.at - b.at)) {
      this.#now = step.at;
      step.act();
      this.#collect(step);
    }
  }

  outcome(): ComparisonRun {
    return {
      reported: this.#reported,
      resolved: this.#resolved,
      // A copy: more may happen to the comparison.
      counters: { ...this.#comparison.counters },
      pending: this.#comparison.pending,
      kubeletLag: this.#comparison.takeKubeletLag() ?? { starts: [], stops: [] },
      emissions: this.#emissions,
      afterDecided: this.#afterDecided,
      undecidedAt: this.#undecidedAt,
      decidedUntil: this.#decidedUntil,
      streamGaps: this.#streamGaps,
      trackedAfterEnd: () => this.#trackedAfterEnd(),
    };
  }

  #trackedAfterEnd(): number {
    const none = (start: number): HistoryListCall => ({ start, end: start + 1, shown: new Map() });
    for (const ms of [HORIZON, HORIZON + 20_000]) {
      const both = { sandboxes: none(ms), containers: none(ms + 1) };
      this.#relisted({ ...both, whole: true, compared: ms + 2, afterFailure: false });
    }
    const passed = [HORIZON + 21_000, HORIZON + MISSED_AFTER + 60_000, HORIZON + 20 * 60_000];
    for (const ms of passed) {
      for (const { number } of this.#truth.sessions) this.#comparison.drained(number, at(ms));
      this.#comparison.tick(at(ms), wallAt(this.#truth.history, ms) * 1000);
    }
    this.#comparison.take();
    return this.#comparison.tracked;
  }

  readonly #wallNs = (ms: number): bigint => BigInt(wallAt(this.#truth.history, ms)) * 1_000_000n;

  #sessionSteps({ number, opened, closed }: HistorySession): ScheduledStep[] {
    const { pipe } = this.#truth.history;
    const open = () => {
      this.#drained = null;
      this.#comparison.subscribed(number, at(opened), this.#wallNs(opened) + 1_000_000n);
    };
    const close = () => {
      const from = at(this.#drained ?? opened);
      this.#streamGaps.push({ from, to: at(closed), cause: 'broken', ...this.#moment() });
      this.#comparison.unsubscribed(at(closed), 'down');
    };
    return [
      { at: opened + pipe, act: open },
      { at: closed + pipe, act: close },
    ].filter((step) => step.at < HORIZON + pipe);
  }

  #eventStep(delivery: Delivery): ScheduledStep {
    const { session, received, of } = delivery;
    const { container, type, built, digest } = of;
    // A container that was removed has no status; a sandbox is asked while it is still listed.
    const there = shownAt(container, built) !== null && !(type === 'DELETED' && !container.isSandbox);
    const act = () => {
      this.#watchReader(received);
      this.#comparison.received({
        session,
        received: at(received),
        id: container.id,
        type: EVENT_TYPES.indexOf(type),
        createdNs: this.#wallNs(built),
        hasSandboxStatus: !digest,
        object: digest ? null : container.object,
        times: digest || !there ? null : this.#ownTimes(of),
        others: digest ? [] : this.#othersIn(delivery),
      });
    };
    return { at: handedOverAt(this.#truth, delivery), act };
  }

  #ownTimes(of: Announcement): ExactTimes {
    const times = timesAt(of.container, of.built, this.#wallNs);
    return isShownRunning(this.#truth.history, of) ? { ...times, finishedNs: 0n } : times;
  }

  /** The statuses of other ids of its sandbox, as they were when the event was built; one in three events has none. */
  #othersIn({ of }: Delivery): ShownStatus[] {
    const { containers, history } = this.#truth;
    if ((history.salt + of.built) % 3 === 0) return [];
    return containers.flatMap((container) => {
      const other =
        container.object.sandbox === of.container.object.sandbox && container.id !== of.container.id;
      const state = other ? shownAt(container, of.built) : null;
      return state === null
        ? []
        : [{ id: container.id, state, times: timesAt(container, of.built, this.#wallNs) }];
    });
  }

  #relisted({ sandboxes, containers, whole }: HistoryRelist): void {
    this.#compared += 1;
    const objects = new Map(this.#truth.containers.map(({ id, object }) => [id, object]));
    const answer = (known: RecognisedItems, { start, end, shown }: HistoryListCall): ListAnswer => {
      const items = [...shown].flatMap(([id, state]) => {
        const object = objects.get(id);
        return object === undefined ? [] : [{ object, state }];
      });
      const read = this.#recognised ? known : new RecognisedItems();
      return { start: at(start), end: at(end), whole, items: read.of(items) };
    };
    this.#comparison.relisted({
      sandboxes: answer(this.#sandboxes, sandboxes),
      containers: answer(this.#containers, containers),
    });
  }

  #tickStep(now: number): ScheduledStep {
    const act = () => {
      for (const step of this.#later.filter((each) => each.at <= now)) step.act();
      this.#later = this.#later.filter((each) => each.at > now);
      this.#comparison.tick(at(now), wallAt(this.#truth.history, now) * 1000);
    };
    return { at: now, act };
  }

  #heartbeatStep(now: number): ScheduledStep {
    return { at: now, act: () => this.#drain(now) };
  }

  /** The reader's watermark comes through the same pipe as its events, and not while the reader is stalled. */
  #drain(now: number): void {
    const { history, sessions } = this.#truth;
    const drained = now - history.pipe;
    const session = sessions.find(({ opened, closed }) => drained >= opened && drained < closed);
    const stalled = history.readerStalls.some(
      (stall) => drained >= stall.at && drained < stall.at + stall.for,
    );
    if (session === undefined || stalled) return;
    this.#watchReader(drained - 1);
    this.#drained = drained - 1;
    this.#comparison.drained(session.number, at(drained - 1));
  }

  /** Events after a stall of the reader may be late because of it. */
  #watchReader(ms: number): void {
    const stalled = this.#drained !== null && ms - this.#drained > HEARTBEAT + OVERDUE_AFTER / 2;
    if (!stalled) return;
    this.#streamGap(this.#drained ?? ms, ms, 'reader_stalled');
    this.#drained = ms;
  }

  #streamGap(from: number, to: number, cause: UnobservableCause): void {
    if (EVENT_LOSSES.has(cause)) this.#comparison.eventsLost(at(to), cause);
    else this.#comparison.streamGap(at(to), cause);
    this.#streamGaps.push({ from: at(from), to: at(to), cause, ...this.#moment() });
  }

  #moment(): Pick<StreamGap, 'known' | 'listsBefore'> {
    return { known: this.#now, listsBefore: this.#compared };
  }

  #collect({ at: reportedAt }: ScheduledStep): void {
    const { emissions, queries, podQueries } = this.#comparison.take();
    for (const emission of emissions) {
      const { record } = emission;
      this.#emissions.push(emission);
      if (record.type === 'finding' && this.#isAfterDecided(record)) this.#afterDecided.push(record);
      if (record.type === 'finding')
        this.#reported.push({ finding: record, reportedAt, delivery: this.#deliveryOf(record) });
      if (record.type === 'finding_resolved') this.#resolved.set(record.findingId, reportedAt);
    }
    for (const { id } of queries) this.#answer(id, reportedAt);
    for (const podUid of podQueries) this.#answerPod(podUid, reportedAt);
    const { decidedUntil } = this.#comparison;
    if (decidedUntil < this.#decidedUntil) this.#undecidedAt.push(reportedAt);
    this.#decidedUntil = Math.max(this.#decidedUntil, decidedUntil);
  }

  #isAfterDecided({ kind, containerId, eventType, proof }: RecordOf<'finding'>): boolean {
    if (kind !== 'missed' || eventType === null) return false;
    // Lists that show what is not so mislead the agent about when something happened.
    if (this.#truth.history.wrongViews.length > 0) return false;
    const container = this.#truth.containers.find(({ id }) => id === containerId);
    if (container === undefined) return false;
    // As long as lists show a sandbox only as ended, they do not tell whether it has started.
    if (isListedEarly(container) && !this.#wasListedRunning(container)) return false;
    const happened = container.at[eventType];
    if (happened === null) return false;
    // Nobody can foresee what an event of its pod shows that the runtime held back, or what one of another container does.
    const isSurprise =
      this.#isShownLate(container, happened) || / in the \S+ of /.test(String(proof['evidence']));
    return !isSurprise && at(happened) < this.#decidedUntil;
  }

  #wasListedRunning({ id }: HistoryContainer): boolean {
    return this.#truth.lists
      .slice(0, this.#compared)
      .some(({ sandboxes }) => sandboxes.shown.get(id) === 'running');
  }

  /** Whether the runtime held an event of the pod back, for longer than a heartbeat or until after the list by which this was decided. */
  #isShownLate({ object: { sandbox } }: HistoryContainer, happened: number): boolean {
    const decides = this.#truth.lists.find(
      ({ whole, sandboxes, containers }) => whole && Math.min(sandboxes.start, containers.start) > happened,
    );
    const listed = Math.max(decides?.sandboxes.end ?? Number.POSITIVE_INFINITY, decides?.containers.end ?? 0);
    return this.#truth.deliveries.some((each) => {
      const since = each.of.happened ?? each.of.built;
      const isHeldBack = each.received - since > HEARTBEAT || (since <= listed && each.of.sent > listed);
      return (
        isHeldBack &&
        each.of.container.object.sandbox === sandbox &&
        handedOverAt(this.#truth, each) <= this.#now
      );
    });
  }

  /** The delivery that a finding is about. */
  #deliveryOf({ containerId, eventType, proof }: RecordOf<'finding'>): Delivery | null {
    const received = Number(proof['received']) / 1000;
    const found = this.#truth.deliveries.findLast(
      ({ of, received: at }) => of.container.id === containerId && of.type === eventType && at === received,
    );
    return found ?? null;
  }

  /** The kubelet is asked at once, and answers with the status that it has halfway to the answer. */
  #answerPod(podUid: string, now: number): void {
    const { history, kubelet } = this.#truth;
    const { answers } = history.kubelet;
    const { lag, lost } = answers[this.#podsQueried % answers.length] ?? { lag: 0, lost: true };
    this.#podsQueried += 1;
    const moment = now + Math.floor(lag / 2);
    const failed = lost || isDown(history, kubelet.watches, now) || isDown(history, kubelet.watches, moment);
    const pod = failed ? null : statusAt(kubelet, podUid, moment);
    const call = { podUid, asked: at(now), at: at(now + lag) };
    const answer =
      pod === null
        ? ({ ...call, found: false, reason: failed ? 'UNAVAILABLE' : 'NOT_FOUND' } as const)
        : ({ ...call, found: true, pod } as const);
    this.#later.push({ at: now + lag, act: () => this.#comparison.kubeletAnswered(answer) });
  }

  #answer(id: string, now: number): void {
    const { statusAnswers } = this.#truth.history;
    const nothing: History['statusAnswers'][number] = { lag: 0, lost: true };
    const { lag, lost } = statusAnswers[this.#queried % statusAnswers.length] ?? nothing;
    this.#queried += 1;
    const container = this.#truth.containers.find((each) => each.id === id);
    const moment = now + lag;
    if (container === undefined) return;
    const shown = lost ? null : shownAt(container, moment);
    const state = shown === 'running' ? 'running' : 'exited';
    const answer =
      shown === null
        ? ({ id, asked: at(now), at: at(moment), found: false, reason: 'NOT_FOUND' } as const)
        : ({
            id,
            asked: at(now),
            at: at(moment),
            found: true,
            times: timesAt(container, moment, this.#wallNs),
            sandbox: container.isSandbox ? state : null,
          } as const);
    this.#later.push({ at: moment, act: () => this.#comparison.answered(answer) });
  }
}

/** When the comparison receives a delivery. */
export const handedOverAt = ({ history }: GroundTruth, { received }: Delivery): number =>
  received + history.pipe;
