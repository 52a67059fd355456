/*
 * Watching a kubelet: a look at its metrics every 10 s, with jitter, sooner when somebody needs it and at once when its
 * connection is lost. A failed look ends nothing; it is logged when it begins and when it is over.
 */
import { jittered } from '../../../platform/backoff.ts';
import { monoNow } from '../../../platform/clock.ts';
import type { Logger } from '../../../platform/log.ts';
import { sleep } from '../../../platform/sleep.ts';
import { between, type Micros, type Mono, millis } from '../../../protocol/units.ts';
import type { KubeletClient, Scrape, ScrapeProblem } from './client.ts';
import { Gate, type GateAnswer } from './gate.ts';

const PERIOD: Micros = millis(10_000);
const JITTER = 0.1;
/** However often a look is asked for, there is at most one in this time. */
const LEAST: Micros = millis(1_000);

/** What others may know of the kubelet. */
export interface KubeletSide {
  /** Whether the kubelet's gate lets it listen to the runtime's events. */
  gate(now: Mono): GateAnswer;
  /** How often the kubelet's own event stream had begun at the last good look; undefined where it does not tell. */
  successes(): number | undefined;
  /** Asks for a look soon. */
  soon(): void;
  /** The listener is called after every look, and whenever something is not known any more. */
  onChange(listener: () => void): void;
}

/** The kubelet's side where there is no way to ask it. */
export const NO_KUBELET: KubeletSide = {
  gate: () => ({ is: 'unknown', why: 'there is no --kubelet-url to ask', before: null }),
  successes: () => undefined,
  soon: () => undefined,
  onChange: () => undefined,
};

export interface KubeletWatchOptions {
  readonly client: Pick<KubeletClient, 'scrape' | 'close' | 'onLost'>;
  readonly log: Logger;
  /** Told each look that failed. */
  readonly failed?: (problem: ScrapeProblem) => void;
  readonly period?: Micros;
  /** At least this long from one look to the next. */
  readonly least?: Micros;
}

export class KubeletWatch implements KubeletSide {
  /** The last look, good or not; null before the first. */
  last: Scrape | null = null;
  readonly #options: KubeletWatchOptions;
  readonly #gate = new Gate();
  readonly #listeners: (() => void)[] = [];
  /** Aborted when a scrape is wanted before the next one is due. */
  #wake = new AbortController();

  constructor(options: KubeletWatchOptions) {
    this.#options = options;
    options.client.onLost = () => {
      this.#gate.lost();
      this.#tell();
      this.soon();
    };
  }

  gate(now: Mono): GateAnswer {
    return this.#gate.answer(now);
  }

  successes(): number | undefined {
    return this.#gate.figures?.connectionSuccesses;
  }

  /** The kubelet's version as it told it last; undefined where it never did. */
  get version(): string | undefined {
    return this.#gate.figures?.version;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  soon(): void {
    this.#wake.abort();
  }

  /** Looks until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { client, period = PERIOD, least = LEAST } = this.#options;
    signal.addEventListener('abort', () => this.#wake.abort(), { once: true });
    while (!signal.aborted) {
      const began = monoNow();
      this.#wake = new AbortController();
      const scrape = await client.scrape(signal);
      if (signal.aborted) break;
      this.#take(scrape);
      const next = jittered(period, JITTER);
      await sleep((least - between(began, monoNow())) / 1000, signal);
      await sleep((next - between(began, monoNow())) / 1000, this.#wake.signal);
    }
    client.close();
  }

  #take(scrape: Scrape): void {
    this.#report(scrape);
    this.last = scrape;
    this.#gate.take(scrape);
    this.#tell();
  }

  #report(scrape: Scrape): void {
    const { log, failed } = this.#options;
    const { last } = this;
    if (!scrape.ok) failed?.(scrape.problem);
    if (scrape.ok) {
      if (last?.ok !== true) log.info({ kubelet: scrape.figures.version }, 'the kubelet tells its metrics');
    } else if (last === null || last.ok || last.problem !== scrape.problem) {
      log.warn(
        { reason: scrape.problem, error: scrape.message },
        'the metrics of the kubelet cannot be read',
      );
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
