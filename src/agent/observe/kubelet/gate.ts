/*
 * May others be subscribed to the runtime's events? What the kubelet's own feature gate proves about it, and for how long.
 *
 *   a good look, the same kubelet as at the look before ──► what the gate says
 *   a failed look · a connection that was lost · another kubelet than before · an old answer ──► unknown
 *
 * A kubelet is another one when its start time moved by more than 2 s and the step of the wall clock (it is made from the
 * time of the boot, which a step moves), or when a counter fell or is gone. The look that shows it proves nothing yet: the next
 * one does.
 */
import { between, type Micros, type Mono, millis, type Wall } from '../../../protocol/units.ts';
import type { Scrape } from './client.ts';
import type { KubeletFigures } from './metrics.ts';

export type GateAnswer =
  | { readonly is: 'off' | 'on'; readonly readAt: Mono }
  | {
      readonly is: 'unknown';
      readonly why: string;
      /** What was proven last, of the kubelet that was there then; null where nothing ever was. */
      readonly before: 'off' | 'on' | null;
    };

/** A kubelet's start time is rounded, and read from a clock that is being adjusted. */
const START_TOLERANCE_S = 2;
/** Two looks and a half: after that nobody has looked. */
const MOST_AGE: Micros = millis(25_000);

type Good = Extract<Scrape, { ok: true }>;

export class Gate {
  #answer: GateAnswer = { is: 'unknown', why: 'the kubelet was not asked yet', before: null };
  #last: Good | null = null;
  /** How often the kubelet was seen to be another one. */
  restarts = 0;

  /** What is known at a moment. */
  answer(now: Mono): GateAnswer {
    const answer = this.#answer;
    if (answer.is === 'unknown' || between(answer.readAt, now) <= MOST_AGE) return answer;
    return { is: 'unknown', why: 'the kubelet was not asked for too long', before: answer.is };
  }

  /** The figures of the last good look. */
  get figures(): KubeletFigures | null {
    return this.#last?.figures ?? null;
  }

  take(scrape: Scrape): void {
    if (!scrape.ok) {
      this.#unknown(`the kubelet's metrics could not be read: ${scrape.problem}`);
      return;
    }
    const before = this.#last;
    this.#last = scrape;
    const { eventedPleg, processStart } = scrape.figures;
    if (before !== null && isAnother(before, scrape)) {
      this.restarts += 1;
      this.#unknown('the kubelet was restarted');
    } else if (processStart === undefined) this.#unknown('the kubelet does not tell since when it runs');
    else if (eventedPleg === undefined) this.#unknown('the kubelet does not tell of the gate EventedPLEG');
    else this.#answer = { is: eventedPleg ? 'on' : 'off', readAt: scrape.started };
  }

  /** The connection to the kubelet was closed: it may be another one when it is back. */
  lost(): void {
    this.#unknown('the connection to the kubelet was closed');
  }

  #unknown(why: string): void {
    const known = this.#answer;
    this.#answer = { is: 'unknown', why, before: known.is === 'unknown' ? known.before : known.is };
  }
}

/** Since when a kubelet runs, as it said at a moment. */
export interface Started {
  /** Unix time in seconds; null where it does not tell. */
  readonly processStart: number | null;
  readonly ended: Mono;
  readonly wall: Wall;
}

/** Whether a start time moved by more than a step of the wall clock explains. */
export function startMoved(before: Started, now: Started): boolean {
  if (before.processStart === null || now.processStart === null) return false;
  const step = Math.abs(now.wall - now.ended - (before.wall - before.ended)) / 1e6;
  return Math.abs(now.processStart - before.processStart) > START_TOLERANCE_S + step;
}

/** Whether two looks were at two lives of a kubelet. */
function isAnother(before: Good, now: Good): boolean {
  const startOf = ({ figures, ended, wall }: Good): Started => {
    return { processStart: figures.processStart ?? null, ended, wall };
  };
  if (startMoved(startOf(before), startOf(now))) return true;
  const counted = countersOf(now.figures);
  return countersOf(before.figures).some((count, i) => count !== undefined && (counted[i] ?? -1) < count);
}

function countersOf(figures: KubeletFigures): (number | undefined)[] {
  const { operations } = figures;
  return [
    figures.connectionErrors,
    figures.connectionSuccesses,
    figures.discardedEvents,
    figures.relistDuration?.count,
    figures.relistInterval?.count,
    ...Object.values(operations).flatMap(({ total, errors, duration }) => [total, errors, duration?.count]),
  ];
}
