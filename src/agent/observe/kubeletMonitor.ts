/*
 * The kubelet monitor: what scrapes of the kubelet show, as records: changes of its mode, its minutes, and gaps in which it could not
 * be scraped.
 */
import { monoNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import { fallbackConsequence } from '../../protocol/fallback.ts';
import type { KubeletMinute } from '../../protocol/record.ts';
import { type Micros, type Mono, mono, since } from '../../protocol/units.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { Gaps } from './gaps.ts';
import type { Scrape } from './kubelet/client.ts';
import { KubeletMinutes } from './kubelet/kubeletMinute.ts';
import { type ModeChange, type ModeState, ModeTracker, type SavedMode } from './kubelet/modeTracker.ts';
import { RelistSpeed } from './kubelet/relistSpeed.ts';
import { clampOffset, type NodeState } from './nodeState.ts';
import type { Reporter } from './reporter.ts';

export interface ModeStore {
  save(tracker: Pick<ModeTracker, 'state' | 'lastScrape'>): void;
}

interface KubeletMonitorOptions {
  readonly epochStart: Mono;
  /** How long a mode is known without a scrape that confirms it. */
  readonly confirmedFor?: Micros;
  readonly saved: SavedMode | null;
  readonly store: ModeStore;
  readonly gaps: Gaps;
  readonly log: Pick<Logger, 'info'>;
  readonly metrics: Pick<AgentMetrics, 'setKubeletIdentity' | 'setKubeletMode'>;
  readonly nodeState: Pick<NodeState, 'setKubeletIdentity' | 'setMode'>;
  readonly reporter: Pick<Reporter, 'report' | 'endCalm'>;
}

export class KubeletMonitor {
  readonly #options: KubeletMonitorOptions;
  readonly #tracker: ModeTracker;
  readonly #minutes: KubeletMinutes;
  readonly #relists = new RelistSpeed();
  #last: Scrape | null = null;
  #published: ModeState | null = null;
  /** Only what this agent saw itself is saved: the previous agent's times may be on the clock of another boot. */
  #hasScraped = false;

  constructor(options: KubeletMonitorOptions) {
    this.#options = options;
    this.#tracker = new ModeTracker(options.epochStart, options.saved, options.confirmedFor);
    this.#minutes = new KubeletMinutes(options.epochStart);
    this.#publishMode();
  }

  /** Takes the latest scrape; ignores one that it has taken already. */
  take(scrape: Scrape | null): void {
    if (scrape !== null && scrape !== this.#last) this.#takeNew(scrape);
    this.#publishMode();
  }

  /** Ends a mode that no scrape confirms any more. To be called every second or so. */
  tick(now: Mono): void {
    const change = this.#tracker.expire(now);
    if (change !== null) this.#changed(change);
    this.#publishMode();
  }

  /** Whether its relists are slow, as far as the last scrape says. */
  get relistsAreSlow(): boolean {
    return this.#relists.areSlow;
  }

  /** When it was last scraped; null before the first time. */
  get lastScraped(): Mono | null {
    return this.#minutes.lastScraped;
  }

  /** Keeps the mode for the next agent. To be called once a minute. */
  save(): void {
    if (this.#hasScraped) this.#options.store.save(this.#tracker);
  }

  takeMinute(): KubeletMinute | undefined {
    return this.#minutes.take();
  }

  #takeNew(scrape: Scrape): void {
    const { epochStart, gaps } = this.#options;
    const before = this.#tracker.lastScrape;
    this.#last = scrape;
    this.#relists.add(scrape);
    // A minute of slow relists is of them alone.
    if (this.#relists.areSlow) this.#options.reporter.endCalm();
    this.tick(scrape.ended);
    const change = this.#tracker.take(scrape);
    this.#options.metrics.setKubeletIdentity(scrape.ok ? scrape.identity : null);
    if (scrape.ok) {
      this.#hasScraped = true;
      this.#options.nodeState.setKubeletIdentity(scrape.identity);
      this.#minutes.add(scrape);
      gaps.close('kubelet', scrape.started, monoNow());
    } else {
      const from = Math.max(before?.ended ?? 0, epochStart);
      gaps.open('kubelet', snakeCase(scrape.reason), mono(from), scrape.ended);
    }
    if (change !== null) this.#changed(change);
  }

  #changed(change: ModeChange): void {
    this.#minutes.modeChanged();
    this.#options.store.save(this.#tracker);
    this.#reportChange(change);
  }

  #reportChange({ model, mode, reason, from, notBefore, at, proof }: ModeChange): void {
    const { epochStart, log, reporter } = this.#options;
    log.info({ model, from, to: mode, reason }, 'kubelet mode changed');
    reporter.report({
      type: 'mode_change',
      t: since(epochStart, at),
      notBefore: clampOffset(since(epochStart, notBefore)),
      model,
      from,
      to: mode,
      reason,
      proof,
    });
  }

  #publishMode(): void {
    const { metrics, nodeState } = this.#options;
    const { state } = this.#tracker;
    if (state === this.#published) return;
    this.#published = state;
    nodeState.setMode(state);
    const { mode, reason } = state;
    const kubeletVersion = this.#tracker.lastScrape?.version ?? null;
    metrics.setKubeletMode(mode, fallbackConsequence({ mode, reason, kubeletVersion }));
  }
}

const snakeCase = (name: string): string => name.replaceAll(/(?!^)[A-Z]/g, (c) => `_${c}`).toLowerCase();
