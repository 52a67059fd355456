/*
 * The track of one epoch: how far it has been sent, what of that waits for a reply, and in which round that is asked for.
 */

import { doubled } from '../../platform/backoff.ts';
import { interval } from '../../platform/interval.ts';
import type { Context, JobData } from '../../protocol/batch.ts';
import { between, type Mono, millis } from '../../protocol/units.ts';
import type { Epoch } from '../spool/epoch.ts';

/** What got no answer is sent again after this, then after twice that, up to six times it. */
const STALL = interval('STALL', millis(10_000));
const MAX_STALL = 6 * STALL;
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

  constructor(epoch: Epoch) {
    this.epoch = epoch;
    // Of what is past nothing can be sent: a hello says how far it went.
    if (epoch.retired !== null) this.next = epoch.written + 1;
  }

  get unacknowledged(): number {
    return this.sealed.reduce((sum, each) => sum + each.bytes, 0);
  }

  /** Whether a reply is still to come. */
  get waits(): boolean {
    return !this.answered || this.epoch.mark < this.next - 1;
  }

  /** A new round: what is believed is asked for again. */
  turn(round: number): void {
    this.round = Math.min(round, MAX_ROUND);
    this.answered = false;
    this.hello = null;
    this.hellos = 0;
  }

  /** Whether nothing was asked in this round, or long enough ago. */
  mayGreet(now: Mono): boolean {
    return !this.answered && (this.hello === null || between(this.hello, now) > patience(this.hellos));
  }
}

/** Whether something of it is not sent, or not answered. */
export const isBusy = (track: Track): boolean => track.waits || track.next <= track.epoch.written;

/** How long the answer to something sent so many times is waited for before it is sent again. */
export const patience = (tries: number): number => doubled(STALL, MAX_STALL, tries - 1);
