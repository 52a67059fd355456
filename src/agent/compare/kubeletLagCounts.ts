/*
 * How long the kubelet's own status took to show starts and stops, counted until the next minute is reported.
 */
import { KUBELET_LAG_BOUNDS_MS, type KubeletLagMinute } from '../../protocol/record.ts';
import type { Micros } from '../../protocol/units.ts';
import type { ShownStage } from './kubeletSights.ts';
import { STARTED } from './stages.ts';

export class KubeletLagCounts {
  #starts: number[] = [];
  #stops: number[] = [];

  add(stage: ShownStage, lag: Micros): void {
    const counts = stage === STARTED ? this.#starts : this.#stops;
    const bound = KUBELET_LAG_BOUNDS_MS.findIndex((ms) => lag <= ms * 1000);
    const bucket = bound === -1 ? KUBELET_LAG_BOUNDS_MS.length : bound;
    while (counts.length <= bucket) counts.push(0);
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }

  /** The counts since the last call; null where nothing was. */
  take(): KubeletLagMinute | null {
    const [starts, stops] = [this.#starts, this.#stops];
    this.#starts = [];
    this.#stops = [];
    return starts.length + stops.length === 0 ? null : { starts, stops };
  }
}
