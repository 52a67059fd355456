/*
 * Relists, as the runtime saw them: which calls were made, and which two of them together showed what was.
 *
 * A call is good where it was answered with everything; how long it took is no matter. A good call for the sandboxes and the
 * next good one for the containers, nothing failing in between, are a relist. What it shows is of a moment from `from` to `to`.
 * Times are milliseconds of the machine's wall clock.
 */
import { type CriListName, type ListFault, listFateOf } from '../../devtools/simulator/listFaults.ts';

export interface NoticedCall {
  readonly call: CriListName;
  readonly at: number;
  readonly good: boolean;
  readonly tookMs: number;
}

export interface SeenRelist {
  readonly from: number;
  readonly to: number;
}

/** An answer that is under way when the process goes down may not come. */
const UNDER_WAY = 500;

/** No fault at all: notes every call, and what the faults make of it. */
export const noticing = (faults: readonly ListFault[], calls: NoticedCall[]): ListFault => ({
  name: 'none',
  decide: (call) => {
    const { waitMs = 0, padBytes: _, ...harm } = listFateOf(faults, call).fate;
    const good = Object.keys(harm).length === 0 && Number.isFinite(waitMs);
    calls.push({ call: call.call, at: Date.now(), good, tookMs: waitMs });
    return null;
  },
});

/** `downs`: when the process went away. */
export function relistsOf(calls: readonly NoticedCall[], downs: readonly number[]): SeenRelist[] {
  const relists: SeenRelist[] = [];
  let begun: number | null = null;
  for (const { call, at, good, tookMs } of calls) {
    if (call === 'listPodSandbox' || call === 'streamPodSandboxes') begun = good ? at : null;
    else if (good && begun !== null) {
      relists.push({ from: begun, to: at + tookMs });
      begun = null;
    }
  }
  return relists.filter(({ from, to }) => downs.every((down) => down < from || down > to + UNDER_WAY));
}
