/*
 * How long a kubelet's own calls to its runtime took, summed over scrapes: this tells a slow runtime from a slow kubelet. And what
 * processor time the kubelet itself used meanwhile.
 *
 * A histogram keeps no single call. The longest one took at least as long as the lower bound of the highest bucket that grew, and at
 * least as long as the mean of the calls added with it.
 */
import type { KubeletCalls } from '../../../protocol/record.ts';
import { type Mono, since } from '../../../protocol/units.ts';
import { bucketIncreases, increase, toCount, toMicros } from './counterDelta.ts';
import type { Histogram, KubeletFigures } from './metrics.ts';

const LISTS = ['list_podsandbox', 'list_containers'] as const;
const STATUSES = ['podsandbox_status', 'container_status'] as const;

/** Two scrapes in a row; `figures` of the first are null if another kubelet run reported them. */
export interface ScrapeInterval {
  readonly before: { readonly figures: KubeletFigures | null; readonly started: Mono };
  readonly now: { readonly figures: KubeletFigures; readonly ended: Mono };
}

/** Durations are in seconds. */
export class RuntimeCallTotals {
  readonly #from: Mono;
  #to: Mono;
  #relistSum = 0;
  #lists = 0;
  #listErrors = 0;
  #listSum = 0;
  #longestList = 0;
  #statusSum = 0;
  #cpu: number | null = null;

  constructor({ before, now }: ScrapeInterval) {
    this.#from = before.started;
    this.#to = now.ended;
  }

  add({ before: { figures: before }, now: { figures: now, ended } }: ScrapeInterval): void {
    this.#to = ended;
    this.#relistSum += increase(before?.relistDuration?.sum, now.relistDuration?.sum);
    if (now.cpu !== undefined) this.#cpu = (this.#cpu ?? 0) + increase(before?.cpu, now.cpu);
    for (const list of LISTS) {
      const [was, is] = [before?.operations[list], now.operations[list]];
      this.#lists += increase(was?.duration?.count, is.duration?.count);
      this.#listErrors += increase(was?.errors, is.errors);
      this.#listSum += increase(was?.duration?.sum, is.duration?.sum);
      this.#longestList = Math.max(this.#longestList, longestAtLeast(was?.duration, is.duration));
    }
    for (const status of STATUSES) {
      const [was, is] = [before?.operations[status], now.operations[status]];
      this.#statusSum += increase(was?.duration?.sum, is.duration?.sum);
    }
  }

  record(epochStart: Mono): KubeletCalls {
    return {
      from: since(epochStart, this.#from),
      to: since(epochStart, this.#to),
      relistSum: toMicros(this.#relistSum),
      lists: toCount(this.#lists),
      listErrors: toCount(this.#listErrors),
      listSum: toMicros(this.#listSum),
      longestList: toMicros(this.#longestList),
      statusSum: toMicros(this.#statusSum),
      cpu: this.#cpu === null ? null : toMicros(this.#cpu),
    };
  }
}

/** A lower bound for the longest of the added calls. */
function longestAtLeast(before: Histogram | undefined, now: Histogram | undefined): number {
  const added = increase(before?.count, now?.count);
  if (added === 0) return 0;
  let low = 0;
  let proven = 0;
  for (const [le, inside] of bucketIncreases(before, now)) {
    if (inside > 0) proven = low;
    low = le;
  }
  return Math.max(proven, increase(before?.sum, now?.sum) / added);
}
