/*
 * The kubelet's mode over successive looks: every change of it, bounded by the looks around it and proven by their figures.
 *
 *   good look ──► what it shows becomes the mode
 *   failed look ──► nothing ends; where nothing was known, the reason says why
 *   good look at another life of the kubelet ──► what the life before showed counts no more; a mode that is given up for the
 *       life of a kubelet is told anew even where the next one is in it too
 *
 * Pure: looks come in, changes go out.
 */

import { between, type Micros, type Mono, millis, mono, type Wall } from '../../../protocol/units.ts';
import { PROOF_VERSION } from '../../compare/findings.ts';
import type { Scrape } from './client.ts';
import { type Inference, infer, LAST_ERROR, type Mode, type Past } from './modeInference.ts';
import { type Look, lookOf, restartBetween } from './scrapeSummary.ts';

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

/** What an agent before this one knew. */
export interface Remembered extends Inference {
  readonly look: Look;
  /** Since when, as that agent's wall clock had it. */
  readonly since: Wall;
  /** The machine was not restarted since. */
  readonly sameBoot: boolean;
}

type Restart = 'start_time' | 'counter_fell' | 'machine' | null;

/** Over at least this long relists are counted before their rate means something. */
const LEAST_RATE_SPAN: Micros = millis(30_000);

interface Life extends Past {
  /** Between 30 and 60 s ago, where there are looks that old. */
  readonly anchor: Look;
  readonly nextAnchor: Look;
}

export class ModeTracker {
  #state: ModeState;
  #look: Look | null = null;
  #life: Life | null = null;
  #sameBoot = true;

  constructor(start: Mono, remembered: Remembered | null = null) {
    this.#state = {
      model: 'Unknown',
      mode: 'Unknown',
      reason: 'NotAskedYet',
      since: start,
      streamErrors: null,
    };
    if (remembered !== null) this.#recall(remembered);
  }

  get state(): ModeState {
    return this.#state;
  }

  /** The last good look; null before. */
  get look(): Look | null {
    return this.#look;
  }

  /** Takes the result of a look, in the order in which they were made. Null where the mode is what it was. */
  take(scrape: Scrape): ModeChange | null {
    if (!scrape.ok) {
      if (this.#state.mode === 'Unknown') this.#state = { ...this.#state, reason: scrape.problem };
      return null;
    }
    const before = this.#look;
    const look = lookOf(scrape);
    const restart: Restart =
      before === null ? null : this.#sameBoot ? restartBetween(before, look) : 'machine';
    this.#sameBoot = true;
    this.#look = look;
    this.#life =
      before === null || this.#life === null || restart !== null
        ? begin(look)
        : grow(this.#life, before, look);
    const inference = infer(look, this.#life);
    if (inference.mode === 'Fallback') this.#life = { ...this.#life, gaveUp: true };
    return this.#conclude(inference, before, look, restart);
  }

  #recall({ look, since, sameBoot, model, mode, reason }: Remembered): void {
    this.#look = look;
    this.#sameBoot = sameBoot;
    this.#life = sameBoot
      ? { ...begin(look), wasConnected: isConnected(look), gaveUp: mode === 'Fallback' }
      : null;
    const from = mono(look.ended - (look.wall - since));
    this.#state = { model, mode, reason, since: from, streamErrors: look.errors };
  }

  #conclude(now: Inference, before: Look | null, look: Look, restart: Restart): ModeChange | null {
    const { mode: from, since } = this.#state;
    const again = restart !== null && (now.mode === 'Fallback' || now.mode === 'HintDisabled');
    const changed = now.mode !== from || again;
    const reason = changed ? whyChanged(from, now, restart) : now.reason;
    const streamErrors = look.errors ?? look.streamEndErrors;
    // Of a mode that lasts is said what was said when it began.
    const lasts = !changed && restart === null && now.mode !== 'Unknown';
    this.#state = {
      ...now,
      reason: lasts ? this.#state.reason : reason,
      since: changed ? look.ended : since,
      streamErrors,
    };
    if (!changed) return null;
    return {
      ...now,
      reason,
      from,
      notBefore: before?.started ?? bornAt(look) ?? look.started,
      at: look.ended,
      proof: {
        v: PROOF_VERSION,
        before: before === null ? null : figuresOf(before),
        after: figuresOf(look),
        kubelet_restarted: restart,
        relists_per_second: before === null || restart !== null ? null : rateOf(before, look),
        relists_per_second_before: this.#rateBefore(restart),
      },
    };
  }

  /** Over the half minute or more that led to this look. */
  #rateBefore(restart: Restart): number | null {
    return restart === null ? (this.#life?.relistRate ?? null) : null;
  }
}

/** A restart says more of a good mode than that it is connected; of a bad one it says nothing. */
function whyChanged(from: Mode, now: Inference, restart: Restart): string {
  const good = now.mode === 'Starting' || now.mode === 'Evented' || now.mode === 'EventedHint';
  if (!good || restart === null || from === 'Unknown') return now.reason;
  return from === 'Generic' ? 'GateEnabled' : 'KubeletRestarted';
}

function begin(look: Look): Life {
  const firstSeenAge = look.processStart === null ? null : look.wall / 1e6 - look.processStart;
  return {
    relistRate: null,
    wasConnected: false,
    reconnects: false,
    gaveUp: false,
    firstSeenAge,
    anchor: look,
    nextAnchor: look,
  };
}

function grow(life: Life, before: Look, look: Look): Life {
  const turn = between(life.nextAnchor.ended, look.ended) >= LEAST_RATE_SPAN;
  const anchor = turn ? life.nextAnchor : life.anchor;
  const longEnough = between(anchor.ended, look.ended) >= LEAST_RATE_SPAN;
  const opened = (look.successes ?? 0) > (before.successes ?? Number.POSITIVE_INFINITY);
  return {
    ...life,
    anchor,
    nextAnchor: turn ? look : life.nextAnchor,
    relistRate: longEnough ? rateOf(anchor, look) : life.relistRate,
    wasConnected: life.wasConnected || isConnected(before),
    reconnects: life.reconnects || (opened && (before.errors ?? 0) >= LAST_ERROR),
  };
}

/** Every stream that ended is an error too: more successes than errors means that one is open. */
const isConnected = ({ successes, errors }: Look): boolean =>
  successes !== null && errors !== null && successes > errors;

function rateOf(from: Look, to: Look): number | null {
  const span = between(from.ended, to.ended) / 1e6;
  if (from.relists === null || to.relists === null || span <= 0) return null;
  return Math.round(((to.relists - from.relists) / span) * 1000) / 1000;
}

/** When the kubelet began, on the monotonic clock: its mode is no older. */
function bornAt({ processStart, wall, ended }: Look): Mono | null {
  if (processStart === null) return null;
  const age = wall - processStart * 1e6;
  return age < 0 ? null : mono(ended - Math.round(age));
}

/** As the proof has them: the kubelet's figures, and the time by the wall clock. */
function figuresOf({ started: _started, ended: _ended, wall, ...figures }: Look) {
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
