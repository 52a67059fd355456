/*
 * The track of one epoch: how far it has been sent, what of that waits for a reply, and in which round that is asked for.
 */

import { doubled } from '../../platform/backoff.ts';
import type { Context, JobData } from '../../protocol/batch.ts';
import { between, type Micros, type Mono } from '../../protocol/units.ts';
import type { Epoch } from '../spool/epoch.ts';

/** The highest round that an envelope can carry. */
const MAX_ROUND = 2_147_483_646;

/** A batch that was cut: under its id the same bytes are sent, however often. */
export interface Sealed {
  readonly id: string;
  readonly data: JobData;
  readonly last: number;
  readonly bytes: number;
  added: Mono | null;
  tries: number;
}

export class Track {
  readonly epoch: Epoch;
  readonly #resend: Micros;
  round = 1;
  /** The next seq to cut. */
  next = 1;
  /** How often in a row its next records could not be read. */
  unreadable = 0;
  sealed: Sealed[] = [];
  /** Whether a reply of the present round has come. */
  answered = false;
  hello: Mono | null = null;
  hellos = 0;
  /** The versions that an earlier life began under; its own, never the present ones. */
  context: Context | null = null;

  /** `resend`: how long an answer is waited for before the first re-send. */
  constructor(epoch: Epoch, resend: Micros) {
    this.epoch = epoch;
    this.#resend = resend;
    // Of what is past nothing can be sent: a hello says how far it went.
    if (epoch.retirement !== null) this.next = epoch.lastSeq + 1;
  }

  get unacknowledged(): number {
    return this.sealed.reduce((sum, each) => sum + each.bytes, 0);
  }

  /** Whether a reply is still to come. */
  get waits(): boolean {
    return !this.answered || this.epoch.ackedSeq < this.next - 1;
  }

  /** A new round: what is believed is asked for again. */
  turn(round: number): void {
    this.round = Math.min(round, MAX_ROUND);
    this.answered = false;
    this.hello = null;
    this.hellos = 0;
  }

  /** How long the answer to something that was sent `tries` times is waited for: doubling, up to six times the first wait. */
  resendAfter(tries: number): Micros {
    return doubled(this.#resend, 6 * this.#resend, tries - 1) as Micros;
  }

  /** Whether nothing was asked in this round, or long enough ago. */
  mayGreet(now: Mono): boolean {
    return (
      !this.answered && (this.hello === null || between(this.hello, now) > this.resendAfter(this.hellos))
    );
  }
}

/** Whether something of it is not sent, or not answered. */
export const isBusy = (track: Track): boolean => track.waits || track.next <= track.epoch.lastSeq;
