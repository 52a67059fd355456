/*
 * Plays a history to a comparison, as an agent would: in the order in which an agent learns of things. For tests.
 */

import type { RecordOf } from '../../evidence/record.ts';
import { EVENT_TYPES } from '../../evidence/record.ts';
import { type Mono, millis, mono } from '../../evidence/units.ts';
import { Comparison } from './comparison.ts';
import {
  CONFIRM,
  type History,
  HORIZON,
  type List,
  type SentEvent,
  stateAt,
  type Truth,
  timesAt,
} from './histories.ts';
import type { Answer, ShownState } from './observation.ts';
import { CONTAINERD, CRIO, objectOf } from './timeline.ts';

const TICK = 250;
const WALL = 1_700_000_000_000;

export interface Played {
  /** Everything that was ever missed, and what was not taken back, as `<id> <type>`. */
  readonly accused: ReadonlySet<string>;
  readonly missed: ReadonlySet<string>;
  readonly findings: readonly RecordOf<'finding'>[];
  readonly figures: Comparison['figures'];
  readonly awaited: number;
}

interface Turn {
  readonly at: number;
  readonly act: () => void;
}

/** A position on the monotonic clock. */
const at = (ms: number): Mono => mono(ms * 1000);

export function play(truth: Truth): Played {
  const { history } = truth;
  let minted = 0;
  const comparison = new Comparison({
    epochStart: mono(0),
    grace: millis(2_000),
    confirm: millis(CONFIRM),
    lateLimit: millis(1_000),
    profile: history.crio ? CRIO : CONTAINERD,
    mintId: () => {
      minted += 1;
      return String(minted);
    },
  });
  comparison.unsubscribed('down');
  const played = new Player(truth, comparison);
  played.run();
  return played.outcome();
}

class Player {
  readonly #truth: Truth;
  readonly #comparison: Comparison;
  readonly #findings: RecordOf<'finding'>[] = [];
  readonly #resolved = new Set<string>();
  #later: Turn[] = [];
  #asked = 0;

  constructor(truth: Truth, comparison: Comparison) {
    this.#truth = truth;
    this.#comparison = comparison;
  }

  run(): void {
    const { sessions, events, lists, history } = this.#truth;
    const turns: Turn[] = [
      ...sessions.flatMap((session) => this.#sessionTurns(session)),
      ...events.flatMap((event) => this.#eventTurns(event)),
      ...lists.map((list) => ({ at: list.compared, act: () => this.#relisted(list) })),
      ...history.holes.map((ms) => ({ at: ms, act: () => this.#comparison.hole(at(ms), 'agent_paused') })),
      ...Array.from({ length: HORIZON / TICK }, (_, n) => this.#tickTurn(n * TICK)),
    ];
    for (const turn of turns.sort((a, b) => a.at - b.at)) {
      turn.act();
      this.#collect(turn.at);
    }
  }

  outcome(): Played {
    const missed = this.#findings.filter(({ verdict }) => verdict === 'missed');
    const names = (findings: readonly RecordOf<'finding'>[]) =>
      new Set(findings.map(({ id, type }) => `${id} ${type}`));
    return {
      accused: names(missed),
      missed: names(missed.filter(({ finding }) => !this.#resolved.has(finding))),
      findings: this.#findings,
      figures: this.#comparison.figures,
      awaited: this.#comparison.awaited,
    };
  }

  /** The wall clock in milliseconds. */
  #wall(ms: number): number {
    return this.#truth.history.steps.reduce(
      (wall, step) => (step.at <= ms ? wall + step.by : wall),
      WALL + ms,
    );
  }

  readonly #wallNs = (ms: number): bigint => BigInt(this.#wall(ms)) * 1_000_000n;

  #sessionTurns({ number, opened, closed }: Truth['sessions'][number]): Turn[] {
    const { pipe } = this.#truth.history;
    const open = () => this.#comparison.subscribed(number, at(opened), this.#wallNs(opened) + 1_000_000n);
    return [
      { at: opened + pipe, act: open },
      { at: closed + pipe, act: () => this.#comparison.unsubscribed('down') },
    ].filter((turn) => turn.at < HORIZON);
  }

  #eventTurns(event: SentEvent): Turn[] {
    const { received, subject, session, nameless, built, type } = event;
    if (received === null || received >= HORIZON) return [];
    // A container that was removed has no status; a sandbox is asked while it is still listed.
    const there = stateAt(subject, built) !== null && !(type === 'DELETED' && !subject.isSandbox);
    const act = () =>
      this.#comparison.received({
        session,
        received: at(received),
        id: subject.id,
        type: EVENT_TYPES.indexOf(type),
        createdNs: this.#wallNs(built),
        hasSandboxStatus: !nameless,
        object: nameless ? null : objectOf(subject.id),
        times: nameless || !there ? null : timesAt(subject, built, this.#wallNs),
        others: [],
      });
    return [{ at: received + this.#truth.history.pipe, act }];
  }

  #relisted({ sandboxes, containers, whole }: List): void {
    const answer = ({ start, end, shown }: List['sandboxes']): Answer => {
      const item = ([id, state]: [string, ShownState]) => [id, { object: objectOf(id), state }] as const;
      return { start: at(start), end: at(end), whole, items: new Map([...shown].map(item)) };
    };
    this.#comparison.relisted({ sandboxes: answer(sandboxes), containers: answer(containers) });
  }

  #tickTurn(now: number): Turn {
    const act = () => {
      for (const turn of this.#later.filter((each) => each.at <= now)) turn.act();
      this.#later = this.#later.filter((each) => each.at > now);
      this.#drain(now);
      this.#comparison.tick(at(now), this.#wall(now) * 1000);
    };
    return { at: now, act };
  }

  /** The reader's word comes through the same pipe as its events, and it says nothing while it stands still. */
  #drain(now: number): void {
    const { history, sessions } = this.#truth;
    const drained = now - history.pipe;
    const session = sessions.find(({ opened, closed }) => drained >= opened && drained < closed);
    const stands = history.stuck.some((stuck) => drained >= stuck.at && drained < stuck.at + stuck.for);
    if (session !== undefined && !stands) this.#comparison.drained(session.number, at(drained - 1));
  }

  #collect(now: number): void {
    const { emissions, asks } = this.#comparison.take();
    for (const { record } of emissions) {
      if (record.kind === 'finding') this.#findings.push(record);
      if (record.kind === 'resolution') this.#resolved.add(record.finding);
    }
    for (const { id } of asks) this.#answer(id, now);
  }

  #answer(id: string, now: number): void {
    const { answers } = this.#truth.history;
    const { lag, lost }: History['answers'][number] = answers[this.#asked % answers.length] ?? {
      lag: 0,
      lost: true,
    };
    this.#asked += 1;
    const subject = this.#truth.subjects.find((each) => each.id === id);
    const moment = now + lag;
    if (subject === undefined) return;
    const gone = lost || stateAt(subject, moment) === null;
    const answer = gone
      ? ({ id, at: at(moment), found: false, reason: 'NOT_FOUND' } as const)
      : ({ id, at: at(moment), found: true, times: timesAt(subject, moment, this.#wallNs) } as const);
    this.#later.push({ at: moment, act: () => this.#comparison.answered(answer) });
  }
}
