/*
 * The stream monitor: passes events to the comparison, and records sessions and every stretch in which the stream was not complete.
 *
 *   unproven ── first event of a session ──► covered ── the session ends ──► broken ── first event of the next ──► covered
 *      └──────────── policy forbids the stream, or the runtime has none: a gap of that state ────────────┘
 *
 * While a session is open the observer ticks with the reader's heartbeat, so that an idle node wakes up once for both; otherwise by a
 * timer. A reader without a heartbeat is killed, which ends the session.
 */
import type { RuntimeProfile, RuntimeVersion } from '../../cri/profiles.ts';
import { monoNow, wallNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import type { ReceivedEvent } from '../../protocol/observation.ts';
import { between, type Mono, millis } from '../../protocol/units.ts';
import type { Comparison } from '../compare/comparison.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { Gaps } from './gaps.ts';
import { type KubeletView, NO_KUBELET } from './kubelet/scraper.ts';
import type { MalformedMessages } from './malformedMessageCounts.ts';
import type { NodeState } from './nodeState.ts';
import type { Reporter } from './reporter.ts';
import { Stalls } from './stalls.ts';
import type { StartReader } from './stream/readerProcess.ts';
import type { PaceStore } from './stream/subscribePolicy.ts';
import { Subscription, type SubscriptionState } from './stream/subscription.ts';
import { type SessionEnd, type StreamSession, sessionRecord, streamReason } from './streamSession.ts';

/** Without a reader: this often, or four times within `--overdue-after` if that is more often. */
const MAX_TICK_MS = 500;
/** The reader is killed after two seconds of silence; later than this its parent itself is stuck. */
const MAX_READER_SILENCE = millis(15_000);

export interface StreamMonitorOptions {
  readonly config: Pick<AgentConfig, 'criEndpoint' | 'subscribe' | 'overdueAfter'>;
  readonly epochStart: Mono;
  readonly comparison: Comparison;
  readonly gaps: Gaps;
  readonly malformed: MalformedMessages;
  readonly metrics: AgentMetrics;
  readonly nodeState: NodeState;
  readonly reporter: Reporter;
  readonly log: Logger;
  readonly throttledLog: ThrottledLog;
  readonly kubelet: KubeletView | null;
  readonly paceStore: PaceStore;
  readonly startReader?: StartReader | undefined;
}

export interface StreamMonitorEvents {
  identified(runtime: RuntimeVersion, profile: RuntimeProfile): void;
  /** An event was compared that had been received at `at`. */
  eventReceived(at: Mono): void;
  /** The comparison has findings to report. */
  changed(): void;
  tick(): void;
}

export class StreamMonitor {
  readonly #options: StreamMonitorOptions;
  readonly #events: StreamMonitorEvents;
  readonly #subscription: Subscription;
  readonly #stalls: Stalls;
  #session: StreamSession | null = null;
  /** How many events the session had received when it was last reported; null before that. */
  #reportedEvents: number | null = null;
  /** The session's first event has closed the gap before it. */
  #gapClosed = false;
  /** The policy's reason about the open stream. */
  #reason = '';
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: StreamMonitorOptions, events: StreamMonitorEvents) {
    const { comparison, config, epochStart, gaps, kubelet, log, metrics, paceStore, startReader } = options;
    this.#options = options;
    this.#events = events;
    this.#stalls = new Stalls(
      { epochStart, overdueAfter: config.overdueAfter, comparison, gaps, log },
      monoNow(),
    );
    comparison.unsubscribed(epochStart, 'down');
    gaps.open('stream', 'unproven', epochStart, monoNow());
    this.#subscription = new Subscription(
      config.criEndpoint,
      config.subscribe,
      {
        identified: (runtime, profile) => events.identified(runtime, profile),
        opened: (session, at, wallNs) => this.#opened(session, at, wallNs),
        event: (event) => this.#received(event),
        drained: (session, at) => this.#drained(session, at),
        overflow: (_session, at, dropped) => this.#overflowed(at, dropped),
        eventWithoutStatus: () => metrics.eventsWithoutStatus.inc(),
        malformed: (_session, at) => this.#malformed(at),
        ended: (_session, closed, code, message) => this.#ended({ closed, code, message }),
        state: (state, reason, error) => this.#stateChanged(state, reason, error),
      },
      { kubelet: kubelet ?? NO_KUBELET, paceStore, startReader },
    );
  }

  start(): void {
    this.#subscription.start();
    this.#startTimer();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopTimer();
    await this.#subscription.stop();
  }

  /** Until then no event can have been lost without a gap. */
  observedUntil(now: Mono): Mono {
    return this.#options.gaps.isOpen('stream') ? now : this.#stalls.drainedUntil;
  }

  get hasSession(): boolean {
    return this.#session !== null;
  }

  /** Null while the reader's heartbeat arrives, or no reader is needed. */
  get readerError(): string | null {
    const heartbeat = this.#subscription.lastHeartbeat();
    const isSilent = heartbeat !== null && between(heartbeat, monoNow()) > MAX_READER_SILENCE;
    return isSilent ? 'the reader is silent' : null;
  }

  runtimeReplaced(): void {
    this.#subscription.runtimeReplaced();
  }

  checkStall(now: Mono): void {
    this.#stalls.tick(now);
  }

  /** Takes over what the evidence says about an open stream. */
  updateState(now: Mono): void {
    const { comparison, log, nodeState } = this.#options;
    const state = comparison.streamState();
    if (state === null || state === nodeState.stream) return;
    const reason = streamReason(state, this.#reason, comparison.starved, { now, wall: wallNow() });
    nodeState.setStream(state, reason, '', now);
    if (state === 'Starved') log.warn({ reason }, 'event stream is starved');
  }

  /** Reports what is known of the session, if that is more than before. */
  reportSession(end: SessionEnd | null = null): void {
    const { comparison, epochStart, reporter } = this.#options;
    const counters = comparison.session();
    if (this.#session === null || counters === null) return;
    if (end === null && this.#reportedEvents === counters.events) return;
    this.#reportedEvents = counters.events;
    reporter.report(sessionRecord(epochStart, this.#session, counters, end));
  }

  #opened(no: number, at: Mono, wallNs: bigint): void {
    this.#options.comparison.subscribed(no, at, wallNs);
    this.#session = { no, opened: at };
    this.#reportedEvents = null;
    this.#gapClosed = false;
    this.reportSession();
  }

  #received(event: ReceivedEvent): void {
    const { comparison, gaps } = this.#options;
    this.#stalls.drained(event.received, this.#session, monoNow());
    comparison.received(event);
    this.#events.eventReceived(event.received);
    if (this.#session !== null && !this.#gapClosed) {
      this.#gapClosed = true;
      this.reportSession();
      gaps.close('stream', event.received, monoNow());
    }
    this.#events.changed();
  }

  #drained(session: number, at: Mono): void {
    const { comparison, gaps } = this.#options;
    this.#stalls.drained(at, this.#session, monoNow());
    gaps.endLossInterval(monoNow());
    comparison.drained(session, at);
    // A reader that never opened a session may end without notice, so the timer runs until there is one.
    if (this.#session !== null) this.#stopTimer();
    this.#events.tick();
  }

  /** A message could not be decoded as an event. */
  #malformed(at: Mono): void {
    this.#options.malformed.count('GetContainerEvents');
    this.#eventsLost('malformed_event', at);
  }

  /** The reader dropped events without keeping even a digest. */
  #overflowed(at: Mono, events: number): void {
    const { metrics, throttledLog } = this.#options;
    metrics.readerDropped.inc(events);
    throttledLog.warn({ events }, 'reader dropped events', events);
    this.#eventsLost('reader_overflow', at);
  }

  /** An event may have been lost although the session continues: a gap, and nothing that was due across it counts as missed. */
  #eventsLost(cause: 'malformed_event' | 'reader_overflow', at: Mono): void {
    this.#options.gaps.addLoss('stream', cause, this.#completeUntil(), at, monoNow());
    this.#options.comparison.eventsLost(at, cause);
  }

  #ended(end: SessionEnd): void {
    const { comparison, gaps, kubelet, metrics } = this.#options;
    metrics.streamErrors.inc({ code: end.code });
    gaps.endLosses(end.closed);
    // The agent's own end is a gap of everything, which the observer reports.
    if (!this.#stopped) gaps.open('stream', 'broken', this.#stalls.drainedUntil, end.closed);
    this.reportSession(end);
    comparison.unsubscribed(end.closed, 'down');
    this.#session = null;
    this.#startTimer();
    // The cause of the break may have broken the kubelet's stream too: a scrape soon after bounds that well.
    kubelet?.scrapeSoon();
    this.#events.changed();
  }

  #stateChanged(state: SubscriptionState, reason: string, error: string): void {
    const { comparison, gaps, log, metrics, nodeState } = this.#options;
    const now = monoNow();
    metrics.streamConnected.set(state === 'Connected' ? 1 : 0);
    log.info({ state, reason, error }, 'event stream state changed');
    if (state === 'Connected') {
      this.#reason = reason;
      this.updateState(now);
      return;
    }
    const previous = nodeState.stream;
    nodeState.setStream(state, reason, error, now);
    // Another reason for the same state is no new gap.
    if (state === 'Interrupted' || state === previous) return;
    // Without a subscription nothing is due: that is a gap, not a miss.
    comparison.unsubscribed(now, 'absent');
    gaps.close('stream', now, now);
    gaps.open('stream', state.toLowerCase(), now, now);
  }

  /** Until then no event of the session can have been lost. */
  #completeUntil(): Mono {
    const { drainedUntil } = this.#stalls;
    const opened = this.#session?.opened ?? drainedUntil;
    return opened > drainedUntil ? opened : drainedUntil;
  }

  #startTimer(): void {
    const everyMs = Math.min(MAX_TICK_MS, this.#options.config.overdueAfter / 4000);
    if (!this.#stopped) this.#timer ??= setInterval(() => this.#events.tick(), everyMs);
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
