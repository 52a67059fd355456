/*
 * Which PLEG a kubelet of this version has, and what it is doing, from its own figures (kubelet pkg/kubelet/pleg/evented.go).
 *
 *   GenericOnly    before 1.26, or the gate EventedPLEG is off      Generic
 *   EventedCache   1.26 to 1.36: events fill the pod cache, and     Starting ── a stream was opened ──► Evented
 *                  relists come every 300 s                         either ── fifth error ──► Fallback, until the kubelet restarts
 *   EventedHint    from 1.37: a STOPPED asks for an early relist    Starting ──► EventedHint ── fifth error ──► HintDisabled
 *
 * Errors are counted over a whole kubelet run: no success resets them, and the loop ends with the fifth. The source up to 1.37 says so;
 * later kubelets may reconnect for ever, so nothing is assumed of them. 1.26 counts no connections: the only signs are how often it
 * relists, and the errors of its stream calls if it counts those (1.36 was seen not to).
 *
 * A kubelet that does not report what its mode follows from, or contradicts itself, is `Unknown`.
 */

import { FIRST_WITH_GATE, FIRST_WITH_HINTS, LAST_KNOWN, minorOf } from '../../../protocol/fallback.ts';
import type { Mode } from '../../../protocol/record.ts';
import type { KubeletFigures } from './metrics.ts';
import type { ScrapeSummary } from './scrapeSummary.ts';

export const MODELS = ['GenericOnly', 'EventedCache', 'EventedHint', 'Unknown'] as const;
type Model = (typeof MODELS)[number];

export interface Inference {
  readonly model: Model;
  readonly mode: Mode;
  /** Why this mode; see docs/explanation/modes.md. */
  readonly reason: string;
}

/** The state that earlier scrapes of the same kubelet run showed. */
export interface RunHistory {
  /** Relists per second, over long enough to be meaningful; null before. */
  readonly relistRate: number | null;
  /** An earlier scrape showed its stream open. */
  readonly wasConnected: boolean;
  /** It opened a stream after its fifth error. */
  readonly reconnects: boolean;
  /** It gave up its stream, which it does once. */
  readonly gaveUp: boolean;
  /** Its age at the first scrape, in seconds; null if it does not report its start time. */
  readonly firstSeenAge: number | null;
}

export const LAST_ERROR = 5;
/** Generic PLEG relists once per second plus the time it takes; evented 1.26–1.36 once in 300 s, and once for each error. */
const FAST_RELISTS = 0.2;
/** Relists per second over the whole run of a kubelet that was hardly ever evented. */
const NEVER_EVENTED_RELISTS = 0.8;
/** Five streams that ended as soon as they began lasted less than this together. */
const ENDED_AT_ONCE_S = 5;
/** A kubelet of at most this age that has given up did so at its start. */
const YOUNG_S = 60;

const FIRST_WITH_COUNTERS = 27;

/** Whether it has given up its event stream, and will not open another one before it restarts. */
export function hasGivenUp({ eventedPleg, version, connectionErrors = 0 }: KubeletFigures): boolean {
  const minor = minorOf(version ?? null);
  return eventedPleg === true && minor !== null && minor <= LAST_KNOWN && connectionErrors >= LAST_ERROR;
}

export function infer(scrape: ScrapeSummary, history: RunHistory): Inference {
  const minor = minorOf(scrape.version);
  if (scrape.gate === false) return generic('GateDisabled');
  if (minor === null) return unknown('Unknown', 'VersionNotReported');
  if (minor < FIRST_WITH_GATE) return generic('NoSuchGate');
  if (scrape.gate === null) return unknown('Unknown', 'GateNotReported');
  if (minor >= FIRST_WITH_HINTS) return hint(scrape, history, minor);
  return minor < FIRST_WITH_COUNTERS ? uncounted(scrape, history) : cache(scrape, history);
}

/**
 * Whether `kubelet_pleg_last_seen_seconds` says when PLEG was last active. With the gate on, the two health checks of a kubelet 1.26 to 1.36
 * (pkg/kubelet/pleg, Healthy) set it in turn: to the start of the last relist, which is up to 300 s ago, and at once to the present. A scrape
 * between the two would show a relist that hangs.
 */
export function saysWhenSeen({ eventedPleg, version }: KubeletFigures): boolean {
  return eventedPleg !== true || (minorOf(version ?? null) ?? 0) >= FIRST_WITH_HINTS;
}

const generic = (reason: string): Inference => ({ model: 'GenericOnly', mode: 'Generic', reason });
const unknown = (model: Model, reason: string): Inference => ({ model, mode: 'Unknown', reason });

function cache(scrape: ScrapeSummary, history: RunHistory): Inference {
  const model = 'EventedCache';
  if (scrape.errors === null) return unknown(model, 'CounterNotReported');
  if (scrape.errors >= LAST_ERROR) return { model, mode: 'Fallback', reason: whyFellBack(scrape, history) };
  if (scrape.successes === null) return unknown(model, 'CounterNotReported');
  // No known kubelet has errors left and yet relists like one without.
  if (relistsFast(history)) return unknown(model, 'RelistRateContradicts');
  if (scrape.successes === 0) return { model, mode: 'Starting', reason: 'NotConnectedYet' };
  return { model, mode: 'Evented', reason: 'Connected' };
}

/** A kubelet that relisted once a second throughout its run was never evented; one that relisted seldom for most of it was. */
function whyFellBack(scrape: ScrapeSummary, history: RunHistory): string {
  const reason = whyGivenUp(scrape, history);
  const age = scrape.processStart === null ? null : scrape.wall / 1e6 - scrape.processStart;
  if (reason !== 'NotSeen' || age === null || scrape.relists === null) return reason;
  const rate = scrape.relists / age;
  if (rate > NEVER_EVENTED_RELISTS) return 'RuntimeUnsupported';
  return rate < FAST_RELISTS ? 'StreamBroke' : 'NotSeen';
}

/** 1.26. It reports its errors once there are any. */
function uncounted(scrape: ScrapeSummary, history: RunHistory): Inference {
  const model = 'EventedCache';
  if (scrape.relists === null) return unknown(model, 'CounterNotReported');
  if ((scrape.streamEndErrors ?? 0) >= LAST_ERROR)
    return { model, mode: 'Fallback', reason: whyUncountedGaveUp(scrape) };
  if (history.gaveUp || relistsFast(history)) return { model, mode: 'Fallback', reason: 'RelistsOften' };
  if (history.relistRate === null) return { model, mode: 'Starting', reason: 'RelistRateNotKnownYet' };
  return { model, mode: 'Evented', reason: 'RelistsSeldom' };
}

function hint(scrape: ScrapeSummary, history: RunHistory, minor: number): Inference {
  const model = 'EventedHint';
  const { errors, successes } = scrape;
  if (errors === null) return unknown(model, 'CounterNotReported');
  if (errors >= LAST_ERROR && minor <= LAST_KNOWN)
    return { model, mode: 'HintDisabled', reason: whyGivenUp(scrape, history) };
  if (successes === null) return unknown(model, 'CounterNotReported');
  if (successes === 0 && errors < LAST_ERROR) return { model, mode: 'Starting', reason: 'NotConnectedYet' };
  // Every stream that ended is an error too: more successes than errors means that one is open.
  if (errors >= LAST_ERROR && successes <= errors && !history.reconnects)
    return unknown(model, 'RetriesNotKnown');
  return { model, mode: 'EventedHint', reason: 'Connected' };
}

const relistsFast = ({ relistRate }: RunHistory): boolean => relistRate !== null && relistRate > FAST_RELISTS;

/**
 * Why it gave up. A runtime without the stream lets all five open, and ends them within milliseconds; a stream that breaks while the
 * runtime is down opens less often than it ends.
 */
function whyGivenUp(scrape: ScrapeSummary, history: RunHistory): string {
  if (scrape.successes === 0) return 'RuntimeDownAtStart';
  if (scrape.successes !== scrape.errors || history.wasConnected) return 'StreamBroke';
  if (scrape.streamSeconds !== null)
    return scrape.streamSeconds < ENDED_AT_ONCE_S ? 'RuntimeUnsupported' : 'StreamBroke';
  if (history.firstSeenAge !== null && history.firstSeenAge < YOUNG_S) return 'RuntimeUnsupported';
  return 'NotSeen';
}

/** Without the count of connections a dead socket and an unimplemented stream look the same. */
const whyUncountedGaveUp = ({ streamSeconds }: ScrapeSummary): string =>
  (streamSeconds ?? 0) < ENDED_AT_ONCE_S ? 'NeverConnected' : 'StreamBroke';
