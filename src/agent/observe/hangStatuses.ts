/*
 * The statuses that were asked for while one list hung: the evidence of the verdict on it.
 */
import type { Relist } from '../../protocol/observation.ts';
import type { ListHang as HangRecord, HangVerdict } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis, since } from '../../protocol/units.ts';
import { conclude, type Unanswered } from './hangVerdict.ts';
import type { ListHang } from './listHangs.ts';
import type { StatusCall } from './statusCall.ts';

/** A status that hung with a list is answered together with it. One that was answered longer before or after it does not hold the list up. */
const GRACE: Micros = millis(2_000);

interface Suspect extends Unanswered {
  readonly call: StatusCall;
}

export interface HangConclusion {
  readonly verdict: HangVerdict;
  readonly named: StatusCall | null;
  readonly unanswered: number;
}

export class HangStatuses {
  readonly hang: ListHang;
  readonly #readClock: () => Mono;
  readonly #listed: { readonly sandboxes: number; readonly containers: number };
  readonly #left: Set<string>;
  readonly #timedOut: StatusCall[];
  #asked: number;
  #quick = 0;
  #reported: HangVerdict | null = null;

  /** `last`: what was listed before the hang. `unanswered`: calls that are under way already. */
  constructor(hang: ListHang, last: Relist | null, unanswered: readonly StatusCall[], readClock: () => Mono) {
    this.hang = hang;
    this.#readClock = readClock;
    const { sandboxes, containers } = last ?? {};
    this.#left = new Set([...(sandboxes?.items.keys() ?? []), ...(containers?.items.keys() ?? [])]);
    this.#listed = { sandboxes: sandboxes?.items.size ?? 0, containers: containers?.items.size ?? 0 };
    this.#timedOut = [...unanswered];
    this.#asked = unanswered.length;
    for (const call of unanswered) {
      this.#left.delete(call.object.id);
      call.forgetOthers();
    }
  }

  /** A status was answered or given up. Later answers say nothing about it. */
  timed(call: StatusCall): void {
    if (this.hang.to !== null) return;
    this.#left.delete(call.object.id);
    this.#asked += 1;
    if (!call.isSlow) this.#quick += 1;
    if (call.timedOut) this.#timedOut.push(call);
  }

  conclude(): HangConclusion {
    const withList = this.#timedOut.filter((call) => this.#hungWithList(call));
    const unanswered = withList.map((call) => this.#suspect(call));
    const goesOn = this.#timedOut.filter((call) => call.endedAt === null && !withList.includes(call));
    const { verdict, named } = conclude<Suspect>({
      call: this.hang.call,
      listed: this.#listed.sandboxes + this.#listed.containers,
      asked: this.#asked,
      quick: this.#quick,
      unanswered,
      left: this.#left.size + goesOn.length,
    });
    return { verdict, named: named?.call ?? null, unanswered: unanswered.length };
  }

  /** The list was answered, and so was every status that hung with it. */
  get isSettled(): boolean {
    const { to } = this.hang;
    if (to === null) return false;
    return between(to, this.#readClock()) >= GRACE || this.#timedOut.every(({ endedAt }) => endedAt !== null);
  }

  /** A minute says that the hang lasts, and none that it ended. */
  get isEndDue(): boolean {
    return this.hang.to !== null && this.#reported !== null;
  }

  /** Whether the first verdict is in no minute yet, or the end of a hang that a minute says lasts. */
  get hasNews(): boolean {
    if (this.hang.to !== null) return this.isEndDue && this.isSettled;
    return (this.#reported ?? 'unknown') === 'unknown' && this.conclude().verdict !== 'unknown';
  }

  report({ verdict, unanswered }: HangConclusion, epochStart: Mono): HangRecord {
    const { call, from, to, waited } = this.hang;
    this.#reported = verdict;
    return {
      call,
      from: since(epochStart, from),
      to: to === null ? null : since(epochStart, to),
      waited: Math.round(waited),
      verdict,
      listed: this.#listed.sandboxes + this.#listed.containers,
      asked: this.#asked,
      quick: this.#quick,
      unanswered,
    };
  }

  /** A status that is still not answered when the list was is another trouble. */
  #hungWithList({ endedAt }: StatusCall): boolean {
    const now = this.#readClock();
    const { to } = this.hang;
    if (to === null) return endedAt === null || between(endedAt, now) < GRACE;
    return Math.abs(between(endedAt ?? now, to)) < GRACE;
  }

  #suspect(call: StatusCall): Suspect {
    const { isSandbox } = call.object;
    const { othersSince, alikeSince } = call;
    const isOnly = (isSandbox ? this.#listed.sandboxes : this.#listed.containers) === 1;
    return { call, isSandbox, othersSince, alikeSince, isOnly };
  }
}
