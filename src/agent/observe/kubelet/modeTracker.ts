/*
 * The kubelet's mode over successive scrapes: every change of it, bounded by the scrapes around it and proven by their figures.
 *
 *   good scrape ──► what it shows becomes the mode
 *   failed scrape ──► the mode stays; if it is unknown, the reason says why
 *   good scrape of another kubelet run ──► the history starts again; a mode that lasts until the kubelet restarts is reported anew even
 *       if the next run is in it too
 *
 * Pure: scrapes in, changes out.
 */

import { PROOF_VERSION } from '../../../protocol/record.ts';
import { between, type Micros, type Mono, millis, mono, type Wall } from '../../../protocol/units.ts';
import type { Scrape } from './client.ts';
import { type Inference, infer, LAST_ERROR, type Mode, type RunHistory } from './modeInference.ts';
import { restartBetween, type ScrapeSummary, summarize } from './scrapeSummary.ts';

export interface ModeState extends Inference {
  /** When it was first seen to be in this mode. */
  readonly since: Mono;
  readonly streamErrors: number | null;
}

export interface ModeChange extends Inference {
  readonly from: Mode;
  /** It changed between these two. */
  readonly notBefore: Mono;
  readonly at: Mono;
  readonly proof: Readonly<Record<string, unknown>>;
}

/** What the previous agent saved. */
export interface SavedMode extends Inference {
  readonly scrape: ScrapeSummary;
  /** By that agent's wall clock. */
  readonly since: Wall;
  /** The machine has not rebooted since. */
  readonly sameBoot: boolean;
}

type Restart = 'start_time' | 'counter_fell' | 'machine' | null;

/** The rate of relists is meaningful only over at least this long. */
const MIN_RATE_SPAN: Micros = millis(30_000);

interface KubeletRun extends RunHistory {
  /** Between 30 and 60 s ago, if there is a scrape that old. */
  readonly anchor: ScrapeSummary;
  readonly nextAnchor: ScrapeSummary;
}

export class ModeTracker {
  #state: ModeState;
  #lastScrape: ScrapeSummary | null = null;
  #run: KubeletRun | null = null;
  #sameBoot = true;

  constructor(start: Mono, saved: SavedMode | null = null) {
    this.#state = {
      model: 'Unknown',
      mode: 'Unknown',
      reason: 'NotScrapedYet',
      since: start,
      streamErrors: null,
    };
    if (saved !== null) this.#restore(saved);
  }

  get state(): ModeState {
    return this.#state;
  }

  /** The last good scrape; null before. */
  get lastScrape(): ScrapeSummary | null {
    return this.#lastScrape;
  }

  /** Takes the scrapes in order. Returns null if the mode did not change. */
  take(scrape: Scrape): ModeChange | null {
    if (!scrape.ok) {
      if (this.#state.mode === 'Unknown') this.#state = { ...this.#state, reason: scrape.reason };
      return null;
    }
    const before = this.#lastScrape;
    const summary = summarize(scrape);
    const restart: Restart =
      before === null ? null : this.#sameBoot ? restartBetween(before, summary) : 'machine';
    this.#sameBoot = true;
    this.#lastScrape = summary;
    this.#run =
      before === null || this.#run === null || restart !== null
        ? startRun(summary)
        : continueRun(this.#run, before, summary);
    const inference = infer(summary, this.#run);
    if (inference.mode === 'Fallback') this.#run = { ...this.#run, gaveUp: true };
    return this.#conclude(inference, before, summary, restart);
  }

  #restore({ scrape, since, sameBoot, model, mode, reason }: SavedMode): void {
    this.#lastScrape = scrape;
    this.#sameBoot = sameBoot;
    this.#run = sameBoot
      ? { ...startRun(scrape), wasConnected: isConnected(scrape), gaveUp: mode === 'Fallback' }
      : null;
    const from = mono(scrape.ended - (scrape.wall - since));
    this.#state = { model, mode, reason, since: from, streamErrors: scrape.errors };
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
    };
    if (!changed) return null;
    return {
      ...now,
      reason,
      from,
      notBefore: before?.started ?? startedAt(summary) ?? summary.started,
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
