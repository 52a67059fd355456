/*
 * The observer: everything that watches one runtime, and what comes of it as records.
 *
 *   subscription ─┐
 *   relister ─────┼──► comparison ──► records ──► sink
 *   questions ────┘        gaps, minutes and the node's state beside it
 *
 * Events reach the comparison in the order in which the reader took them. A list may be compared before an event that the
 * reader took earlier has come through the pipe: verdicts wait for the reader's own word that it has drained past them.
 */
import { randomUUID } from 'node:crypto';
import { type CriClient, CriError } from '../../cri/client.ts';
import { clean } from '../../cri/items.ts';
import { profileOf, type RuntimeProfile, type RuntimeVersion } from '../../cri/profiles.ts';
import { monoNow, wallNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import { ThrottledLog } from '../../platform/throttledLog.ts';
import type { Context } from '../../protocol/batch.ts';
import type { ReceivedEvent, Relist } from '../../protocol/observation.ts';
import type { ContainerIdentity, EvidenceRecord, RecordOf } from '../../protocol/record.ts';
import { between, type Mono, millis } from '../../protocol/units.ts';
import { Comparison } from '../compare/comparison.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentMetrics } from '../metrics.ts';
import { absences, type Before } from './downtimeGaps.ts';
import { Gaps } from './gaps.ts';
import { KubeletMode, type ModeMemory } from './kubelet/kubeletMode.ts';
import type { Remembered } from './kubelet/modeTracker.ts';
import { type KubeletWatch, NO_KUBELET } from './kubelet/scraper.ts';
import { ListTrouble } from './listGaps.ts';
import { MalformedMessages } from './malformedMessages.ts';
import { NodeState } from './nodeState.ts';
import { Relister, type RelistFailure } from './relister.ts';
import { FIRST_MINUTE, MINUTE, Minute, type RelistFigures } from './relistMinute.ts';
import { Pauses } from './stalls.ts';
import { Questions } from './statusQueries.ts';
import type { PaceMemory } from './stream/subscribePolicy.ts';
import { Subscription, type SubscriptionEvents, type SubscriptionState } from './stream/subscription.ts';
import { Holes } from './streamLoss.ts';
import { type Session, sessionRecord } from './streamSession.ts';

/** Without a reader it looks at the time itself: this often, and four times in a grace where that is less. */
const LONGEST_BEAT_MS = 500;
const VERSION_TIMEOUT_MS = 5_000;

/** Where records go. */
interface Sink extends Before {
  setContext(context: Omit<Context, 'no'>): void;
  append(record: EvidenceRecord, object: ContainerIdentity | null): void;
}

/** The kubelet, and what is kept of its mode from agent to agent. */
export interface KubeletSource {
  readonly watch: KubeletWatch;
  readonly memory: ModeMemory;
  readonly remembered: Remembered | null;
}

export interface ObserverOptions {
  readonly config: Pick<
    AgentConfig,
    'criEndpoint' | 'subscribe' | 'relistPeriod' | 'overdueAfter' | 'missedAfter' | 'lateAfter'
  >;
  readonly client: CriClient;
  readonly runtime: RuntimeVersion;
  readonly agentVersion: string;
  readonly sink: Sink;
  readonly metrics: AgentMetrics;
  readonly log: Logger;
  /** Null where there is no kubelet to ask. */
  readonly kubelet: KubeletSource | null;
  readonly paceMemory: PaceMemory;
}

export class Observer {
  readonly #options: ObserverOptions;
  readonly #comparison: Comparison;
  readonly #subscription: Subscription;
  readonly #relister: Relister;
  readonly #questions: Questions;
  readonly #gaps: Gaps;
  readonly #pauses: Pauses;
  readonly #listTrouble: ListTrouble;
  readonly #throttledLog: ThrottledLog;
  readonly #malformed: MalformedMessages;
  readonly #holes: Holes;
  readonly #state: NodeState;
  /** Null where there is no kubelet to ask. */
  readonly #kubeletMode: KubeletMode | null;
  readonly #abort = new AbortController();
  /** Where no reader speaks. */
  #beat: NodeJS.Timeout | undefined;
  readonly #relisting: Promise<void>;
  #runtime: RuntimeVersion;
  /** As the kubelet told it last; empty before. */
  #kubeletVersion = '';
  /** What the policy says of the stream that is open. */
  #streamReason = '';
  #minute: Minute;
  #minuteLength = FIRST_MINUTE;
  #session: Session | null = null;

  constructor(options: ObserverOptions) {
    const { config, client, sink, runtime } = options;
    this.#options = options;
    this.#runtime = runtime;
    this.#comparison = new Comparison({
      epochStart: sink.start,
      overdueAfter: config.overdueAfter,
      missedAfter: config.missedAfter,
      lateAfter: config.lateAfter,
      profile: profileOf(runtime),
      mintId: randomUUID,
    });
    this.#throttledLog = new ThrottledLog(options.log, { linesPerMinute: 1 });
    this.#malformed = new MalformedMessages(options.metrics, this.#throttledLog);
    this.#state = new NodeState(sink.start);
    this.#gaps = new Gaps(sink.start, randomUUID, (record) => this.#emit(record, null));
    this.#pauses = new Pauses({
      start: sink.start,
      grace: config.overdueAfter,
      comparison: this.#comparison,
      gaps: this.#gaps,
      log: options.log,
    });
    this.#holes = new Holes({
      ...options,
      comparison: this.#comparison,
      gaps: this.#gaps,
      malformed: this.#malformed,
      log: this.#throttledLog,
    });
    this.#listTrouble = new ListTrouble(this.#gaps);
    this.#kubeletMode = options.kubelet === null ? null : this.#watchMode(options.kubelet);
    this.#minute = new Minute(sink.start, this.#comparison.counters);
    this.#setContext();
    for (const gap of absences(sink)) this.#emit(gap, null);
    this.#comparison.unsubscribed('down');
    this.#gaps.open('stream', 'unproven', sink.start, monoNow());
    this.#subscription = this.#subscribe();
    options.kubelet?.watch.onChange(() => this.#kubeletLooked());
    this.#questions = new Questions(client, {
      answered: (answer) => this.#comparison.answered(answer),
      refused: (call) => this.#malformed.count(call),
    });
    const relisting = { client, period: config.relistPeriod, profile: profileOf(runtime), log: options.log };
    this.#relister = new Relister(relisting, {
      relisted: (relist, figures) => this.#relisted(relist, figures),
      failed: (failure) => this.#relistFailed(failure),
      refused: (call, messages) => this.#malformed.count(call, messages),
    });
    this.#subscription.start();
    this.#relisting = this.#relister.run(this.#abort.signal);
    this.#beatByItself();
  }

  /** Null when lists succeed; otherwise why not. */
  get relistProblem(): string | null {
    return this.#state.relistProblem;
  }

  /** Transitions whose event has not come and that have no verdict yet. */
  get pendingEvents(): number {
    return this.#comparison.pending;
  }

  /** Ids that are remembered. */
  get trackedContainers(): number {
    return this.#comparison.tracked;
  }

  /** How often an id was not followed because too many were. */
  get untrackedContainers(): number {
    return this.#comparison.counters.untracked;
  }

  /** How often a start or an end was overdue and was not told to be, because too many were. */
  get overdueSuppressed(): number {
    return this.#comparison.counters.overdueSuppressed;
  }

  /** Null while the reader gives signs of life, or none is needed. */
  readerProblem(): string | null {
    const sign = this.#subscription.lastSign();
    // Its parent kills a silent reader after two seconds; later than this the parent itself is stuck.
    return sign !== null && between(sign, monoNow()) > millis(15_000) ? 'the reader is silent' : null;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#beatWithReader();
    this.#questions.stop();
    await this.#subscription.stop();
    await this.#relisting;
    const now = monoNow();
    this.#flushMinute(now);
    this.#throttledLog.flush();
    this.#gaps.closeAll(now);
    this.#drain();
  }

  // The stream.

  #subscribe(): Subscription {
    const { config, kubelet, paceMemory } = this.#options;
    const events: SubscriptionEvents = {
      identified: (runtime, profile) => this.#identified(runtime, profile),
      opened: (session, at, wallNs) => this.#opened(session, at, wallNs),
      event: (event) => this.#received(event),
      drained: (session, at) => this.#drainedTo(session, at),
      overflow: (_session, at, events) => this.#holes.overflowed(this.#wholeUntil(), at, events),
      statusLacked: () => this.#options.metrics.eventsWithoutStatus.inc(),
      malformed: (_session, at) => this.#holes.malformed(this.#wholeUntil(), at),
      ended: (session, at, code, message) => this.#ended(session, at, code, message),
      state: (state, reason, error) => this.#subscriptionIs(state, reason, error),
    };
    return new Subscription(config.criEndpoint, config.subscribe, events, {
      kubelet: kubelet?.watch ?? NO_KUBELET,
      memory: paceMemory,
    });
  }

  #identified(runtime: RuntimeVersion, profile: RuntimeProfile): void {
    this.#comparison.runtimeReplaced(profile);
    this.#options.log.info(
      { ...runtime, profile: profile.name, subscription: profile.subscription, notes: profile.notes },
      'runtime identified',
    );
    if (runtime.name === this.#runtime.name && runtime.version === this.#runtime.version) return;
    this.#runtime = runtime;
    this.#relister.runtimeIs(profile);
    this.#setContext();
  }

  /** Which runtime answers, where no session tells: it may have been replaced in place. */
  async #askVersion(): Promise<void> {
    if (this.#session !== null) return;
    const before = this.#runtime;
    // One that does not answer fails the lists too, which tell it.
    const runtime = await this.#options.client.version(VERSION_TIMEOUT_MS).catch((error: unknown) => {
      if (error instanceof CriError && error.code === 'MALFORMED') this.#malformed.count('Version');
      return before;
    });
    if (this.#abort.signal.aborted) return;
    if (runtime.name === before.name && runtime.version === before.version) return;
    this.#identified(runtime, profileOf(runtime));
    this.#subscription.replaced();
  }

  #opened(no: number, at: Mono, wallNs: bigint): void {
    this.#comparison.subscribed(no, at, wallNs);
    this.#session = { no, opened: at, told: false };
    this.#recordSession(null, null, null);
  }

  #received(event: ReceivedEvent): void {
    this.#pauses.drainedTo(event.received, this.#session);
    this.#comparison.received(event);
    this.#relister.heard();
    if (this.#session !== null && !this.#session.told) {
      this.#session.told = true;
      this.#gaps.close('stream', event.received, monoNow());
      this.#recordSession(null, null, null);
    }
    this.#drain();
  }

  #drainedTo(session: number, at: Mono): void {
    this.#pauses.drainedTo(at, this.#session);
    this.#gaps.stretch(monoNow());
    this.#comparison.drained(session, at);
    // The end of an open session is always told, of a reader that never came so far it is not.
    if (this.#session !== null) this.#beatWithReader();
    this.#tick();
  }

  /** When the stream of the present session was last known to be whole. */
  #wholeUntil(): Mono {
    const { drained } = this.#pauses;
    const opened = this.#session?.opened ?? drained;
    return opened > drained ? opened : drained;
  }

  #ended(_session: number, at: Mono, code: string, message: string): void {
    this.#options.metrics.streamErrors.inc({ code });
    this.#recordSession(at, code, message);
    this.#comparison.unsubscribed('down');
    this.#session = null;
    this.#beatByItself();
    this.#gaps.endHoles(at);
    this.#gaps.open('stream', 'broken', this.#pauses.drained, at);
    // What broke our stream may have broken the kubelet's: a look close to it bounds that well.
    this.#options.kubelet?.watch.soon();
    this.#drain();
  }

  #subscriptionIs(state: SubscriptionState, reason: string, error: string): void {
    const now = monoNow();
    this.#options.metrics.streamConnected.set(state === 'Connected' ? 1 : 0);
    this.#options.log.info({ state, reason, error }, 'event stream');
    if (state === 'Connected') {
      this.#streamReason = reason;
      this.#streamIs(now);
      return;
    }
    const known = this.#state.stream;
    this.#state.streamIs(state, reason, error, now);
    // Another reason for the same absence is no new one.
    if (state === 'Interrupted' || state === known) return;
    // Nothing is due where nothing may be asked: an absence of evidence, told as a gap, not as misses.
    this.#comparison.unsubscribed('absent');
    this.#gaps.close('stream', now, now);
    this.#gaps.open('stream', state.toLowerCase(), now, now);
  }

  #streamIs(now: Mono): void {
    const state = this.#comparison.streamState();
    if (state !== null && state !== this.#state.stream)
      this.#state.streamIs(state, this.#streamReason, '', now);
  }

  // The kubelet.

  #watchMode({ memory, remembered }: KubeletSource): KubeletMode {
    const mode = new KubeletMode({
      epochStart: this.#options.sink.start,
      remembered,
      memory,
      gaps: this.#gaps,
      emit: (record) => this.#modeChanged(record),
    });
    this.#modeIs(mode);
    return mode;
  }

  #kubeletLooked(): void {
    const { kubelet } = this.#options;
    if (kubelet === null || this.#kubeletMode === null || this.#abort.signal.aborted) return;
    const version = kubelet.watch.version ?? '';
    if (version !== this.#kubeletVersion) {
      this.#kubeletVersion = version;
      this.#setContext();
    }
    this.#kubeletMode.take(kubelet.watch.last);
    this.#modeIs(this.#kubeletMode);
    this.#drain();
  }

  #modeIs({ state }: KubeletMode): void {
    this.#state.modeIs(state);
    this.#options.metrics.setKubeletMode(state.mode);
  }

  #modeChanged(record: RecordOf<'mode_change'>): void {
    const { model, from, to, reason } = record;
    this.#options.log.info({ model, from, to, reason }, "the kubelet's mode changed");
    this.#emit(record, null);
  }

  // Lists.

  #relisted(relist: Relist, figures: RelistFigures): void {
    this.#comparison.relisted(relist);
    this.#minute.relisted(figures);
    // A runtime that was away may have come back as another.
    if (this.#state.relistProblem !== null) void this.#askVersion();
    this.#options.metrics.relistDuration.observe(figures.took / 1e6);
    this.#state.relistIs(true, '');
    this.#listTrouble.answered(relist.sandboxes.start, relist.containers.end);
    this.#drain();
  }

  #relistFailed(failure: RelistFailure): void {
    const { code, message } = failure;
    const { log, metrics } = this.#options;
    metrics.relistErrors.inc({ code });
    this.#minute.failed();
    this.#comparison.listFailed();
    this.#state.relistIs(false, clean(message, 300));
    if (this.#listTrouble.failed(failure)) log.warn({ code, error: message }, 'relist failed');
  }

  // Time.

  #beatByItself(): void {
    const everyMs = Math.min(LONGEST_BEAT_MS, this.#options.config.overdueAfter / 4000);
    if (!this.#abort.signal.aborted) this.#beat ??= setInterval(() => this.#tick(), everyMs);
  }

  /** With every word of the reader, so that an idle node wakes up once for both. One that falls silent is killed: `ended`. */
  #beatWithReader(): void {
    clearInterval(this.#beat);
    this.#beat = undefined;
  }

  #tick(): void {
    if (this.#abort.signal.aborted) return;
    const now = monoNow();
    this.#pauses.ticked(now);
    // A failure says more than that the next one hangs.
    if (this.#listTrouble.waiting(this.#relister.waitingSince, now) && this.#state.relistProblem === null)
      this.#state.relistIs(false, 'the runtime has not answered a list for half a minute');
    this.#comparison.tick(now, wallNow());
    this.#streamIs(now);
    if (between(this.#minute.start, now) >= this.#minuteLength) this.#flushMinute(now);
    this.#drain();
  }

  #flushMinute(now: Mono): void {
    const { counters } = this.#comparison;
    const kubelet = this.#kubeletMode?.cutMinute();
    this.#emit(this.#minute.record(this.#options.sink.start, now, counters, kubelet), null);
    this.#recordSession(null, null, null);
    void this.#askVersion();
    this.#throttledLog.flushDue();
    this.#minute = new Minute(now, counters);
    this.#minuteLength = MINUTE;
  }

  // Records.

  /** Passes on what the comparison found, and the node's state where it changed. */
  #drain(): void {
    const { emissions, queries } = this.#comparison.take();
    for (const { record, object } of emissions) this.#emit(record, object);
    for (const query of queries) this.#questions.ask(query);
    const state = this.#state.changed(monoNow());
    if (state === null) return;
    this.#options.metrics.setStreamState(state.stream.state);
    this.#emit(state, null);
  }

  #emit(record: EvidenceRecord, object: ContainerIdentity | null): void {
    this.#options.metrics.count(record);
    this.#options.sink.append(record, object);
  }

  #recordSession(closed: Mono | null, code: string | null, message: string | null): void {
    const session = this.#session;
    const figures = this.#comparison.session();
    if (session === null || figures === null) return;
    this.#emit(sessionRecord(this.#options.sink.start, session, figures, { closed, code, message }), null);
  }

  #setContext(): void {
    const { sink, agentVersion } = this.#options;
    sink.setContext({ runtime: this.#runtime, kubelet: this.#kubeletVersion, agent: agentVersion });
  }
}
