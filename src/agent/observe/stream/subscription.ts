/*
 * The subscription to the runtime's event stream.
 *
 *   refused ◄── policy ── identifying ──► kubelet first ──► opening ──► open ──► ended ──► backoff ──► identifying
 *      │ (asked again every 10 min, and    (gate on, after      a reader process for each round
 *      │  when the kubelet is heard of)     a lost stream)
 *      └◄──────────────── policy: the kubelet no longer proves that it does not listen ──────┘
 *
 * Before and after subscribing the reader asks Version on the session's own connection: a runtime that was replaced in
 * between is left at once. An end with OK within a second and without a message, twice, means that the runtime has events
 * switched off: `Disabled`. UNIMPLEMENTED means `Unsupported`. Both are asked again every 10 minutes. Everything else is
 * `Interrupted` and tried again at the pace of policy.ts.
 */

import { clean, digestEvent, readEvent } from '../../../cri/items.ts';
import { lacksStatus, profileOf, type RuntimeProfile, type RuntimeVersion } from '../../../cri/profiles.ts';
import { monoNow, wallNow } from '../../../platform/clock.ts';
import type { ReceivedEvent } from '../../../protocol/observation.ts';
import type { StreamState } from '../../../protocol/record.ts';
import { between, type Mono, millis, shift } from '../../../protocol/units.ts';
import { type KubeletSide, NO_KUBELET } from '../kubelet/scraper.ts';
import type { Frame } from './frames.ts';
import { type ReaderProcess, startReader } from './readerProcess.ts';
import {
  type Decision,
  decide,
  KUBELET_FIRST,
  kubeletCame,
  letsKubeletFirst,
  NO_MEMORY,
  Pace,
  type PaceMemory,
  type Refusal,
  type StreamSetting,
} from './subscribePolicy.ts';

const ASK_AGAIN_MS = 600_000;
/** What is proven of the kubelet also ends by growing old. */
const REVIEW_MS = 1_000;
const KUBELET_POLL_MS = 250;
/** A session that lived this long is taken as proof that the runtime is well. */
const HEALTHY = millis(60_000);
const AT_ONCE = millis(1_000);
/** What a hostile runtime or a broken reader may say of its end. */
const LONGEST_MESSAGE = 600;
/** How a session can end, apart from the codes of its call. */
export const SESSION_END_CODES = ['RUNTIME_REPLACED', 'POLICY', 'READER_ENDED', 'AGENT_STOPPED'] as const;
const STOPPED = { code: 'AGENT_STOPPED', message: 'the agent left' } as const;

/** What the subscription says of itself; `Arming`, `Active` and `Silent` come from the evidence. */
export type SubscriptionState = Exclude<StreamState, 'Arming' | 'Active' | 'Silent'> | 'Connected';

export interface SubscriptionEvents {
  /** The runtime behind the session, before anything is asked of its stream. */
  identified(runtime: RuntimeVersion, profile: RuntimeProfile): void;
  opened(session: number, at: Mono, wallNs: bigint): void;
  event(event: ReceivedEvent): void;
  drained(session: number, at: Mono): void;
  /** The reader had to drop events without a trace. */
  overflow(session: number, at: Mono, events: number): void;
  /** The event that follows lacks a status that this runtime puts into it when all is well. */
  statusLacked(): void;
  /** Bytes came that are no event: one that is due may be among them. */
  malformed(session: number, at: Mono): void;
  ended(session: number, at: Mono, code: string, message: string): void;
  state(state: SubscriptionState, reason: string, error: string): void;
}

export interface SubscriptionOptions {
  readonly kubelet?: KubeletSide;
  readonly memory?: PaceMemory;
}

export class Subscription {
  readonly #socket: string;
  readonly #setting: StreamSetting;
  readonly #events: SubscriptionEvents;
  readonly #kubelet: KubeletSide;
  readonly #pace: Pace;
  #reader: ReaderProcess | null = null;
  #runtime: RuntimeVersion | null = null;
  #session = 0;
  #opened: Mono | null = null;
  #messages = 0;
  #emptyEnds = 0;
  #profile: RuntimeProfile | null = null;
  /** What the policy last said to the present session; null before it was asked. */
  #decision: Decision | null = null;
  #lasted = false;
  /** A stream was lost and not opened again: the kubelet's may have been lost with it. */
  #lost: { readonly successes: number | undefined } | null = null;
  #notBefore: Mono = monoNow();
  #reviewer: NodeJS.Timeout | undefined;
  #waiting: NodeJS.Timeout | undefined;
  #end: { readonly code: string; readonly message: string } | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** Nothing is tried at present but to ask again, much later. */
  #refused = false;
  #stopped = false;
  #finished: (() => void) | undefined;

  constructor(
    socket: string,
    setting: StreamSetting,
    events: SubscriptionEvents,
    { kubelet = NO_KUBELET, memory = NO_MEMORY }: SubscriptionOptions = {},
  ) {
    this.#socket = socket;
    this.#setting = setting;
    this.#events = events;
    this.#kubelet = kubelet;
    this.#pace = new Pace(memory);
  }

  start(): void {
    if (this.#setting === 'never') {
      this.#events.state('Off', 'switched off by --subscribe never', '');
      return;
    }
    if (this.#setting === 'always') {
      this.#kubelet.onChange(() => this.#review());
      this.#reviewer = setInterval(() => this.#review(), REVIEW_MS);
    }
    void this.#begin();
  }

  async #begin(): Promise<void> {
    const wait = await this.#pace.recall(wallNow());
    if (wait === 0) {
      this.#connect();
      return;
    }
    this.#events.state('Interrupted', 'waits, because the last subscription did not last', '');
    this.#again(wait / 1000);
  }

  /** Ends the reader and waits until it is gone. */
  stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.#reviewer);
    clearInterval(this.#waiting);
    const reader = this.#reader;
    if (reader === null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#finished = resolve;
      reader.kill();
    });
  }

  /** Another runtime answers at the socket now: where the one before was refused, this one is asked at once. */
  replaced(): void {
    if (!this.#refused) return;
    this.#again(Math.max(0, between(monoNow(), this.#notBefore)) / 1000);
  }

  /** When the reader last gave a sign of life; null while none is needed. */
  lastSign(): Mono | null {
    return this.#reader?.lastSign() ?? null;
  }

  #connect(): void {
    if (this.#stopped) return;
    this.#refused = false;
    this.#runtime = null;
    this.#opened = null;
    this.#messages = 0;
    this.#decision = null;
    this.#lasted = false;
    this.#end = null;
    this.#reader = startReader(this.#socket, {
      frame: (frame) => this.#take(frame),
      gone: (why) => this.#gone(why),
    });
  }

  #take(frame: Frame): void {
    switch (frame.is) {
      case 'version':
        this.#identify({ name: frame.name, version: frame.version });
        break;
      case 'opened':
        this.#session += 1;
        this.#opened = frame.at;
        this.#lost = null;
        this.#events.opened(this.#session, frame.at, frame.wallNs);
        this.#events.state('Connected', this.#decision?.why ?? '', '');
        break;
      case 'event':
        this.#messages += 1;
        this.#decode(frame.bytes, frame.at);
        break;
      case 'digest':
        this.#messages += 1;
        this.#events.event(digestEvent(frame, this.#session, frame.at));
        break;
      case 'drained':
        this.#watchAge(frame.at);
        this.#events.drained(this.#session, frame.at);
        break;
      case 'overflow':
        this.#events.overflow(this.#session, frame.at, frame.events);
        break;
      case 'ended':
        this.#end = { code: frame.code, message: frame.message };
        break;
    }
  }

  #decode(bytes: Buffer, at: Mono): void {
    let event: ReceivedEvent | null;
    try {
      event = readEvent(bytes, this.#session, at);
    } catch {
      // Told and counted just below, like one without an id.
      event = null;
    }
    if (event === null) {
      this.#events.malformed(this.#session, at);
      return;
    }
    if (this.#profile !== null && lacksStatus(this.#profile, event)) this.#events.statusLacked();
    this.#events.event(event);
  }

  #identify(runtime: RuntimeVersion): void {
    const known = this.#runtime;
    if (known !== null) {
      if (known.name === runtime.name && known.version === runtime.version) return;
      const message = clean(`${known.version} became ${runtime.version}`, LONGEST_MESSAGE);
      this.#end = { code: 'RUNTIME_REPLACED', message };
      this.#reader?.kill();
      return;
    }
    this.#runtime = runtime;
    this.#profile = profileOf(runtime);
    this.#events.identified(runtime, this.#profile);
    const decision = this.#decide(this.#profile, false);
    if (!decision.subscribe) {
      this.#leave(decision);
      return;
    }
    this.#decision = decision;
    if (letsKubeletFirst(this.#lost !== null, this.#kubelet.gate(monoNow()))) this.#waitForKubelet();
    else this.#subscribe();
  }

  // The policy.

  /** `subscribed`: the question is whether to stay. */
  #decide(profile: RuntimeProfile, subscribed: boolean): Decision {
    return decide({
      setting: this.#setting,
      profile,
      gate: this.#kubelet.gate(monoNow()),
      sinceSubscribed: subscribed ? null : this.#pace.sinceSubscribed(wallNow()),
    });
  }

  /** Asks the policy again, and does at once what it says. */
  #review(): void {
    const profile = this.#profile;
    const known = this.#decision;
    if (this.#stopped || profile === null || known === null) return;
    const decision = this.#decide(profile, known.subscribe);
    if (known.subscribe) {
      if (known.whileGateOff && !decision.subscribe) this.#leave(decision);
    } else if (this.#reader === null) this.#reconsider(known, decision);
  }

  /** The runtime was refused; is it still? */
  #reconsider(known: Refusal, decision: Decision): void {
    if (decision.subscribe) {
      this.#decision = null;
      this.#again(Math.max(0, between(monoNow(), this.#notBefore)) / 1000);
    } else if (decision.state !== known.state || decision.why !== known.why) {
      this.#decision = decision;
      this.#events.state(decision.state, decision.why, '');
    }
  }

  /** Ends the session first: what it may cost is known later. */
  #leave(refusal: Refusal): void {
    this.#reader?.kill();
    this.#decision = refusal;
    this.#end = { code: 'POLICY', message: clean(refusal.why, LONGEST_MESSAGE) };
  }

  #waitForKubelet(): void {
    const before = this.#lost?.successes;
    const until = shift(monoNow(), KUBELET_FIRST);
    this.#events.state('Interrupted', 'lets the kubelet subscribe first', '');
    this.#kubelet.soon();
    this.#waiting = setInterval(() => {
      if (kubeletCame(before, this.#kubelet.successes()) || monoNow() >= until) this.#subscribe();
      else this.#kubelet.soon();
    }, KUBELET_POLL_MS);
  }

  #subscribe(): void {
    clearInterval(this.#waiting);
    this.#pace.subscribing(wallNow());
    this.#reader?.subscribe();
  }

  #watchAge(now: Mono): void {
    if (this.#lasted || this.#opened === null || between(this.#opened, now) <= HEALTHY) return;
    this.#lasted = true;
    this.#pace.lasted();
  }

  // The end.

  #gone(why: string | null): void {
    this.#reader = null;
    clearInterval(this.#waiting);
    const end = this.#stopped
      ? STOPPED
      : (this.#end ?? { code: 'READER_ENDED', message: clean(why ?? '', LONGEST_MESSAGE) });
    const now = monoNow();
    if (this.#opened !== null) {
      this.#lost = { successes: this.#kubelet.successes() };
      this.#events.ended(this.#session, now, end.code, end.message);
    }
    if (this.#stopped) this.#finished?.();
    else this.#next(end, now);
  }

  #next(end: { code: string; message: string }, now: Mono): void {
    const lived = this.#opened === null ? millis(0) : between(this.#opened, now);
    const empty = end.code === 'OK' && this.#messages === 0 && lived < AT_ONCE;
    this.#emptyEnds = empty ? this.#emptyEnds + 1 : 0;
    const error = end.message === '' ? end.code : `${end.code}: ${end.message}`;
    const refusal = this.#decision?.subscribe === false ? this.#decision : null;
    if (refusal !== null) {
      if (this.#opened !== null) this.#notBefore = shift(now, this.#pace.failed());
      this.#events.state(refusal.state, refusal.why, '');
      this.#askMuchLater();
    } else if (end.code === 'UNIMPLEMENTED') {
      this.#events.state('Unsupported', 'the runtime does not implement the event stream', error);
      this.#askMuchLater();
    } else if (this.#emptyEnds >= 2) {
      this.#events.state('Disabled', 'the runtime has its events switched off', error);
      this.#askMuchLater();
    } else {
      this.#events.state('Interrupted', 'the stream ended and is tried again', error);
      this.#again(this.#pace.failed() / 1000);
    }
  }

  #askMuchLater(): void {
    this.#refused = true;
    this.#again(ASK_AGAIN_MS);
  }

  #again(ms: number): void {
    clearTimeout(this.#timer);
    if (!this.#stopped) this.#timer = setTimeout(() => this.#connect(), ms);
  }
}
