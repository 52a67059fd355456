/*
 * The kubelet's feature gate EventedPLEG: whether it is proven off, so that others may subscribe to the runtime's events, and for how
 * long that is known.
 *
 *   a good scrape of the same kubelet run as the one before ──► what the gate says
 *   a failed scrape · a lost connection · another kubelet run · an old answer ──► unknown
 *
 * It is another run if its start time moved by more than 2 s plus the step of the wall clock (the start time is computed from the boot
 * time, which a step moves), or if a counter fell or disappeared. The scrape that shows it proves nothing yet: the next one does.
 */
import { between, type Micros, type Mono, millis, type Wall } from '../../../protocol/units.ts';
import type { Scrape } from './client.ts';
import type { KubeletFigures } from './metrics.ts';

export type GateStatus =
  | { readonly is: 'off' | 'on'; readonly readAt: Mono }
  | {
      readonly is: 'unknown';
      readonly why: string;
      /** The state that was proven last; null if nothing ever was. */
      readonly before: 'off' | 'on' | null;
    };

/** A kubelet's start time is rounded, and read from a clock that is being adjusted. */
const START_TOLERANCE_S = 2;
/** Two and a half scrape periods. */
const MAX_AGE: Micros = millis(25_000);

export type GoodScrape = Extract<Scrape, { ok: true }>;

export class FeatureGate {
  #status: GateStatus = { is: 'unknown', why: 'the kubelet has not been scraped yet', before: null };
  #last: GoodScrape | null = null;

  status(now: Mono): GateStatus {
    const status = this.#status;
    if (status.is === 'unknown' || between(status.readAt, now) <= MAX_AGE) return status;
    return { is: 'unknown', why: 'the kubelet has not been scraped for too long', before: status.is };
  }

  /** Those of the last good scrape. */
  get figures(): KubeletFigures | null {
    return this.#last?.figures ?? null;
  }

  take(scrape: Scrape): void {
    if (!scrape.ok) {
      this.#setUnknown(`the kubelet's metrics could not be scraped: ${scrape.reason}`);
      return;
    }
    const before = this.#last;
    this.#last = scrape;
    const { eventedPleg, processStart } = scrape.figures;
    if (before !== null && isAnotherRun(before, scrape)) this.#setUnknown('the kubelet was restarted');
    else if (processStart === undefined) this.#setUnknown('the kubelet does not report its start time');
    else if (eventedPleg === undefined) this.#setUnknown('the kubelet does not report the gate EventedPLEG');
    else this.#status = { is: eventedPleg ? 'on' : 'off', readAt: scrape.started };
  }

  /** The kubelet closed the connection: it may be about to restart. */
  connectionLost(): void {
    this.#setUnknown('the connection to the kubelet was closed');
  }

  #setUnknown(why: string): void {
    const known = this.#status;
    this.#status = { is: 'unknown', why, before: known.is === 'unknown' ? known.before : known.is };
  }
}

/** A kubelet's start time as one scrape showed it. */
export interface KubeletStart {
  /** Unix time in seconds; null if not reported. */
  readonly processStart: number | null;
  readonly ended: Mono;
  readonly wall: Wall;
}

/** Whether the start time moved by more than a step of the wall clock explains. */
export function startMoved(before: KubeletStart, now: KubeletStart): boolean {
  if (before.processStart === null || now.processStart === null) return false;
  const step = Math.abs(now.wall - now.ended - (before.wall - before.ended)) / 1e6;
  return Math.abs(now.processStart - before.processStart) > START_TOLERANCE_S + step;
}

function isAnotherRun(before: GoodScrape, now: GoodScrape): boolean {
  const startOf = ({ figures, ended, wall }: GoodScrape): KubeletStart => {
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
