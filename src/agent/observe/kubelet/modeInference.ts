/*
 * Which PLEG a kubelet of this version has, and what it is doing, from its own figures (kubelet pkg/kubelet/pleg/evented.go).
 *
 *   GenericOnly    before 1.26, or the gate EventedPLEG is off      Generic
 *   EventedCache   1.26 to 1.36: events fill the pod cache, and     Starting ── a stream was opened ──► Evented
 *                  relists come every 300 s                         either ── fifth error ──► Fallback, until the kubelet restarts
 *   EventedHint    from 1.37: a STOPPED asks for an early relist    Starting ──► EventedHint ── fifth error ──► HintDisabled
 *
 * The errors are counted over the whole life of a kubelet: no success resets them, and the loop ends with the fifth. That is
 * read in the source up to 1.37; of later kubelets it is not assumed, they may reconnect for ever. 1.26 counts no connections: how
 * often it relists is the only sign, and the errors of its stream calls where it counts those (1.36 was seen not to).
 *
 * `Unknown` is said of a kubelet that does not tell what its mode follows from, and of one that contradicts itself.
 */
import type { Look } from './scrapeSummary.ts';

export const MODELS = ['GenericOnly', 'EventedCache', 'EventedHint', 'Unknown'] as const;
type Model = (typeof MODELS)[number];

export const MODES = [
  'Generic',
  'Starting',
  'Evented',
  'Fallback',
  'EventedHint',
  'HintDisabled',
  'Unknown',
] as const;
export type Mode = (typeof MODES)[number];

export interface Inference {
  readonly model: Model;
  readonly mode: Mode;
  /** Why this mode; see docs/explanation/modes.md. */
  readonly reason: string;
}

/** What the looks before this one at the same life of the kubelet showed. */
export interface Past {
  /** Relists in a second, over long enough to mean something; null before. */
  readonly relistRate: number | null;
  /** At an earlier look its stream had been opened, and had errors left. */
  readonly wasConnected: boolean;
  /** It opened streams after its fifth error: it reconnects. */
  readonly reconnects: boolean;
  /** It gave its stream up, which it does once. */
  readonly gaveUp: boolean;
  /** Its age at the first look, in seconds; null where it does not tell since when it runs. */
  readonly firstSeenAge: number | null;
}

export const LAST_ERROR = 5;
/** Generic PLEG relists once in a second and the time it takes; evented 1.26–1.36 once in 300 s, and once for each error. */
const FAST_RELISTS = 0.2;
/** Relists in a second over the whole life of a kubelet that was hardly ever evented. */
const ALL_ITS_LIFE = 0.8;
/** Five streams that ended as soon as they began lived less than this together. */
const ENDED_AT_ONCE_S = 5;
/** What a kubelet of this age has given up was given up at its start. */
const YOUNG_S = 60;

const FIRST_WITH_GATE = 26;
const FIRST_WITH_COUNTERS = 27;
const FIRST_WITH_HINTS = 37;
const LAST_KNOWN = 37;

export function infer(look: Look, past: Past): Inference {
  const minor = minorOf(look.version);
  if (look.gate === false) return generic('GateDisabled');
  if (minor === null) return unknown('Unknown', 'VersionNotTold');
  if (minor < FIRST_WITH_GATE) return generic('NoSuchGate');
  if (look.gate === null) return unknown('Unknown', 'GateNotTold');
  if (minor >= FIRST_WITH_HINTS) return hint(look, past, minor);
  return minor < FIRST_WITH_COUNTERS ? uncounted(look, past) : cache(look, past);
}

/** The minor version as a number, such as 36 of `v1.36.2-vendor.4`; infinite for another major one. */
export function minorOf(version: string | null): number | null {
  const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})(?!\d)/.exec(version ?? '') ?? [];
  if (major === undefined || minor === undefined || major === '0') return null;
  return major === '1' ? Number(minor) : Number.POSITIVE_INFINITY;
}

const generic = (reason: string): Inference => ({ model: 'GenericOnly', mode: 'Generic', reason });
const unknown = (model: Model, reason: string): Inference => ({ model, mode: 'Unknown', reason });

function cache(look: Look, past: Past): Inference {
  const model = 'EventedCache';
  if (look.errors === null) return unknown(model, 'CounterNotTold');
  if (look.errors >= LAST_ERROR) return { model, mode: 'Fallback', reason: whyFellBack(look, past) };
  if (look.successes === null) return unknown(model, 'CounterNotTold');
  // A kubelet that has errors left and relists like one without is none that we know.
  if (relistsFast(past)) return unknown(model, 'RelistRateContradicts');
  if (look.successes === 0) return { model, mode: 'Starting', reason: 'NotConnectedYet' };
  return { model, mode: 'Evented', reason: 'Connected' };
}

/** One that relisted once a second for all its life never was evented; one that relisted seldom for most of it was. */
function whyFellBack(look: Look, past: Past): string {
  const reason = whyGivenUp(look, past);
  const age = look.processStart === null ? null : look.wall / 1e6 - look.processStart;
  if (reason !== 'NotSeen' || age === null || look.relists === null) return reason;
  const rate = look.relists / age;
  if (rate > ALL_ITS_LIFE) return 'RuntimeUnsupported';
  return rate < FAST_RELISTS ? 'StreamBroke' : 'NotSeen';
}

/** 1.26. Its errors are told once there are any. */
function uncounted(look: Look, past: Past): Inference {
  const model = 'EventedCache';
  if (look.relists === null) return unknown(model, 'CounterNotTold');
  if ((look.streamEndErrors ?? 0) >= LAST_ERROR)
    return { model, mode: 'Fallback', reason: whyUncountedGaveUp(look) };
  if (past.gaveUp || relistsFast(past)) return { model, mode: 'Fallback', reason: 'RelistsOften' };
  if (past.relistRate === null) return { model, mode: 'Starting', reason: 'RelistRateNotKnownYet' };
  return { model, mode: 'Evented', reason: 'RelistsSeldom' };
}

function hint(look: Look, past: Past, minor: number): Inference {
  const model = 'EventedHint';
  const { errors, successes } = look;
  if (errors === null) return unknown(model, 'CounterNotTold');
  if (errors >= LAST_ERROR && minor <= LAST_KNOWN)
    return { model, mode: 'HintDisabled', reason: whyGivenUp(look, past) };
  if (successes === null) return unknown(model, 'CounterNotTold');
  if (successes === 0 && errors < LAST_ERROR) return { model, mode: 'Starting', reason: 'NotConnectedYet' };
  // Every stream that ended is an error too: more successes than errors means that one is open.
  if (errors >= LAST_ERROR && successes <= errors && !past.reconnects)
    return unknown(model, 'RetriesNotKnown');
  return { model, mode: 'EventedHint', reason: 'Connected' };
}

const relistsFast = ({ relistRate }: Past): boolean => relistRate !== null && relistRate > FAST_RELISTS;

/**
 * Why it gave up. A runtime without the stream lets all five begin, and they end within milliseconds of the start; a stream that breaks
 * while the runtime is away begins again less often than it ends.
 */
function whyGivenUp(look: Look, past: Past): string {
  if (look.successes === 0) return 'RuntimeDownAtStart';
  if (look.successes !== look.errors || past.wasConnected) return 'StreamBroke';
  if (look.streamSeconds !== null)
    return look.streamSeconds < ENDED_AT_ONCE_S ? 'RuntimeUnsupported' : 'StreamBroke';
  if (past.firstSeenAge !== null && past.firstSeenAge < YOUNG_S) return 'RuntimeUnsupported';
  return 'NotSeen';
}

/** Without the count of connections a socket that is dead and a stream that is not there look the same. */
const whyUncountedGaveUp = ({ streamSeconds }: Look): string =>
  (streamSeconds ?? 0) < ENDED_AT_ONCE_S ? 'NeverConnected' : 'StreamBroke';
