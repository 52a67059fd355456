/*
 * The first lists: the first whole lists of both kinds that begin after a session's first event, or after a gap within it. They show events from
 * before anybody watched, so nobody misses these; and the containers that they lack may have ended since, where only the stream could show how. So
 * until they end an event may lack without any finding: a gap says so.
 */

import { type Mono, mono } from '../../protocol/units.ts';
import type { Emitter } from './emitter.ts';
import type { TimeSpan } from './listHistory.ts';

export class FirstLists {
  readonly #emitter: Emitter;
  /** The first moment that was watched again and that no whole lists have followed yet, and the last one; null where lists have. */
  #watched: { readonly from: Mono; readonly last: Mono } | null = null;

  constructor(emitter: Emitter) {
    this.#emitter = emitter;
  }

  /**
   * The first event of a session was received, or a gap within it ended. Where no first lists have come since the last time, their gap
   * lasts on.
   */
  watchedAgain(at: Mono): void {
    const { from = at, last = at } = this.#watched ?? {};
    this.#watched = { from: mono(Math.min(from, at)), last: mono(Math.max(last, at)) };
  }

  /** A relist was compared; these are the last whole lists of each kind. */
  listed(sandboxes: TimeSpan, containers: TimeSpan): void {
    const watched = this.#watched;
    if (watched === null || sandboxes.start <= watched.last || containers.start <= watched.last) return;
    this.#watched = null;
    const gap = { gapId: this.#emitter.mintId(), scope: 'findings', cause: 'first_lists' } as const;
    this.#emitter.emitGap(gap, watched.from, mono(Math.max(sandboxes.end, containers.end)));
  }
}
