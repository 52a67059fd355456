/*
 * The relist monitor: what relists find goes to the comparison; how long they take and why they fail goes to the node's state, the
 * gaps, the metrics and the minute.
 */
import type { RuntimeProfile } from '../../cri/profiles.ts';
import { readClocks, wallNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import type { Relist } from '../../protocol/observation.ts';
import { cleanText } from '../../protocol/text.ts';
import { between, type Micros, type Mono, millis, since, type Wall } from '../../protocol/units.ts';
import type { Comparison } from '../compare/comparison.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { Gaps } from './gaps.ts';
import type { KubeletMonitor } from './kubeletMonitor.ts';
import { ListGaps, SLOW_LIST } from './listGaps.ts';
import { type ListHang, ListHangs } from './listHangs.ts';
import type { MalformedMessages } from './malformedMessageCounts.ts';
import type { PressureMeter } from './nodePressure.ts';
import type { NodeState } from './nodeState.ts';
import { Relister, type RelisterOptions, type RelistFailure } from './relister.ts';
import { FIRST_MINUTE, MINUTE, RelistMinute, type RelistStats } from './relistMinute.ts';
import type { Reporter } from './reporter.ts';
import type { SlowStatusSearch } from './slowStatusSearch.ts';

const MAX_ERROR_LENGTH = 300;
/** Our lists are fast to a verdict on PLEG (store.pleg_verdict) if each takes less: one that does not ends a calm time. */
const FAST_LIST: Micros = millis(1_000);

export interface RelistMonitorOptions extends RelisterOptions {
  readonly epochStart: Mono;
  readonly comparison: Comparison;
  readonly gaps: Gaps;
  readonly malformed: MalformedMessages;
  readonly metrics: AgentMetrics;
  readonly nodeState: NodeState;
  readonly reporter: Reporter;
  readonly log: Logger;
  readonly kubelet: KubeletMonitor | null;
  readonly slowStatuses: Pick<SlowStatusSearch, 'takeMinute'>;
  readonly pressure: Pick<PressureMeter, 'takeMinute' | 'wasHigh'>;
  /** A relist succeeded; `recovered`: the one before had failed. To be reported now. */
  readonly onRelist: (recovered: boolean) => void;
}

export class RelistMonitor {
  readonly #options: RelistMonitorOptions;
  readonly #relister: Relister;
  readonly #listGaps: ListGaps;
  readonly #hangs = new ListHangs();
  #minute: RelistMinute;
  /** Up to when everything was decided by the records until that was last said. */
  #decided: Mono;
  #lastEvent: Mono | null = null;
  #last: Relist | null = null;
  #wasSlow = false;

  constructor(options: RelistMonitorOptions) {
    const { comparison, epochStart, gaps, malformed } = options;
    this.#options = options;
    this.#listGaps = new ListGaps(gaps);
    this.#minute = new RelistMinute({ now: epochStart, wall: wallNow() }, FIRST_MINUTE, comparison.counters);
    this.#decided = epochStart;
    options.reporter.beforeRecord(() => this.#somethingHappens());
    this.#relister = new Relister(options, {
      relisted: (relist, stats) => this.#relisted(relist, stats),
      failed: (failure) => this.#failed(failure),
      malformed: (call, messages) => malformed.count(call, messages),
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#relister.run(signal);
  }

  get areSlow(): boolean {
    return this.#wasSlow;
  }

  /** The last relist; null before the first. */
  get last(): Relist | null {
    return this.#last;
  }

  get areRunning(): boolean {
    return this.#relister.runningSince !== null;
  }

  /** The call that hangs; null while none does. */
  get hang(): ListHang | null {
    return this.#hangs.hang;
  }

  setProfile(profile: RuntimeProfile): void {
    this.#relister.setProfile(profile);
  }

  /** An event was compared that had been received at `at`. */
  eventReceived(at: Mono): void {
    this.#lastEvent = at;
    this.#relister.eventReceived();
  }

  checkRunning(now: Mono): void {
    const { nodeState } = this.#options;
    const { running, runningSince } = this.#relister;
    this.#hangs.tick(running, now);
    const hangs = this.#listGaps.checkRunning(runningSince, now);
    // A failure says more than that the next list hangs.
    if (hangs && nodeState.relistError === null)
      nodeState.setRelist(false, `the runtime has not answered ${running?.call ?? 'a list'} for 30 s`);
  }

  /** Whether the minute is over. To be called every second or so, once what the comparison found was reported. */
  minuteHasPassed(now: Mono, wall: Wall): boolean {
    const { comparison, kubelet } = this.#options;
    if (comparison.pending > 0 || this.#hangs.hang !== null || kubelet?.relistsAreSlow === true)
      this.#minute.disturb();
    this.#sayKnown();
    return this.#minute.isOver({ now, wall });
  }

  /** To be called once a minute: whether tasks have waited for long is read from files. */
  checkPressure(now: Mono): void {
    if (this.#options.pressure.wasHigh(now)) this.#minute.disturb();
  }

  #sayKnown(): void {
    const { comparison, epochStart, kubelet, reporter } = this.#options;
    const scraped = kubelet?.lastScraped ?? null;
    const decided = comparison.decidedUntil;
    this.#decided = decided;
    reporter.setKnown({
      decided: since(epochStart, decided),
      scraped: scraped === null ? null : since(epochStart, scraped),
    });
  }

  /** A minute that went on ends before the record of what happens. Decisions since then may be in records that are still to come. */
  #somethingHappens(): void {
    const { wall, mono: now } = readClocks();
    if (this.#minute.isGoingOn(now)) this.#endMinute({ now, wall }, this.#decided);
    this.#minute.disturb();
  }

  /** Reports the minute so far and begins the next. The findings of the comparison must have been reported: the minute says that they were. */
  reportMinute(now: Mono): void {
    this.#endMinute({ now, wall: wallNow() }, this.#options.comparison.decidedUntil);
    this.#sayKnown();
  }

  #endMinute(clocks: { readonly now: Mono; readonly wall: Wall }, decidedUntil: Mono): void {
    const { now } = clocks;
    const { comparison, epochStart, kubelet, reporter, slowStatuses } = this.#options;
    const pressure = this.#options.pressure.takeMinute(now);
    const ofKubelet = kubelet?.takeMinute();
    const kubeletLag = comparison.takeKubeletLag();
    const { statuses, slowest } = slowStatuses.takeMinute(epochStart);
    const others = {
      ...(ofKubelet === undefined ? {} : { kubelet: ofKubelet }),
      ...(statuses === null ? {} : { statuses }),
      ...(kubeletLag === null ? {} : { kubeletLag }),
      ...(pressure === undefined ? {} : { pressure }),
    };
    const { counters } = comparison;
    reporter.report(this.#minute.record(epochStart, clocks, { counters, decidedUntil }, others), slowest);
    this.#minute = new RelistMinute(clocks, MINUTE, counters);
  }

  #relisted(relist: Relist, stats: RelistStats): void {
    const { comparison, metrics, nodeState, onRelist } = this.#options;
    const recovered = nodeState.relistError !== null;
    this.#last = relist;
    this.#wasSlow = stats.took > SLOW_LIST;
    comparison.relisted(relist);
    const isWhole = relist.sandboxes.whole && relist.containers.whole;
    if (comparison.hasRecords || stats.took >= FAST_LIST || !isWhole) this.#somethingHappens();
    this.#minute.addRelist(relist, this.#lastEvent, stats);
    metrics.relistDuration.observe(stats.took / 1e6);
    metrics.listBytes.set({ list: 'sandboxes' }, stats.sandboxListBytes);
    metrics.listBytes.set({ list: 'containers' }, stats.containerListBytes);
    nodeState.setRelist(true, '');
    this.#hangs.answered(relist.containers.end);
    this.#listGaps.answered(relist.sandboxes.start, relist.containers.end);
    onRelist(recovered);
  }

  #failed(failure: RelistFailure): void {
    const { at, code, from, message } = failure;
    const { comparison, log, metrics, nodeState } = this.#options;
    this.#wasSlow = between(from, at) > SLOW_LIST;
    metrics.relistErrors.inc({ code });
    this.#somethingHappens();
    this.#minute.addFailure(failure, this.#lastEvent);
    comparison.listFailed();
    this.#hangs.failed(failure);
    nodeState.setRelist(false, cleanText(message, MAX_ERROR_LENGTH));
    if (this.#listGaps.failed(failure)) log.warn({ code, error: message }, 'relist failed');
  }
}
