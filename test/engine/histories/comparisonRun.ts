/*
 * Plays a history to a comparison, as an agent would: in the order in which an agent learns of things. For tests.
 */

import { Comparison } from '../../../src/agent/compare/comparison.ts';
import type { Emission } from '../../../src/agent/compare/emitter.ts';
import type { ListAnswer, ShownStatus } from '../../../src/protocol/observation.ts';
import { EVENT_TYPES, type RecordOf } from '../../../src/protocol/record.ts';
import { type Mono, millis, mono } from '../../../src/protocol/units.ts';
import { CONTAINERD, CRIO, RecognisedItems } from '../timeline.ts';
import type { Delivery, HistorySession } from './announcements.ts';
import { shownAt, timesAt } from './containers.ts';
import { type GroundTruth, wallAt } from './groundTruth.ts';
import { type History, HORIZON, LATE_AFTER, MISSED_AFTER, OVERDUE_AFTER } from './history.ts';
import type { HistoryRelist, ListCall } from './relists.ts';

const TICK = 250;
/** The reader says this often how far it has drained. */
const HEARTBEAT = 900;

/** A finding, and when and on what it was told. */
export interface ReportedFinding {
  readonly finding: RecordOf<'finding'>;
  readonly turn: number;
  /** The event that it is about; null where it is about none, or about its absence. */
  readonly delivery: Delivery | null;
}

export interface ComparisonRun {
  readonly reported: readonly ReportedFinding[];
  /** When each finding that was taken back was. */
  readonly resolved: ReadonlyMap<string, number>;
  readonly counters: Comparison['counters'];
  readonly pending: number;
  readonly emissions: readonly Emission[];
}

export interface Playing {
  /** Lets everything end and a quarter of an hour pass, and says how much is remembered then. */
  forgotten(): number;
}

interface Turn {
  readonly at: number;
  readonly act: () => void;
}

/** A position on the monotonic clock. */
const at = (ms: number): Mono => mono(ms * 1000);

/** `recognised`: what is shown as it was is the same, as it is to an agent; otherwise it is another item in each list. */
export function runComparison(truth: GroundTruth, recognised = true): ComparisonRun & Playing {
  const { history } = truth;
  let minted = 0;
  const comparison = new Comparison({
    epochStart: mono(0),
    overdueAfter: millis(OVERDUE_AFTER),
    missedAfter: millis(MISSED_AFTER),
    lateAfter: millis(LATE_AFTER),
    profile: history.crio ? CRIO : CONTAINERD,
    mintId: () => {
      minted += 1;
      return `00000000-0000-4000-8000-${String(minted).padStart(12, '0')}`;
    },
  });
  comparison.unsubscribed('down');
  const player = new HistoryRunner(truth, comparison, recognised);
  player.run();
  return { ...player.outcome(), forgotten: () => player.forget() };
}

class HistoryRunner {
  readonly #truth: GroundTruth;
  readonly #comparison: Comparison;
  readonly #reported: ReportedFinding[] = [];
  readonly #emissions: Emission[] = [];
  readonly #resolved = new Map<string, number>();
  #later: Turn[] = [];
  #asked = 0;
  readonly #recognised: boolean;
  readonly #sandboxes = new RecognisedItems();
  readonly #containers = new RecognisedItems();
  /** Up to here the reader has drained, as far as it has said; null before it spoke in this session. */
  #drained: number | null = null;

  constructor(truth: GroundTruth, comparison: Comparison, recognised: boolean) {
    this.#truth = truth;
    this.#comparison = comparison;
    this.#recognised = recognised;
  }

  run(): void {
    const { sessions, deliveries, lists, failures, history } = this.#truth;
    const turns: Turn[] = [
      ...sessions.flatMap((session) => this.#sessionTurns(session)),
      ...deliveries.map((delivery) => this.#eventTurn(delivery)),
      ...failures.map((ms) => ({ at: ms, act: () => this.#comparison.listFailed() })),
      ...lists.map((list) => ({ at: list.compared, act: () => this.#relisted(list) })),
      ...history.streamGaps.map((ms) => ({
        at: ms,
        act: () => this.#comparison.streamGap(at(ms), 'agent_stalled'),
      })),
      ...Array.from({ length: HORIZON / TICK }, (_, n) => this.#tickTurn(n * TICK)),
      ...Array.from({ length: HORIZON / HEARTBEAT }, (_, n) => this.#beatTurn(n * HEARTBEAT)),
    ];
    for (const turn of turns.sort((a, b) => a.at - b.at)) {
      turn.act();
      this.#collect(turn);
    }
  }

  outcome(): ComparisonRun {
    return {
      reported: this.#reported,
      resolved: this.#resolved,
      // As it is now: more may happen to the comparison.
      counters: { ...this.#comparison.counters },
      pending: this.#comparison.pending,
      emissions: this.#emissions,
    };
  }

  forget(): number {
    const none = (start: number): ListCall => ({ start, end: start + 1, shown: new Map() });
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

  #sessionTurns({ number, opened, closed }: HistorySession): Turn[] {
    const { pipe } = this.#truth.history;
    const open = () => {
      this.#drained = null;
      this.#comparison.subscribed(number, at(opened), this.#wallNs(opened) + 1_000_000n);
    };
    return [
      { at: opened + pipe, act: open },
      { at: closed + pipe, act: () => this.#comparison.unsubscribed('down') },
    ].filter((turn) => turn.at < HORIZON);
  }

  #eventTurn(delivery: Delivery): Turn {
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
        times: digest || !there ? null : timesAt(container, built, this.#wallNs),
        others: digest ? [] : this.#othersIn(delivery),
      });
    };
    return { at: handedOverAt(this.#truth, delivery), act };
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
    const objects = new Map(this.#truth.containers.map(({ id, object }) => [id, object]));
    const answer = (known: RecognisedItems, { start, end, shown }: ListCall): ListAnswer => {
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

  #tickTurn(now: number): Turn {
    const act = () => {
      for (const turn of this.#later.filter((each) => each.at <= now)) turn.act();
      this.#later = this.#later.filter((each) => each.at > now);
      this.#comparison.tick(at(now), wallAt(this.#truth.history, now) * 1000);
    };
    return { at: now, act };
  }

  #beatTurn(now: number): Turn {
    return { at: now, act: () => this.#drain(now) };
  }

  /** The reader's word comes through the same pipe as its events, and it says nothing while it stands still. */
  #drain(now: number): void {
    const { history, sessions } = this.#truth;
    const drained = now - history.pipe;
    const session = sessions.find(({ opened, closed }) => drained >= opened && drained < closed);
    const stands = history.readerStalls.some(
      (readerStalls) => drained >= readerStalls.at && drained < readerStalls.at + readerStalls.for,
    );
    if (session === undefined || stands) return;
    this.#watchReader(drained - 1);
    this.#drained = drained - 1;
    this.#comparison.drained(session.number, at(drained - 1));
  }

  /** What comes after the reader stood still may have come late through it. */
  #watchReader(ms: number): void {
    const paused = this.#drained !== null && ms - this.#drained > HEARTBEAT + OVERDUE_AFTER / 2;
    if (!paused) return;
    this.#comparison.streamGap(at(ms), 'reader_stalled');
    this.#drained = ms;
  }

  #collect({ at: turn }: Turn): void {
    const { emissions, queries } = this.#comparison.take();
    for (const emission of emissions) {
      const { record } = emission;
      this.#emissions.push(emission);
      if (record.type === 'finding')
        this.#reported.push({ finding: record, turn, delivery: this.#deliveryOf(record) });
      if (record.type === 'finding_resolved') this.#resolved.set(record.findingId, turn);
    }
    for (const { id } of queries) this.#answer(id, turn);
  }

  /** The delivery that a finding says it is about. */
  #deliveryOf({ containerId: id, eventType: type, proof }: RecordOf<'finding'>): Delivery | null {
    const received = Number(proof['received']) / 1000;
    const found = this.#truth.deliveries.findLast(
      (each) => each.of.container.id === id && each.of.type === type && each.received === received,
    );
    return found ?? null;
  }

  #answer(id: string, now: number): void {
    const { answers } = this.#truth.history;
    const nothing: History['answers'][number] = { lag: 0, lost: true };
    const { lag, lost } = answers[this.#asked % answers.length] ?? nothing;
    this.#asked += 1;
    const container = this.#truth.containers.find((each) => each.id === id);
    const moment = now + lag;
    if (container === undefined) return;
    const shown = lost ? null : shownAt(container, moment);
    const state = shown === 'running' ? 'running' : 'exited';
    const answer =
      shown === null
        ? ({ id, at: at(moment), found: false, reason: 'NOT_FOUND' } as const)
        : ({
            id,
            at: at(moment),
            found: true,
            times: timesAt(container, moment, this.#wallNs),
            sandbox: container.isSandbox ? state : null,
          } as const);
    this.#later.push({ at: moment, act: () => this.#comparison.answered(answer) });
  }
}

/** When the comparison is told of a delivery. */
export const handedOverAt = ({ history }: GroundTruth, { received }: Delivery): number =>
  received + history.pipe;
