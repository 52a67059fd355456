/*
 * The subscription to the runtime's event stream. SPEC.md has the table of its transitions.
 *
 *   refused ◄── policy ── identifying ──► kubelet first ──► opening ──► open ──► ended ──► backoff ──► identifying
 *      │ (retried every 10 min, and        (gate on, not given up,  one reader process per attempt
 *      │  after each scrape of the kubelet)  after a lost stream)
 *      └◄──────────────── policy: the kubelet no longer proves that it does not subscribe ───┘
 *
 * Before and after subscribing the reader calls Version on the session's own connection: a runtime that was replaced in between is left
 * at once. A stream that ends twice with OK, within a second and without a message, means that the runtime has events switched off:
 * `Disabled`. UNIMPLEMENTED means `Unsupported`. Both are retried every 10 minutes. Any other end is `Interrupted` and retried at the
 * pace of subscribePolicy.ts.
 */

import { digestEvent, readEvent } from '../../../cri/items.ts';
import { lacksStatus, profileOf, type RuntimeProfile, type RuntimeVersion } from '../../../cri/profiles.ts';
import { monoNow, wallNow } from '../../../platform/clock.ts';
import type { ReceivedEvent } from '../../../protocol/observation.ts';
import type { StreamState } from '../../../protocol/record.ts';
import { cleanText } from '../../../protocol/text.ts';
import { between, type Micros, type Mono, millis, shift } from '../../../protocol/units.ts';
import type { ProvenStreamState } from '../../compare/comparison.ts';
import { type KubeletView, NO_KUBELET } from '../kubelet/scraper.ts';
import type { Frame } from './frames.ts';
import { type ReaderProcess, type StartReader, startReaderProcess } from './readerProcess.ts';
import {
  decide,
  KUBELET_WAIT,
  kubeletSubscribed,
  mustWaitForKubelet,
  NO_PACE_STORE,
  type PaceStore,
  type SubscribeDecision,
  type SubscribeRefusal,
  type SubscribeSetting,
  SubscriptionPace,
} from './subscribePolicy.ts';

const REFUSED_RETRY_MS = 600_000;
/** How often the policy is checked: what is proven about the kubelet also expires. */
const REVIEW_MS = 1_000;
const KUBELET_POLL_MS = 250;
/** A session that lasted this long resets the backoff. */
const HEALTHY_AFTER = millis(60_000);
const ENDED_AT_ONCE = millis(1_000);
/** Bounds what a hostile runtime or a broken reader can send. */
const MAX_MESSAGE_LENGTH = 600;
/** How a session can end, apart from the codes of its call. */
export const SESSION_END_CODES = ['RUNTIME_REPLACED', 'POLICY', 'READER_ENDED', 'AGENT_STOPPED'] as const;
const STOPPED = { code: 'AGENT_STOPPED', message: 'the agent stopped' } as const;

/** The subscription's own state; `Arming`, `Active`, `Silent` and `Starved` come from the evidence. */
export type SubscriptionState = Exclude<StreamState, ProvenStreamState> | 'Connected';

export interface SubscriptionEvents {
  /** Called before subscribing. */
  identified(runtime: RuntimeVersion, profile: RuntimeProfile): void;
  opened(session: number, at: Mono, wallNs: bigint): void;
  event(event: ReceivedEvent): void;
  drained(session: number, at: Mono): void;
  /** The reader dropped events without keeping even a digest. */
  overflow(session: number, at: Mono, events: number): void;
  /** The next event lacks a status that this runtime normally includes. */
  eventWithoutStatus(): void;
  /** A message could not be decoded: an event that is due may be lost. */
  malformed(session: number, at: Mono): void;
  ended(session: number, at: Mono, code: string, message: string): void;
  state(state: SubscriptionState, reason: string, error: string): void;
}

export interface SubscriptionOptions {
  readonly kubelet?: KubeletView;
  readonly paceStore?: PaceStore;
  /** How long it waits for the kubelet's subscription where that has to come first. */
  readonly kubeletWait?: Micros;
  /** Default: a process. */
  readonly startReader?: StartReader | undefined;
}

export class Subscription {
  readonly #socket: string;
  readonly #setting: SubscribeSetting;
  readonly #events: SubscriptionEvents;
  readonly #kubelet: KubeletView;
  readonly #kubeletWait: Micros;
  readonly #startReader: StartReader;
  readonly #pace: SubscriptionPace;
  #reader: ReaderProcess | null = null;
  #runtime: RuntimeVersion | null = null;
  #session = 0;
  #opened: Mono | null = null;
  #messages = 0;
  #emptyEnds = 0;
  #profile: RuntimeProfile | null = null;
  /** The policy's last decision for this session; null before the first. */
  #decision: SubscribeDecision | null = null;
  #lasted = false;
  /** A stream was lost and is not open again: the kubelet's may have been lost with it. */
  #lost: { readonly successes: number | undefined } | null = null;
  #notBefore: Mono = monoNow();
  #reviewTimer: NodeJS.Timeout | undefined;
  #kubeletTimer: NodeJS.Timeout | undefined;
  #end: { readonly code: string; readonly message: string } | null = null;
  #retryTimer: NodeJS.Timeout | undefined;
  /** The next attempt is a late one, after a refusal. */
  #refused = false;
  #stopped = false;
  #finished: (() => void) | undefined;

  constructor(
    socket: string,
    setting: SubscribeSetting,
    events: SubscriptionEvents,
    {
      kubelet = NO_KUBELET,
      paceStore = NO_PACE_STORE,
      kubeletWait = KUBELET_WAIT,
      startReader = startReaderProcess,
    }: SubscriptionOptions = {},
  ) {
    this.#socket = socket;
    this.#setting = setting;
    this.#events = events;
    this.#kubelet = kubelet;
    this.#startReader = startReader;
    this.#pace = new SubscriptionPace(paceStore);
    this.#kubeletWait = kubeletWait;
  }

  start(): void {
    if (this.#setting === 'never') {
      this.#events.state('Off', 'switched off by --subscribe never', '');
      return;
    }
    if (this.#setting === 'always') {
      this.#kubelet.onChange(() => this.#review());
      this.#reviewTimer = setInterval(() => this.#review(), REVIEW_MS);
    }
    void this.#startAtPace();
  }

  async #startAtPace(): Promise<void> {
    const wait = await this.#pace.load(wallNow());
    if (wait === 0) {
      this.#connect();
      return;
    }
    this.#events.state('Interrupted', 'waiting, because the last subscription did not last', '');
    this.#retryIn(wait / 1000);
  }

  /** Ends the reader, and waits until it is gone and the pace is saved: nobody else may write its file before. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#retryTimer);
    clearInterval(this.#reviewTimer);
    clearInterval(this.#kubeletTimer);
    const reader = this.#reader;
    if (reader !== null) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#finished = resolve;
      reader.kill();
      await promise;
    }
    await this.#pace.saved();
  }

  /** Another runtime answers at the socket: if the one before was refused, this one is tried at once. */
  runtimeReplaced(): void {
    if (!this.#refused) return;
    this.#retryIn(Math.max(0, between(monoNow(), this.#notBefore)) / 1000);
  }

  /** When the reader last sent anything; null without a reader. */
  lastHeartbeat(): Mono | null {
    return this.#reader?.lastHeartbeat() ?? null;
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
    this.#reader = this.#startReader(this.#socket, {
      frame: (frame) => this.#take(frame),
      gone: (why) => this.#readerEnded(why),
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
        this.#checkLasted(frame.at);
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
      // Counted below, like an event without an id.
      event = null;
    }
    if (event === null) {
      this.#events.malformed(this.#session, at);
      return;
    }
    if (this.#profile !== null && lacksStatus(this.#profile, event)) this.#events.eventWithoutStatus();
    this.#events.event(event);
  }

  #identify(runtime: RuntimeVersion): void {
    const known = this.#runtime;
    if (known !== null) {
      if (known.name === runtime.name && known.version === runtime.version) return;
      const message = cleanText(`${known.version} became ${runtime.version}`, MAX_MESSAGE_LENGTH);
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
    if (this.#mustWaitForKubelet()) this.#waitForKubelet();
    else this.#subscribe();
  }

  /** `subscribed`: decides whether to stay. */
  #decide(profile: RuntimeProfile, subscribed: boolean): SubscribeDecision {
    return decide({
      setting: this.#setting,
      profile,
      gate: this.#kubelet.gate(monoNow()),
      sinceSubscribed: subscribed ? null : this.#pace.sinceSubscribed(wallNow()),
    });
  }

  #review(): void {
    const profile = this.#profile;
    const known = this.#decision;
    if (this.#stopped || profile === null || known === null) return;
    const decision = this.#decide(profile, known.subscribe);
    const hasReader = this.#reader !== null;
    // Between two sessions the next one decides anew, at its time.
    if (hasReader && known.subscribe && known.whileGateOff && !decision.subscribe) this.#leave(decision);
    if (!hasReader && !known.subscribe) this.#reviewRefusal(known, decision);
  }

  #reviewRefusal(known: SubscribeRefusal, decision: SubscribeDecision): void {
    if (decision.subscribe) {
      this.#decision = null;
      this.#retryIn(Math.max(0, between(monoNow(), this.#notBefore)) / 1000);
    } else if (decision.state !== known.state || decision.why !== known.why) {
      this.#decision = decision;
      this.#events.state(decision.state, decision.why, '');
    }
  }

  /** Ends the session first; what that costs the runtime is known later. */
  #leave(refusal: SubscribeRefusal): void {
    this.#reader?.kill();
    this.#decision = refusal;
    this.#end = { code: 'POLICY', message: cleanText(refusal.why, MAX_MESSAGE_LENGTH) };
  }

  #waitForKubelet(): void {
    const before = this.#lost?.successes;
    const until = shift(monoNow(), this.#kubeletWait);
    this.#events.state('Interrupted', 'waiting for the kubelet to subscribe first', '');
    this.#kubelet.scrapeSoon();
    this.#kubeletTimer = setInterval(() => {
      const subscribed = kubeletSubscribed(before, this.#kubelet.connectionSuccesses());
      if (subscribed || !this.#mustWaitForKubelet() || monoNow() >= until) this.#subscribe();
      else this.#kubelet.scrapeSoon();
    }, KUBELET_POLL_MS);
  }

  #mustWaitForKubelet(): boolean {
    const now = monoNow();
    return mustWaitForKubelet(this.#lost !== null, this.#kubelet.gate(now), this.#kubelet.hasGivenUp(now));
  }

  #subscribe(): void {
    clearInterval(this.#kubeletTimer);
    this.#pace.subscribing(wallNow());
    this.#reader?.subscribe();
  }

  #checkLasted(now: Mono): void {
    if (this.#lasted || this.#opened === null || between(this.#opened, now) <= HEALTHY_AFTER) return;
    this.#lasted = true;
    this.#pace.lasted();
  }

  #readerEnded(why: string | null): void {
    this.#reader = null;
    clearInterval(this.#kubeletTimer);
    const end = this.#stopped
      ? STOPPED
      : (this.#end ?? { code: 'READER_ENDED', message: cleanText(why ?? '', MAX_MESSAGE_LENGTH) });
    const now = monoNow();
    if (this.#opened !== null) {
      this.#lost = { successes: this.#kubelet.connectionSuccesses() };
      this.#events.ended(this.#session, now, end.code, end.message);
    }
    if (this.#stopped) this.#finished?.();
    else this.#retryAfter(end, now);
  }

  #retryAfter(end: { code: string; message: string }, now: Mono): void {
    const openFor = this.#opened === null ? millis(0) : between(this.#opened, now);
    const empty = end.code === 'OK' && this.#messages === 0 && openFor < ENDED_AT_ONCE;
    this.#emptyEnds = empty ? this.#emptyEnds + 1 : 0;
    const error = end.message === '' ? end.code : `${end.code}: ${end.message}`;
    const refusal = this.#decision?.subscribe === false ? this.#decision : null;
    if (refusal !== null) {
      if (this.#opened !== null) this.#notBefore = shift(now, this.#pace.failed());
      this.#events.state(refusal.state, refusal.why, '');
      this.#retryLate();
    } else if (end.code === 'UNIMPLEMENTED') {
      this.#events.state('Unsupported', 'the runtime does not implement the event stream', error);
      this.#retryLate();
    } else if (this.#emptyEnds >= 2) {
      this.#events.state('Disabled', 'the runtime has its events switched off', error);
      this.#retryLate();
    } else {
      this.#events.state('Interrupted', 'the stream ended and is retried', error);
      this.#retryIn(this.#pace.failed() / 1000);
    }
  }

  #retryLate(): void {
    this.#refused = true;
    this.#retryIn(REFUSED_RETRY_MS);
  }

  #retryIn(ms: number): void {
    clearTimeout(this.#retryTimer);
    if (!this.#stopped) this.#retryTimer = setTimeout(() => this.#connect(), ms);
  }
}
