/*
 * The containers that are tracked, and the ids whose events came before any list showed them. Both are bounded: what is not
 * tracked is reported as a gap of the stream. Ended containers are forgotten after a while.
 */

import type { ListedItem } from '../../protocol/observation.ts';
import type { ContainerIdentity } from '../../protocol/record.ts';
import { type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import type { Emitter } from './emitter.ts';
import type { Stage } from './stages.ts';
import { TrackedContainer } from './trackedContainer.ts';

/** Ended ids are remembered this long, so that a very late event still meets its finding. */
export const REMEMBERED_FOR: Micros = millis(15 * 60_000);
/** Nothing is lost where an id is forgotten a little later. */
const FORGET_EVERY: Micros = millis(10_000);
/** A runtime that invents ids by the million cannot grow the agent beyond this. */
const MAX_CONTAINERS = 50_000;

interface UntrackedGap {
  readonly gapId: string;
  readonly from: Mono;
  last: Mono;
}

export class TrackedContainers {
  readonly #emitter: Emitter;
  readonly #containers = new Map<string, TrackedContainer>();
  /** Those that are not settled as gone. */
  readonly #unsettled = new Set<TrackedContainer>();
  /** Events of ids that are not tracked yet: they count as soon as a list shows the id. */
  readonly #early = new Map<string, { readonly stages: Set<Stage>; at: Mono }>();
  /** The stretch in which ids are not tracked because there are too many; null where all are. */
  #gap: UntrackedGap | null = null;
  /** When the last relist that was compared ended; null before the first. */
  #relisted: Mono | null = null;
  /** When old containers were last forgotten. */
  #forgot: Mono | null = null;
  #untracked = 0;
  #identityVersion = 0;
  #updates = 0;

  constructor(emitter: Emitter) {
    this.#emitter = emitter;
  }

  get untracked(): number {
    return this.#untracked;
  }

  /** Grows with every container that comes or goes, and every identity that becomes known better. */
  get identityVersion(): number {
    return this.#identityVersion;
  }

  /** Grows also whenever an event or a status may update a container. The effects of time on containers are not counted. */
  get version(): number {
    return this.#identityVersion + this.#updates;
  }

  /** Whether ids are left out at present because there are too many. */
  get isLeavingOut(): boolean {
    return this.#gap !== null;
  }

  /** Ids that are remembered in one way or another. */
  get size(): number {
    return this.#containers.size + this.#early.size;
  }

  [Symbol.iterator](): IterableIterator<TrackedContainer> {
    return this.#containers.values();
  }

  /** Those about which a list that lacks them may prove something: most of what is remembered is gone. */
  get unsettled(): Iterable<TrackedContainer> {
    return this.#unsettled;
  }

  /** No further list that lacks the container proves anything about it, until it is updated. */
  settleAsGone(container: TrackedContainer): void {
    this.#unsettled.delete(container);
  }

  find(id: string): TrackedContainer | undefined {
    return this.#containers.get(id);
  }

  /** The container with this id, in order to update it: the next list must compare it again. */
  forUpdate(id: string): TrackedContainer | undefined {
    const container = this.#containers.get(id);
    if (container !== undefined) {
      container.unchangedItem = null;
      this.#unsettled.add(container);
      this.#updates += 1;
    }
    return container;
  }

  /** The container that this item shows unchanged; on a quiet node most are. */
  unchanged(item: ListedItem): TrackedContainer | undefined {
    const container = this.#containers.get(item.object.id);
    return container?.unchangedItem === item ? container : undefined;
  }

  identify(container: TrackedContainer, identity: ContainerIdentity): void {
    container.identify(identity);
    this.#identityVersion += 1;
  }

  /** Adds a container, and returns it with the stages whose events came before; undefined where there are too many. */
  add(
    identity: ContainerIdentity,
    at: Mono,
  ): { readonly container: TrackedContainer; readonly early: Iterable<Stage> } | undefined {
    if (this.#containers.size >= MAX_CONTAINERS) {
      this.#leaveOut(at);
      return undefined;
    }
    const container = new TrackedContainer(identity, at);
    this.#containers.set(identity.id, container);
    this.#unsettled.add(container);
    this.#identityVersion += 1;
    const early = this.#early.get(identity.id)?.stages ?? [];
    this.#early.delete(identity.id);
    return { container, early };
  }

  /** Remembers an event of an id that is not tracked; false where there is no room for it. */
  keepEarly(id: string, stage: Stage, at: Mono): boolean {
    const known = this.#early.get(id);
    if (known !== undefined) {
      known.stages.add(stage);
      known.at = at;
      return true;
    }
    if (this.#early.size >= MAX_CONTAINERS) return false;
    this.#early.set(id, { stages: new Set([stage]), at });
    return true;
  }

  relisted(end: Mono): void {
    this.#relisted = end;
    const gap = this.#gap;
    if (gap === null || gap.last >= end) return;
    this.#gap = null;
    this.#emitGap(gap, end);
  }

  /**
   * Forgets what ended long ago and is not waited for. An id that no list has shown for long has ended, even where none of
   * these lists was whole.
   */
  forget(now: Mono, isWaiting: (container: TrackedContainer) => boolean): void {
    if (this.#forgot !== null && now < shift(this.#forgot, FORGET_EVERY)) return;
    this.#forgot = now;
    const horizon = shift(now, -REMEMBERED_FOR);
    for (const container of this.#containers.values()) {
      const unlisted = this.#relisted !== null && this.#relisted > shift(container.lastSign, REMEMBERED_FOR);
      const ended = (container.lists.state === 'non-existent' || unlisted) && !isWaiting(container);
      if (ended && container.lastSign < horizon) this.#remove(container);
    }
    for (const [id, { at }] of this.#early) if (at < horizon) this.#early.delete(id);
  }

  #remove(container: TrackedContainer): void {
    const { id, duplicates } = container;
    this.#containers.delete(id);
    this.#unsettled.delete(container);
    this.#identityVersion += 1;
    for (const duplicate of duplicates) this.#containers.get(duplicate)?.duplicates.delete(id);
  }

  /** The fate of ids that are not tracked is unknown: a gap of the stream. */
  #leaveOut(at: Mono): void {
    this.#untracked += 1;
    if (this.#gap !== null) {
      this.#gap.last = at;
      return;
    }
    this.#gap = { gapId: this.#emitter.mintId(), from: at, last: at };
    this.#emitGap(this.#gap, null);
  }

  #emitGap({ gapId, from }: UntrackedGap, to: Mono | null): void {
    this.#emitter.emitGap({ gapId, scope: 'stream', cause: 'too_many_ids' }, from, to);
  }
}
