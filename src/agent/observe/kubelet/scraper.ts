/*
 * The kubelet scraper: scrapes the kubelet's metrics every 10 s with jitter, sooner on request and as soon as its connection is lost.
 * Failures do not end it: the next scrape comes after a second, then after twice as long each time, up to the period. They are logged when
 * they start, when their reason changes, and when they end.
 */
import { Backoff, jittered } from '../../../platform/backoff.ts';
import { monoNow } from '../../../platform/clock.ts';
import type { Logger } from '../../../platform/log.ts';
import { sleep } from '../../../platform/sleep.ts';
import { between, type Micros, type Mono, millis } from '../../../protocol/units.ts';
import type { KubeletClient, Scrape } from './client.ts';
import { FeatureGate, type GateStatus } from './gate.ts';
import { hasGivenUp } from './modeInference.ts';
import type { ScrapeFailure } from './scrapeError.ts';

const PERIOD: Micros = millis(10_000);
const JITTER = 0.1;
/** However often one is requested, there is at most one scrape in this time. */
const MIN_PERIOD: Micros = millis(1_000);

export interface KubeletView {
  /** Whether the kubelet's gate lets it subscribe to the runtime's events. */
  gate(now: Mono): GateStatus;
  /** How often the kubelet had opened its own event stream at the last good scrape; undefined if not reported. */
  connectionSuccesses(): number | undefined;
  /** Whether it is known not to open its event stream again until it restarts. */
  hasGivenUp(now: Mono): boolean;
  /** Requests a scrape before the next one is due. */
  scrapeSoon(): void;
  /** Calls the listener after every scrape, and when the connection is lost. */
  onChange(listener: () => void): void;
}

/** Without `--kubelet-url`. */
export const NO_KUBELET: KubeletView = {
  gate: () => ({ is: 'unknown', why: 'there is no --kubelet-url', before: null }),
  connectionSuccesses: () => undefined,
  hasGivenUp: () => false,
  scrapeSoon: () => undefined,
  onChange: () => undefined,
};

export interface KubeletScraperOptions {
  readonly client: Pick<KubeletClient, 'scrape' | 'close' | 'onLost'>;
  readonly log: Logger;
  readonly onFailure?: (reason: ScrapeFailure) => void;
  readonly period?: Micros;
  readonly minPeriod?: Micros;
}

export class KubeletScraper implements KubeletView {
  /** The last scrape, good or failed; null before the first. */
  last: Scrape | null = null;
  readonly #options: KubeletScraperOptions;
  readonly #gate = new FeatureGate();
  readonly #listeners: (() => void)[] = [];
  /** Aborted when a scrape is wanted before the next one is due. */
  #wake = new AbortController();
  #hasWarned = false;

  constructor(options: KubeletScraperOptions) {
    this.#options = options;
    options.client.onLost = () => {
      this.#gate.connectionLost();
      this.#notify();
      this.scrapeSoon();
    };
  }

  gate(now: Mono): GateStatus {
    return this.#gate.status(now);
  }

  connectionSuccesses(): number | undefined {
    return this.#gate.figures?.connectionSuccesses;
  }

  hasGivenUp(now: Mono): boolean {
    const { figures } = this.#gate;
    return this.gate(now).is === 'on' && figures !== null && hasGivenUp(figures);
  }

  /** As last reported; undefined if it never was. */
  get version(): string | undefined {
    return this.#gate.figures?.version;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  scrapeSoon(): void {
    this.#wake.abort();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { client, period = PERIOD, minPeriod = MIN_PERIOD } = this.#options;
    const retry = new Backoff({ firstMs: minPeriod / 1000, maxMs: period / 1000 });
    signal.addEventListener('abort', () => this.#wake.abort(), { once: true });
    while (!signal.aborted) {
      const start = monoNow();
      this.#wake = new AbortController();
      const scrape = await client.scrape(signal);
      if (signal.aborted) break;
      this.#take(scrape);
      if (scrape.ok) retry.reset();
      const next = scrape.ok ? jittered(period, JITTER) : millis(retry.next());
      await sleep((minPeriod - between(start, monoNow())) / 1000, signal);
      await sleep((next - between(start, monoNow())) / 1000, this.#wake.signal);
    }
    client.close();
  }

  #take(scrape: Scrape): void {
    this.#logOutcome(scrape);
    this.last = scrape;
    this.#gate.take(scrape);
    this.#notify();
  }

  #logOutcome(scrape: Scrape): void {
    const { log, onFailure } = this.#options;
    const { last } = this;
    if (!scrape.ok) onFailure?.(scrape.reason);
    if (scrape.ok) {
      const { figures, identity } = scrape;
      if (last?.ok !== true) log.info({ kubelet: figures.version, identity }, 'kubelet scraped');
      if (identity === 'Unverified' && !this.#hasWarned) {
        this.#hasWarned = true;
        log.warn(
          { identity },
          "no known authority signed the kubelet's certificate; it is accepted because it answers at an address of this node",
        );
      }
    } else if (last === null || last.ok || last.reason !== scrape.reason) {
      log.warn({ reason: scrape.reason, error: scrape.message }, 'kubelet scrape failed');
    }
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
