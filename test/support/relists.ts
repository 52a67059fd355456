/*
 * Relists as the runtime saw them.
 *
 * A call is good if it was answered completely, however long it took. A good call for sandboxes and the next good one for
 * containers, with no failure in between, are a relist. It shows the state of some moment between `from` and `to`. Times are
 * milliseconds of the machine's wall clock.
 */
import { type CriListName, type ListFault, listFateOf } from '../../devtools/simulator/listFaults.ts';

export interface RecordedCall {
  readonly call: CriListName;
  readonly at: number;
  readonly good: boolean;
  readonly tookMs: number;
}

export interface SeenRelist {
  /** The agent began it after this, when the one before was answered: a busy or stopped agent begins long before the runtime sees the call. */
  readonly after: number;
  readonly from: number;
  readonly to: number;
}

/** An answer under way when the process goes down may not arrive. */
const UNDER_WAY_MS = 500;

/** Injects no fault: records every call and what the given faults do to it. */
export const recordingCalls = (faults: readonly ListFault[], calls: RecordedCall[]): ListFault => ({
  name: 'none',
  decide: (call) => {
    const { waitMs = 0, padBytes: _, ...harm } = listFateOf(faults, call).fate;
    const good = Object.keys(harm).length === 0 && Number.isFinite(waitMs);
    calls.push({ call: call.call, at: Date.now(), good, tookMs: waitMs });
    return null;
  },
});

/** `downs`: when the process went down. */
export function relistsOf(calls: readonly RecordedCall[], downs: readonly number[]): SeenRelist[] {
  const relists: SeenRelist[] = [];
  let begun: number | null = null;
  for (const { call, at, good, tookMs } of calls) {
    if (call === 'listPodSandbox' || call === 'streamPodSandboxes') begun = good ? at : null;
    else if (good && begun !== null) {
      relists.push({ after: relists.at(-1)?.to ?? begun, from: begun, to: at + tookMs });
      begun = null;
    }
  }
  return relists.filter(({ from, to }) => downs.every((down) => down < from || down > to + UNDER_WAY_MS));
}
