/*
 * Changes as periods: a state lasts from its change until the next one, the last one until now.
 */

export interface Band {
  readonly from: number;
  readonly to: number;
  readonly state: string;
  readonly why: string;
}

export interface StateChange {
  readonly at: number;
  readonly state: string;
  readonly why: string;
}

/** `changes` in the order of their time. A state that does not change is one period. */
export function bandsOf(changes: readonly StateChange[], until: number): Band[] {
  const bands: Band[] = [];
  for (const [n, { at, state, why }] of changes.entries()) {
    const to = Math.max(at, changes[n + 1]?.at ?? until);
    const last = bands.at(-1);
    if (last?.state === state && last.why === why) bands[bands.length - 1] = { ...last, to };
    else bands.push({ from: at, to, state, why });
  }
  return bands;
}
