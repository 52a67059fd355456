/*
 * The kubelet's mode over successive scrapes: every change of it, bounded by the scrapes around it and proven by their figures. SPEC.md has the
 * table of its transitions.
 *
 *   good scrape ──► what it shows becomes the mode
 *   failed scrape ──► the mode stays; if it is unknown, the reason says why
 *   no good scrape for two minutes ──► the mode is `Unknown` (`NotObserved`) since the last good scrape
 *   good scrape of another kubelet run ──► the history starts again; a mode that lasts until the kubelet restarts is reported anew even
 *       if the next run is in it too
 *
 * The mode is unknown until the first good scrape of this agent. The mode that the previous agent saved is only compared with that scrape: a mode
 * that both saw within two minutes lasted in between, and a fallback between them is reported with what preceded it.
 *
 * Pure: scrapes in, changes out.
 */

import { type Mode, PROOF_VERSION } from '../../../protocol/record.ts';
import { between, type Micros, type Mono, millis, mono, type Wall } from '../../../protocol/units.ts';
import type { Scrape } from './client.ts';
import type { GoodScrape } from './gate.ts';
import { type Inference, infer, LAST_ERROR, type RunHistory } from './modeInference.ts';
import type { ScrapeFailure } from './scrapeError.ts';
import { restartBetween, type ScrapeSummary, summarize } from './scrapeSummary.ts';

export interface ModeState extends Inference {
  /** When it was first seen to be in this mode. */
  readonly since: Mono;
  readonly streamErrors: number | null;
  /** Why the last scrape failed, while that leaves the mode unknown. */
  readonly scrapeError: ScrapeFailure | null;
}

export interface ModeChange extends Inference {
  readonly from: Mode;
  /** It changed between these two. */
  readonly notBefore: Mono;
  readonly at: Mono;
  readonly proof: Readonly<Record<string, unknown>>;
}

export interface SavedMode extends Inference {
  readonly scrape: ScrapeSummary;
  /** By that agent's wall clock. */
  readonly since: Wall;
  /** The machine has not rebooted since. */
  readonly sameBoot: boolean;
}

type Restart = 'start_time' | 'counter_fell' | 'machine' | null;

const NOT_OBSERVED = 'NotObserved';
/** A mode that no good scrape has confirmed for this long is unknown. */
export const CONFIRMED_FOR: Micros = millis(120_000);
/** The rate of relists is meaningful only over at least this long. */
const MIN_RATE_SPAN: Micros = millis(30_000);

interface KubeletRun extends RunHistory {
  /** Between 30 and 60 s ago, if there is a scrape that old. */
  readonly anchor: ScrapeSummary;
  readonly nextAnchor: ScrapeSummary;
}

export class ModeTracker {
  readonly #confirmedFor: Micros;
  #state: ModeState;
  /** The mode that the previous agent saved, until the first good scrape. */
  #saved: SavedMode | null;
  /** When this agent last saw the mode; its start before that. */
  #confirmed: Mono;
  #lastScrape: ScrapeSummary | null = null;
  #run: KubeletRun | null = null;
  #sameBoot = true;

  constructor(start: Mono, saved: SavedMode | null = null, confirmedFor: Micros = CONFIRMED_FOR) {
    this.#confirmedFor = confirmedFor;
    this.#confirmed = start;
    this.#saved = saved;
    this.#state = { ...unknown('NotScrapedYet'), since: start };
    if (saved === null) return;
    const { mode, sameBoot, scrape } = saved;
    this.#lastScrape = scrape;
    this.#sameBoot = sameBoot;
    this.#run = sameBoot
      ? { ...startRun(scrape), wasConnected: isConnected(scrape), gaveUp: mode === 'Fallback' }
      : null;
  }

  get state(): ModeState {
    return this.#state;
  }

  /** The last good scrape; null before. */
  get lastScrape(): ScrapeSummary | null {
    return this.#lastScrape;
  }

  /**
   * Takes the scrapes in order, each after {@link expire} was called with the time of its end. Returns null if the mode did not
   * change.
   */
  take(scrape: Scrape): ModeChange | null {
    if (scrape.ok) return this.#takeGood(scrape);
    if (this.#state.mode === 'Unknown') this.#state = this.#withError(scrape.reason);
    return null;
  }

  /** Ends a mode that no scrape has confirmed for two minutes. Returns null if the mode did not change. */
  expire(now: Mono): ModeChange | null {
    const { mode: from, scrapeError } = this.#state;
    if (this.#state.reason === NOT_OBSERVED || between(this.#confirmed, now) <= this.#confirmedFor)
      return null;
    const since = from === 'Unknown' ? this.#state.since : this.#confirmed;
    this.#state = { ...unknown(NOT_OBSERVED), since, scrapeError };
    const last = this.#lastScrape;
    if (from === 'Unknown' || last === null) return null;
    const { model, mode, reason } = this.#state;
    const proof = { v: PROOF_VERSION, before: figuresOf(last), after: null };
    return { model, mode, reason, from, notBefore: last.ended, at: last.ended, proof };
  }

  #takeGood(scrape: GoodScrape): ModeChange | null {
    const before = this.#lastScrape;
    const summary = summarize(scrape);
    this.#resume(summary);
    const restart: Restart =
      before === null ? null : this.#sameBoot ? restartBetween(before, summary) : 'machine';
    this.#sameBoot = true;
    this.#lastScrape = summary;
    this.#confirmed = summary.ended;
    this.#run =
      before === null || this.#run === null || restart !== null
        ? startRun(summary)
        : continueRun(this.#run, before, summary);
    const inference = infer(summary, this.#run);
    if (inference.mode === 'Fallback') this.#run = { ...this.#run, gaveUp: true };
    return this.#conclude(inference, before, summary, restart);
  }

  /** The first good scrape of this agent: the saved mode lasted until now if it was seen at most two minutes ago. */
  #resume(now: ScrapeSummary): void {
    if (this.#saved === null) return;
    const { scrape, since, model, mode, reason } = this.#saved;
    this.#saved = null;
    if (between(scrape.ended, now.ended) > this.#confirmedFor) return;
    const from = mono(scrape.ended - (scrape.wall - since));
    this.#state = { model, mode, reason, since: from, streamErrors: scrape.errors, scrapeError: null };
  }

  /** The reason `NotObserved` stays: the error says why. */
  #withError(scrapeError: ScrapeFailure): ModeState {
    const { reason } = this.#state;
    return { ...this.#state, reason: reason === NOT_OBSERVED ? reason : scrapeError, scrapeError };
  }

  #conclude(
    now: Inference,
    before: ScrapeSummary | null,
    summary: ScrapeSummary,
    restart: Restart,
  ): ModeChange | null {
    const { mode: from, since } = this.#state;
    const again = restart !== null && (now.mode === 'Fallback' || now.mode === 'HintDisabled');
    const changed = now.mode !== from || again;
    const reason = changed ? whyChanged(from, now, restart) : now.reason;
    const streamErrors = summary.errors ?? summary.streamEndErrors;
    // A mode that lasts keeps the reason with which it began.
    const lasts = !changed && restart === null && now.mode !== 'Unknown';
    this.#state = {
      ...now,
      reason: lasts ? this.#state.reason : reason,
      since: changed ? summary.ended : since,
      streamErrors,
      scrapeError: null,
    };
    if (!changed) return null;
    return {
      ...now,
      reason,
      from,
      notBefore: changedAfter(before, summary, restart),
      at: summary.ended,
      proof: {
        v: PROOF_VERSION,
        before: before === null ? null : figuresOf(before),
        after: figuresOf(summary),
        kubelet_restarted: restart,
        relists_per_second: before === null || restart !== null ? null : rateOf(before, summary),
        relists_per_second_before: this.#rateBefore(restart),
      },
    };
  }

  /** Over the half minute or more before this scrape. */
  #rateBefore(restart: Restart): number | null {
    return restart === null ? (this.#run?.relistRate ?? null) : null;
  }
}

const unknown = (reason: string): Omit<ModeState, 'since'> => ({
  model: 'Unknown',
  mode: 'Unknown',
  reason,
  streamErrors: null,
  scrapeError: null,
});

/** A restart explains a good mode better than that it is connected; it does not explain a bad one. */
function whyChanged(from: Mode, now: Inference, restart: Restart): string {
  const good = now.mode === 'Starting' || now.mode === 'Evented' || now.mode === 'EventedHint';
  if (!good || restart === null || from === 'Unknown') return now.reason;
  return from === 'Generic' ? 'GateEnabled' : 'KubeletRestarted';
}

function startRun(summary: ScrapeSummary): KubeletRun {
  const firstSeenAge = summary.processStart === null ? null : summary.wall / 1e6 - summary.processStart;
  return {
    relistRate: null,
    wasConnected: false,
    reconnects: false,
    gaveUp: false,
    firstSeenAge,
    anchor: summary,
    nextAnchor: summary,
  };
}

function continueRun(run: KubeletRun, before: ScrapeSummary, summary: ScrapeSummary): KubeletRun {
  const turn = between(run.nextAnchor.ended, summary.ended) >= MIN_RATE_SPAN;
  const anchor = turn ? run.nextAnchor : run.anchor;
  const longEnough = between(anchor.ended, summary.ended) >= MIN_RATE_SPAN;
  const opened = (summary.successes ?? 0) > (before.successes ?? Number.POSITIVE_INFINITY);
  return {
    ...run,
    anchor,
    nextAnchor: turn ? summary : run.nextAnchor,
    relistRate: longEnough ? rateOf(anchor, summary) : run.relistRate,
    wasConnected: run.wasConnected || isConnected(before),
    reconnects: run.reconnects || (opened && (before.errors ?? 0) >= LAST_ERROR),
  };
}

/** Every stream that ended is an error too: more successes than errors means that one is open. */
const isConnected = ({ successes, errors }: ScrapeSummary): boolean =>
  successes !== null && errors !== null && successes > errors;

function rateOf(from: ScrapeSummary, to: ScrapeSummary): number | null {
  const span = between(from.ended, to.ended) / 1e6;
  if (from.relists === null || to.relists === null || span <= 0) return null;
  return Math.round(((to.relists - from.relists) / span) * 1000) / 1000;
}

/** When the kubelet started, on the monotonic clock: its mode is no older. */
function startedAt({ processStart, wall, ended }: ScrapeSummary): Mono | null {
  if (processStart === null) return null;
  const age = wall - processStart * 1e6;
  return age < 0 ? null : mono(ended - Math.round(age));
}

/** A mode that a restart brought is no older than the kubelet that it brought. */
function changedAfter(before: ScrapeSummary | null, now: ScrapeSummary, restart: Restart): Mono {
  const started = startedAt(now);
  if (before === null) return started ?? now.started;
  const isStartKnown = restart === 'start_time' || restart === 'machine';
  return isStartKnown && started !== null && started > before.started ? started : before.started;
}

/** The kubelet's figures for the proof, with the wall-clock time. */
function figuresOf({ started: _started, ended: _ended, wall, ...figures }: ScrapeSummary) {
  const { version, gate, processStart, errors, successes, relists } = figures;
  return {
    at: new Date(wall / 1000).toISOString(),
    version,
    gate,
    process_start: processStart,
    errors,
    successes,
    stream_ends: figures.streamEnds,
    stream_end_errors: figures.streamEndErrors,
    stream_seconds: figures.streamSeconds,
    relists,
  };
}
