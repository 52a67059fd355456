/*
 * The statement about PLEG in the message of a Node's Ready condition.
 *
 * The kubelet joins the texts of all problems: "[container runtime is down, PLEG is not healthy: pleg was last seen active 3m5.2s ago;
 * threshold is 3m0s]" (kubelet pkg/kubelet/runtime.go, runtimeErrors; pleg/generic.go, Healthy; pleg/evented.go, Healthy). A threshold
 * of ten minutes proves evented mode.
 */

export interface PlegMessage {
  /** How long ago PLEG was last seen active, in milliseconds; null if the message does not say. */
  readonly seenAgoMs: number | null;
  readonly thresholdMs: number | null;
}

/** Null if the message does not mention PLEG. */
export function parsePlegMessage(message: string): PlegMessage | null {
  if (!/PLEG|\bpleg\b/.test(message)) return null;
  return {
    seenAgoMs: goDurationMs(/last seen active (\S+) ago/.exec(message)?.[1]),
    thresholdMs: goDurationMs(/threshold is ([\w.µμ]+)/.exec(message)?.[1]),
  };
}

const UNIT_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ns: 1e-6,
};

/** Anybody who may write Nodes can put any duration there. */
const MAX_DURATION_MS = 366 * 24 * 3_600_000;

/** Parses a duration as Go prints it: 1h2m3.5s, 350ms. Null for anything else, and for more than a year. */
export function goDurationMs(text = ''): number | null {
  if (!/^(\d+(\.\d+)?(h|ms|m|s|us|µs|μs|ns))+$/.test(text)) return null;
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|μs|ns)/g)) {
    sum += Number(amount) * (UNIT_MS[unit ?? ''] ?? Number.NaN);
  }
  return sum <= MAX_DURATION_MS ? Math.round(sum) : null;
}
