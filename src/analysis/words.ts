/*
 * Words that the commands and the page say alike.
 */
import { CONSEQUENCES_IN_SHORT, fallbackConsequence, type ReportedMode } from '../protocol/fallback.ts';

const UNITS: readonly (readonly [seconds: number, unit: string])[] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** At most two units, and none that is zero: `3 min 20 s`. */
export function duration(ms: number): string {
  if (ms > 0 && ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  let rest = Math.round(ms / 1000);
  const first = UNITS.findIndex(([seconds]) => rest >= seconds);
  return UNITS.slice(first, first + 2)
    .flatMap(([seconds, unit]) => {
      const whole = Math.floor(rest / seconds);
      rest %= seconds;
      return whole === 0 ? [] : `${whole} ${unit}`;
    })
    .join(' ');
}

/** Whether the kubelet gave up its event stream and leaves pods wrong. */
export const leavesPodsWrong = (mode: ReportedMode): boolean =>
  fallbackConsequence(mode) === 'wrong_until_restart';

/** The reason of a mode, and what it means if the kubelet gave up its event stream. */
export function whyOfMode(mode: ReportedMode): string {
  const consequence = fallbackConsequence(mode);
  return [mode.reason, consequence === null ? null : CONSEQUENCES_IN_SHORT[consequence]]
    .filter(Boolean)
    .join(', ');
}

/** When a mode ended, or from when on nobody observed the kubelet. `written` is how a time is. */
export function untilInWords(
  to: string | null,
  nextMode: string | null,
  written: (at: string) => string,
): string {
  if (to === null) return 'now';
  return nextMode === 'Unknown' ? `unknown from ${written(to)} on` : written(to);
}

/** The meaning of a gap, by its scope. */
export const NOT_OBSERVED: Readonly<Record<string, string>> = {
  stream: 'no events observed',
  list: 'no lists of containers',
  agent: 'nothing observed: no agent',
  kubelet: 'kubelet metrics were not read',
  kubelet_status: "the kubelet's own status was not watched",
  spool: 'records lost on the node',
  seq: 'records did not arrive',
  findings: 'no verdict possible',
};

/** A time of UTC without what is shorter than a second. */
export const toSecond = (at: string): string => `${at.slice(0, 19)}Z`;

/**
 * Whether a finding matters, by its kind, in a few words; a miss and a late status of the kubelet always do. The others matter to whoever follows
 * events and believes them, as a kubelet with Evented PLEG does until its next relist.
 */
export const MATTERS: Readonly<Record<string, string>> = {
  late: 'it matters: whoever follows events learned of the change this late',
  out_of_order: 'it matters to whoever takes the last event for the present state',
  stale: 'it matters to whoever takes the last event for the present state',
  spurious: 'it matters: whoever believes the event is wrong until the next list',
  duplicate: 'harmless: it says nothing new',
  unannounced: 'expected of this runtime: only lists show it',
  short_life: 'no fault: whoever only lists never saw it run',
  duplicate_container: 'it matters: two containers of one name ran at once',
  regression: 'it matters: the runtime took back what it had said',
  silent_stream: 'it matters: whoever follows events saw nothing meanwhile',
  unobservable: 'it accuses nobody: it cannot be known whether the event was sent',
};

/** A word of a shell. */
export const quoted = (text: string): string =>
  /^[\w.:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
