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

/** A time of UTC without what is shorter than a second. */
export const toSecond = (at: string): string => `${at.slice(0, 19)}Z`;

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

/** What a gap means, by its scope. */
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
