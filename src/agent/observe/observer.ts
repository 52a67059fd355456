/*
 * The observer: watches one runtime, and the kubelet beside it, and turns what it sees into records.
 *
 *   stream monitor ──┐
 *   relist monitor ──┼──► comparison ──► reporter ──► sink
 *   status queries ──┤                      ▲
 *   pods watch ──────┘                      │
 *   kubelet monitor ─────────────────────── ┘   gaps, sessions, minutes, modes and the node's state
 *
 * While relists are slow or hang, our own or the kubelet's, the search for slow statuses adds to the minutes which pod or container holds them up.
 * A minute ends early when that is known, so that it is stored at once.
 *
 * Events reach the comparison in the order in which the reader took them. A list may be compared before an event that the reader took
 * earlier has come through the pipe: nothing is judged before the reader has reported that it has drained the socket past it.
 */
import { randomUUID } from 'node:crypto';
import { CriError, type ObserverCalls } from '../../cri/client.ts';
import { profileOf, type RuntimeProfile, type RuntimeVersion } from '../../cri/profiles.ts';
import { monoNow, readClocks } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import { ThrottledLog } from '../../platform/throttledLog.ts';
import { between, type Mono } from '../../protocol/units.ts';
import { Comparison } from '../compare/comparison.ts';
import type { KubeletCounters } from '../compare/kubeletLag.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentMetrics } from '../metrics.ts';
import { downtimeGaps, Gaps, type PreviousAgents } from './gaps.ts';
import type { SavedMode } from './kubelet/modeTracker.ts';
import type { KubeletScraper } from './kubelet/scraper.ts';
import { KubeletMonitor, type ModeStore } from './kubeletMonitor.ts';
import { MalformedMessages } from './malformedMessageCounts.ts';
import { PressureMeter, type ReadPressure, readPressure } from './nodePressure.ts';
import { NodeState } from './nodeState.ts';
import { PodsWatch, type PodsWatching, type StartPodsWatch } from './pods/podsWatch.ts';
import { MINUTE } from './relistMinute.ts';
import { RelistMonitor } from './relistMonitor.ts';
import { type RecordSink, Reporter } from './reporter.ts';
import { SlowStatusSearch } from './slowStatusSearch.ts';
import { maxSilence } from './stalls.ts';
import { StatusQueries } from './statusQueries.ts';
import type { StartReader } from './stream/readerProcess.ts';
import type { PaceStore } from './stream/subscribePolicy.ts';
import { StreamMonitor } from './streamMonitor.ts';
import { Suspension } from './suspension.ts';

const VERSION_TIMEOUT_MS = 5_000;

/** The kubelet, and its mode as the previous agent saved it. */
export interface KubeletSource {
  readonly scraper: KubeletScraper;
  readonly store: ModeStore;
  readonly saved: SavedMode | null;
}

export interface ObserverOptions {
  readonly config: Pick<
    AgentConfig,
    | 'criEndpoint'
    | 'subscribe'
    | 'relistPeriod'
    | 'overdueAfter'
    | 'missedAfter'
    | 'lateAfter'
    | 'intervalModeConfirmed'
    | 'podsApi'
    | 'kubeletLateAfter'
  >;
  readonly client: ObserverCalls;
  readonly runtime: RuntimeVersion;
  readonly agentVersion: string;
  readonly sink: RecordSink & PreviousAgents;
  readonly metrics: AgentMetrics;
  readonly log: Logger;
  /** Null if there is no kubelet to scrape. */
  readonly kubelet: KubeletSource | null;
  readonly paceStore: PaceStore;
  /** For a simulated node. Default: a process. */
  readonly startReader?: StartReader;
  /** For a simulated node. Default: one over the socket. */
  readonly startPodsWatch?: StartPodsWatch;
  /** For a simulated node. Default: that of this machine. */
  readonly readPressure?: ReadPressure;
}

export class Observer {
  readonly #options: ObserverOptions;
  readonly #comparison: Comparison;
  readonly #nodeState: NodeState;
  readonly #reporter: Reporter;
  readonly #gaps: Gaps;
  readonly #throttledLog: ThrottledLog;
  readonly #malformed: MalformedMessages;
  readonly #stream: StreamMonitor;
  readonly #kubelet: KubeletMonitor | null;
  readonly #pods: PodsWatching | null;
  readonly #relists: RelistMonitor;
  readonly #statusQueries: StatusQueries;
  readonly #slowStatuses: SlowStatusSearch;
  readonly #abort = new AbortController();
  readonly #suspension = new Suspension();
  readonly #suspended = new AbortController();
  readonly #relisting: Promise<void>;
  #checkedAt: Mono = monoNow();

  constructor(options: ObserverOptions) {
    const { client, config, kubelet, log, metrics, runtime, sink } = options;
    const epochStart = sink.start;
    const profile = profileOf(runtime);
    this.#options = options;
    this.#comparison = new Comparison({ ...config, epochStart, profile, mintId: randomUUID });
    this.#nodeState = new NodeState(epochStart);
    this.#reporter = new Reporter({ ...options, comparison: this.#comparison, nodeState: this.#nodeState });
    this.#gaps = new Gaps(epochStart, randomUUID, (record) => this.#reporter.report(record));
    this.#throttledLog = new ThrottledLog(log, { linesPerMinute: 1 });
    this.#malformed = new MalformedMessages(metrics, this.#throttledLog);
    this.#statusQueries = new StatusQueries(client, {
      answered: (answer) => this.#comparison.answered(answer),
      malformed: (call) => this.#malformed.count(call),
    });
    this.#slowStatuses = new SlowStatusSearch(client, {
      timed: (result) => metrics.timedStatuses.inc({ result }),
      malformed: (call) => this.#malformed.count(call),
    });
    for (const gap of downtimeGaps(sink)) this.#reporter.report(gap);
    const shared = {
      epochStart,
      comparison: this.#comparison,
      gaps: this.#gaps,
      malformed: this.#malformed,
      metrics,
      nodeState: this.#nodeState,
      reporter: this.#reporter,
      log,
    };
    const confirmedFor = config.intervalModeConfirmed;
    this.#kubelet = kubelet === null ? null : new KubeletMonitor({ ...kubelet, ...shared, confirmedFor });
    const { startPodsWatch = (...watch) => new PodsWatch(...watch) } = options;
    this.#pods =
      config.podsApi === null
        ? null
        : startPodsWatch(
            {
              ...shared,
              socket: config.podsApi,
              maxSilence: maxSilence(config.overdueAfter),
              kubeletAnswered: () => lastAnswer(kubelet),
            },
            monoNow(),
          );
    this.#stream = new StreamMonitor(
      {
        ...shared,
        config,
        throttledLog: this.#throttledLog,
        kubelet: kubelet?.scraper ?? null,
        paceStore: options.paceStore,
        startReader: options.startReader,
      },
      {
        identified: (found, foundProfile) => this.#identified(found, foundProfile),
        eventReceived: (at) => this.#relists.eventReceived(at),
        changed: () => this.#reportChanges(),
        tick: () => this.#tick(),
      },
    );
    kubelet?.scraper.onChange(() => this.#kubeletScraped(kubelet.scraper));
    this.#relists = new RelistMonitor({
      ...shared,
      client,
      period: config.relistPeriod,
      profile,
      kubelet: this.#kubelet,
      slowStatuses: this.#slowStatuses,
      pressure: new PressureMeter(epochStart, log, options.readPressure ?? readPressure),
      onRelist: (recovered) => this.#relisted(recovered),
    });
    this.#stream.start();
    this.#relisting = this.#relists.run(this.#abort.signal);
  }

  /** Aborted when the machine was suspended: nothing can be dated in this epoch any more. */
  get suspended(): AbortSignal {
    return this.#suspended.signal;
  }

  get relistError(): string | null {
    return this.#nodeState.relistError;
  }

  get readerError(): string | null {
    return this.#stream.readerError;
  }

  get pendingEvents(): number {
    return this.#comparison.pending;
  }

  get trackedContainers(): number {
    return this.#comparison.tracked;
  }

  /** How often a container or sandbox was seen and not tracked because of the limit. */
  get untrackedContainers(): number {
    return this.#comparison.counters.untracked;
  }

  get overdueSuppressed(): number {
    return this.#comparison.counters.overdueSuppressed;
  }

  get kubeletCounters(): KubeletCounters {
    return this.#comparison.kubeletCounters;
  }

  /** Everything that was observed until then is reported: events, or a gap. */
  get observedUntil(): Mono {
    return this.#stream.observedUntil(monoNow());
  }

  /** Ends observing, and declares that nobody observes the node from here on. */
  async stop(): Promise<void> {
    this.#abort.abort();
    this.#statusQueries.stop();
    this.#slowStatuses.stop();
    this.#pods?.stop();
    await this.#stream.stop();
    await this.#relisting;
    const now = monoNow();
    const drained = this.#stream.observedUntil(now);
    const ran = this.#suspension.check();
    const observedUntil = ran !== null && ran < drained ? ran : drained;
    this.#reportChanges();
    this.#relists.reportMinute(now);
    this.#kubelet?.save();
    this.#throttledLog.flush();
    this.#gaps.stop(ran === null ? 'stopped' : 'suspended', observedUntil, now);
    this.#reportChanges();
  }

  #tick(): void {
    if (this.#abort.signal.aborted || this.suspended.aborted) return;
    const ran = this.#suspension.check();
    if (ran !== null) {
      this.#suspended.abort();
      return;
    }
    const { mono: now, wall } = readClocks();
    this.#stream.checkStall(now);
    this.#relists.checkRunning(now);
    this.#comparison.tick(now, wall);
    this.#stream.updateState(now);
    this.#kubelet?.tick(now);
    this.#pods?.tick(now);
    this.#searchSlowStatuses();
    this.#reportChanges();
    if (this.#relists.minuteHasPassed(now, wall) || this.#slowStatuses.hasNews) this.#endMinute(now);
    else if (between(this.#checkedAt, now) >= MINUTE) {
      this.#relists.checkPressure(now);
      this.#checkNow(now);
    }
  }

  #searchSlowStatuses(): void {
    const relists = this.#relists;
    if (relists.hang !== null || relists.areSlow || this.#kubelet?.relistsAreSlow === true)
      this.#slowStatuses.search(relists);
    else this.#slowStatuses.rest();
    this.#options.metrics.setListHang(this.#slowStatuses.hang);
  }

  /** The session first: after the minute it would be something that happens in the next one. */
  #endMinute(now: Mono): void {
    this.#stream.reportSession();
    this.#relists.reportMinute(now);
    this.#checkNow(now);
  }

  /** The checks that are due once a minute, however long nothing happens. */
  #checkNow(now: Mono): void {
    this.#checkedAt = now;
    this.#kubelet?.save();
    void this.#checkVersion();
    this.#throttledLog.flushDue();
  }

  #reportChanges(): void {
    const { queries, podQueries } = this.#reporter.reportChanges();
    for (const query of queries) this.#statusQueries.ask(query);
    for (const podUid of podQueries) this.#pods?.ask(podUid);
  }

  #relisted(recovered: boolean): void {
    // A runtime that was down may have been upgraded.
    if (recovered) void this.#checkVersion();
    this.#reportChanges();
  }

  #kubeletScraped(scraper: KubeletScraper): void {
    if (this.#abort.signal.aborted) return;
    this.#reporter.setKubeletVersion(scraper.version ?? '');
    this.#kubelet?.take(scraper.last);
    this.#reportChanges();
  }

  #identified(runtime: RuntimeVersion, profile: RuntimeProfile): void {
    this.#options.log.info(
      { ...runtime, profile: profile.name, subscription: profile.subscription, notes: profile.notes },
      'runtime identified',
    );
    // Each session identifies the runtime, mostly the same as before.
    if (!this.#reporter.setRuntime(runtime)) return;
    this.#comparison.runtimeReplaced(profile);
    this.#relists.setProfile(profile);
  }

  /** Without a session, which identifies the runtime itself, it may have been replaced in place. */
  async #checkVersion(): Promise<void> {
    if (this.#stream.hasSession) return;
    const runtime = await this.#options.client.version(VERSION_TIMEOUT_MS).catch((error: unknown) => {
      // One that does not answer fails the lists too, which report it.
      if (error instanceof CriError && error.code === 'MALFORMED') this.#malformed.count('Version');
      return null;
    });
    // A session may have begun meanwhile, and what it found is newer.
    if (runtime === null || this.#abort.signal.aborted || this.#stream.hasSession) return;
    if (this.#reporter.isRuntime(runtime)) return;
    this.#identified(runtime, profileOf(runtime));
    this.#stream.runtimeReplaced();
  }
}

/** When the last scrape began, if the kubelet answered it. */
function lastAnswer(kubelet: KubeletSource | null): Mono | null {
  const last = kubelet?.scraper.last ?? null;
  return last?.ok === true ? last.started : null;
}
