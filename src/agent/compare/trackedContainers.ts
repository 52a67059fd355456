/*
 * The lives that are followed, and the ids whose events came before any list showed them. Never more than so many of either:
 * what is not followed is told as a gap of the stream. What has ended is forgotten after a while.
 */

import type { ListedItem } from '../../protocol/observation.ts';
import type { ContainerIdentity, RecordOf } from '../../protocol/record.ts';
import { type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import type { Outbox } from './emitter.ts';
import { since } from './findings.ts';
import { type Life, newLife, type Stage } from './trackedContainer.ts';

/** Ended ids are remembered this long, so that an event that limps in still finds its verdict. */
export const REMEMBER: Micros = millis(15 * 60_000);
/** Nothing is lost where it is forgotten a little later. */
const FORGET_EVERY: Micros = millis(10_000);
/** No more ids than this are followed: a runtime that invents them by the million cannot grow the agent. */
const MAX_LIVES = 50_000;

interface Shedding {
  readonly gap: string;
  readonly from: Mono;
  /** When an id was last not followed. */
  last: Mono;
}

export class Lives {
  readonly #outbox: Outbox;
  readonly #lives = new Map<string, Life>();
  /** Events of ids that nobody knows yet: they count as soon as a list shows the id. */
  readonly #unplaced = new Map<string, { readonly stages: Set<Stage>; at: Mono }>();
  /** The stretch in which ids are not followed because too many are; null where all are. */
  #shedding: Shedding | null = null;
  /** When the last relist that was compared ended; null before the first. */
  #relisted: Mono | null = null;
  /** When it was last looked for what can be forgotten. */
  #forgot: Mono | null = null;
  /** How often an id was not followed. */
  #untracked = 0;
  #revision = 0;
  #entries = 0;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  get untracked(): number {
    return this.#untracked;
  }

  /** Grows with every life that comes or goes, and every identity that becomes known better. */
  get revision(): number {
    return this.#revision;
  }

  /** Grows also whenever a life is fetched to enter into it what an event or a status said. What time does to lives is not counted. */
  get stirrings(): number {
    return this.#revision + this.#entries;
  }

  /** More is known of an id than it was followed with. */
  identify(life: Life, object: ContainerIdentity): void {
    life.object = object;
    this.#revision += 1;
  }

  /** Whether ids are left out at present because too many are followed. */
  get isShedding(): boolean {
    return this.#shedding !== null;
  }

  /** Ids that are remembered in one way or another. */
  get remembered(): number {
    return this.#lives.size + this.#unplaced.size;
  }

  [Symbol.iterator](): IterableIterator<Life> {
    return this.#lives.values();
  }

  /** The life of an id, to enter something into it: it is at rest no more. */
  get(id: string): Life | undefined {
    const life = this.#lives.get(id);
    if (life !== undefined) {
      life.rest = null;
      this.#entries += 1;
    }
    return life;
  }

  /** The life that rests as this item shows it; on a quiet node most do. */
  resting(item: ListedItem): Life | undefined {
    const life = this.#lives.get(item.object.id);
    return life?.rest === item ? life : undefined;
  }

  /** A new life, and the stages whose events came before; undefined where too many are followed. */
  follow(
    object: ContainerIdentity,
    at: Mono,
  ): { readonly life: Life; readonly early: Iterable<Stage> } | undefined {
    if (this.#lives.size >= MAX_LIVES) {
      this.#leaveOut(at);
      return undefined;
    }
    const life = newLife(object, at);
    this.#lives.set(object.id, life);
    this.#revision += 1;
    const early = this.#unplaced.get(object.id)?.stages ?? [];
    this.#unplaced.delete(object.id);
    return { life, early };
  }

  /** Keeps that an event came of an id that is not followed; false where there is no room for it. */
  keepUnplaced(id: string, stage: Stage, at: Mono): boolean {
    const known = this.#unplaced.get(id);
    if (known !== undefined) {
      known.stages.add(stage);
      known.at = at;
      return true;
    }
    if (this.#unplaced.size >= MAX_LIVES) return false;
    this.#unplaced.set(id, { stages: new Set([stage]), at });
    return true;
  }

  /** A relist has been compared that ended at `end`. An id that is in no list for long is over, were they never whole. */
  relisted(end: Mono): void {
    this.#relisted = end;
    if (this.#shedding !== null && this.#shedding.last < end) this.#endShedding(this.#shedding, end);
  }

  /** Forgets what ended long ago and is waited for no more. */
  forget(now: Mono, isWaiting: (life: Life) => boolean): void {
    if (this.#forgot !== null && now < shift(this.#forgot, FORGET_EVERY)) return;
    this.#forgot = now;
    const horizon = shift(now, -REMEMBER);
    for (const [id, life] of this.#lives) {
      const unlisted = this.#relisted !== null && this.#relisted > shift(life.lastSign, REMEMBER);
      const ended = (life.state === 'non-existent' || unlisted) && !isWaiting(life);
      if (ended && life.lastSign < horizon) this.#remove(id, life);
    }
    for (const [id, { at }] of this.#unplaced) if (at < horizon) this.#unplaced.delete(id);
  }

  #remove(id: string, life: Life): void {
    this.#lives.delete(id);
    this.#revision += 1;
    for (const twin of life.twins) this.#lives.get(twin)?.twins.delete(id);
  }

  /** Told as a gap of the stream: what happened to ids that are not followed is not known. */
  #leaveOut(at: Mono): void {
    this.#untracked += 1;
    if (this.#shedding !== null) {
      this.#shedding.last = at;
      return;
    }
    this.#shedding = { gap: this.#outbox.mintId(), from: at, last: at };
    this.#outbox.emit(null, this.#gap(this.#shedding, null));
  }

  #endShedding(shedding: Shedding, at: Mono): void {
    this.#shedding = null;
    this.#outbox.emit(null, this.#gap(shedding, at));
  }

  #gap({ gap, from }: Shedding, to: Mono | null): RecordOf<'gap'> {
    const at = (position: Mono) => since(this.#outbox.epochStart, position);
    return {
      type: 'gap',
      t: at(this.#outbox.now),
      gapId: gap,
      scope: 'stream',
      cause: 'too_many_ids',
      from: at(from),
      to: to === null ? null : at(to),
    };
  }
}
