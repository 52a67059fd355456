/*
 * The relists of a history: two calls, one after the other; each item is sampled at a moment of its own within its call.
 * For tests.
 */
import type { ShownState } from '../../../src/protocol/observation.ts';
import { type HistoryContainer, shownAt } from './containers.ts';
import { type History, HORIZON } from './history.ts';

export interface HistoryListCall {
  readonly start: number;
  readonly end: number;
  readonly shown: ReadonlyMap<string, ShownState>;
}

export interface HistoryRelist {
  readonly sandboxes: HistoryListCall;
  readonly containers: HistoryListCall;
  readonly whole: boolean;
  readonly compared: number;
  /** A list failed between the previous one and this one. */
  readonly afterFailure: boolean;
}

export interface HistoryRelists {
  readonly lists: readonly HistoryRelist[];
  /** When a list failed. */
  readonly failures: readonly number[];
}

const ORDINARY = { gap: 5000, took: 1, fate: 9, lag: 0 };

export function relistsOf(history: History, containers: readonly HistoryContainer[]): HistoryRelists {
  const lists: HistoryRelist[] = [];
  const failures: number[] = [];
  let at = history.firstList;
  let afterFailure = false;
  for (let n = 0; at < HORIZON; n += 1) {
    const { gap, took, fate, lag } = history.lists[n % history.lists.length] ?? ORDINARY;
    const end = at + 2 * took;
    const call = (start: number, isSandbox: boolean): HistoryListCall => {
      const all = containers.filter((container) => container.isSandbox === isSandbox);
      // An answer with an unreadable item lacks that item.
      const read = fate === 1 ? all.slice(1) : all;
      return { start, end: start + took, shown: shownIn(history, read, start, took, n) };
    };
    if (fate === 0) failures.push(end);
    else {
      const both = { sandboxes: call(at, true), containers: call(at + took, false) };
      lists.push({ ...both, whole: fate !== 1, compared: end + lag, afterFailure });
    }
    afterFailure = fate === 0;
    at = end + lag + gap;
  }
  return { lists, failures };
}

function shownIn(
  { salt, unknowns }: History,
  containers: readonly HistoryContainer[],
  start: number,
  took: number,
  number: number,
): ReadonlyMap<string, ShownState> {
  const shown = new Map<string, ShownState>();
  for (const [i, container] of containers.entries()) {
    const dice = (salt + number * 7919 + i * 104_729) % 9973;
    const state = shownAt(container, start + Math.floor(((dice % 100) / 100) * took));
    const hidden = unknowns && !container.isSandbox && dice % 11 === 0;
    if (state !== null) shown.set(container.id, hidden ? 'unknown' : state);
  }
  return shown;
}
