/*
 * How long a kubelet's own calls to its runtime took, added up from look to look: what tells a slow runtime from a slow kubelet.
 *
 * A histogram keeps no single call. The longest one took at least as long as the lower bound of the highest bucket that grew,
 * and at least as long as the mean of those that were added with it.
 */
import type { KubeletCalls } from '../../../protocol/record.ts';
import type { Mono } from '../../../protocol/units.ts';
import { since } from '../../compare/findings.ts';
import { addedTo, grown, micros, whole } from './counterDelta.ts';
import type { Histogram, KubeletFigures } from './metrics.ts';

const LISTS = ['list_podsandbox', 'list_containers'] as const;
const STATUSES = ['podsandbox_status', 'container_status'] as const;

/** Two looks in a row; `figures` of the first are null where another life of the kubelet told them. */
export interface Stretch {
  readonly before: { readonly figures: KubeletFigures | null; readonly started: Mono };
  readonly now: { readonly figures: KubeletFigures; readonly ended: Mono };
}

/** Lengths are in seconds. */
export class CallFigures {
  readonly #from: Mono;
  #to: Mono;
  #relistSum = 0;
  #lists = 0;
  #listErrors = 0;
  #listSum = 0;
  #longestList = 0;
  #statusSum = 0;

  constructor({ before, now }: Stretch) {
    this.#from = before.started;
    this.#to = now.ended;
  }

  add({ before: { figures: before }, now: { figures: now, ended } }: Stretch): void {
    this.#to = ended;
    this.#relistSum += grown(before?.relistDuration?.sum, now.relistDuration?.sum);
    for (const list of LISTS) {
      const [was, is] = [before?.operations[list], now.operations[list]];
      this.#lists += grown(was?.duration?.count, is.duration?.count);
      this.#listErrors += grown(was?.errors, is.errors);
      this.#listSum += grown(was?.duration?.sum, is.duration?.sum);
      this.#longestList = Math.max(this.#longestList, longest(was?.duration, is.duration));
    }
    for (const status of STATUSES) {
      const [was, is] = [before?.operations[status], now.operations[status]];
      this.#statusSum += grown(was?.duration?.sum, is.duration?.sum);
    }
  }

  record(epochStart: Mono): KubeletCalls {
    return {
      from: since(epochStart, this.#from),
      to: since(epochStart, this.#to),
      relistSum: micros(this.#relistSum),
      lists: whole(this.#lists),
      listErrors: whole(this.#listErrors),
      listSum: micros(this.#listSum),
      longestList: micros(this.#longestList),
      statusSum: micros(this.#statusSum),
    };
  }
}

/** What the longest of the added calls took at least. */
function longest(before: Histogram | undefined, now: Histogram | undefined): number {
  const added = grown(before?.count, now?.count);
  if (added === 0) return 0;
  let low = 0;
  let proven = 0;
  for (const [le, inside] of addedTo(before, now)) {
    if (inside > 0) proven = low;
    low = le;
  }
  return Math.max(proven, grown(before?.sum, now?.sum) / added);
}
