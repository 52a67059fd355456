/*
 * The subscription to the runtime's event stream.
 *
 *   forbidden ◄── policy ── identifying ──► opening ──► open ──► ended ──► backoff ──► identifying
 *       │ (asked again every 10 min)            a reader process for each round
 *
 * Before and after subscribing the reader asks Version on the session's own connection: a runtime that was replaced in
 * between is left at once. An end with OK within a second and without a message, twice, means that the runtime has events
 * switched off: `Disabled`. UNIMPLEMENTED means `Unsupported`. Both are asked again every 10 minutes. Everything else is
 * `Interrupted` and tried again with full jitter between 1 s and 60 s: every disconnect costs some runtime something.
 */
import { monoNow } from '../../clock.ts';
import type { StreamState } from '../../evidence/record.ts';
import { between, type Mono, millis } from '../../evidence/units.ts';
import type { ReceivedEvent } from '../pleg/observation.ts';
import type { Frame } from './frames.ts';
import { clean, digestEvent, readEvent } from './items.ts';
import {
  type Decision,
  decide,
  profileOf,
  type RuntimeProfile,
  type RuntimeVersion,
  type StreamSetting,
} from './profiles.ts';
import { type ReaderProcess, startReader } from './readerProcess.ts';

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
const ASK_AGAIN_MS = 600_000;
/** A session that lived this long is taken as proof that the runtime is well. */
const HEALTHY = millis(60_000);
const AT_ONCE = millis(1_000);
/** What a hostile runtime or a broken reader may say of its end. */
const LONGEST_MESSAGE = 600;
const STOPPED = { code: 'AGENT_STOPPED', message: 'the agent left' };

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
  /** Bytes came that are no event: one that is due may be among them. */
  malformed(session: number, at: Mono): void;
  ended(session: number, at: Mono, code: string, message: string): void;
  state(state: SubscriptionState, reason: string, error: string): void;
}

export class Subscription {
  readonly #socket: string;
  readonly #setting: StreamSetting;
  readonly #events: SubscriptionEvents;
  #reader: ReaderProcess | null = null;
  #runtime: RuntimeVersion | null = null;
  #session = 0;
  #opened: Mono | null = null;
  #messages = 0;
  #attempts = 0;
  #emptyEnds = 0;
  #forbidden: Extract<Decision, { subscribe: false }> | null = null;
  #end: { readonly code: string; readonly message: string } | null = null;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #finished: (() => void) | undefined;

  constructor(socket: string, setting: StreamSetting, events: SubscriptionEvents) {
    this.#socket = socket;
    this.#setting = setting;
    this.#events = events;
  }

  start(): void {
    if (this.#setting === 'never') {
      this.#events.state('Off', 'switched off by --stream never', '');
      return;
    }
    this.#connect();
  }

  /** Ends the reader and waits until it is gone. */
  stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    const reader = this.#reader;
    if (reader === null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#finished = resolve;
      reader.kill();
    });
  }

  /** When the reader last gave a sign of life; null while none is needed. */
  lastSign(): Mono | null {
    return this.#reader?.lastSign() ?? null;
  }

  #connect(): void {
    if (this.#stopped) return;
    this.#runtime = null;
    this.#opened = null;
    this.#messages = 0;
    this.#forbidden = null;
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
        this.#events.opened(this.#session, frame.at, frame.wallNs);
        this.#events.state('Connected', '', '');
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
    if (event === null) this.#events.malformed(this.#session, at);
    else this.#events.event(event);
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
    const profile = profileOf(runtime);
    this.#events.identified(runtime, profile);
    const decision = decide(this.#setting, profile);
    if (decision.subscribe) {
      this.#reader?.subscribe();
      return;
    }
    this.#forbidden = decision;
    this.#reader?.kill();
  }

  #gone(why: string | null): void {
    this.#reader = null;
    const end = this.#stopped
      ? STOPPED
      : (this.#end ?? { code: 'READER_ENDED', message: clean(why ?? '', LONGEST_MESSAGE) });
    const now = monoNow();
    if (this.#opened !== null) this.#events.ended(this.#session, now, end.code, end.message);
    if (this.#stopped) this.#finished?.();
    else this.#next(end, now);
  }

  #next(end: { code: string; message: string }, now: Mono): void {
    const lived = this.#opened === null ? millis(0) : between(this.#opened, now);
    const empty = end.code === 'OK' && this.#messages === 0 && lived < AT_ONCE;
    this.#emptyEnds = empty ? this.#emptyEnds + 1 : 0;
    if (this.#messages > 0 || lived > HEALTHY) this.#attempts = 0;
    const error = end.message === '' ? end.code : `${end.code}: ${end.message}`;
    if (this.#forbidden !== null) {
      this.#events.state(this.#forbidden.state, this.#forbidden.why, '');
      this.#again(ASK_AGAIN_MS);
    } else if (end.code === 'UNIMPLEMENTED') {
      this.#events.state('Unsupported', 'the runtime does not implement the event stream', error);
      this.#again(ASK_AGAIN_MS);
    } else if (this.#emptyEnds >= 2) {
      this.#events.state('Disabled', 'the runtime has its events switched off', error);
      this.#again(ASK_AGAIN_MS);
    } else {
      this.#events.state('Interrupted', 'the stream ended and is tried again', error);
      this.#attempts += 1;
      const most = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(this.#attempts, 10));
      this.#again(FIRST_RETRY_MS + Math.random() * (most - FIRST_RETRY_MS));
    }
  }

  #again(ms: number): void {
    this.#timer = setTimeout(() => this.#connect(), ms);
  }
}
