/*
 * What the kubelet tells, as records: each change of its mode, its minutes, the stretches in which it could not be asked.
 */
import { monoNow } from '../../../platform/clock.ts';
import { type KubeletMinute, MAX_OFFSET, type RecordOf } from '../../../protocol/record.ts';
import { type Mono, mono, type Offset, offset } from '../../../protocol/units.ts';
import { since } from '../../compare/findings.ts';
import type { Gaps } from '../gaps.ts';
import type { Scrape } from './client.ts';
import { KubeletMinutes } from './kubeletMinute.ts';
import { type ModeChange, type ModeState, ModeTracker, type Remembered } from './modeTracker.ts';

/** Keeps what is known for the agent after this one. */
export interface ModeMemory {
  save(tracker: Pick<ModeTracker, 'state' | 'look'>): void;
}

export interface KubeletModeOptions {
  readonly epochStart: Mono;
  readonly remembered: Remembered | null;
  readonly memory: ModeMemory;
  readonly gaps: Gaps;
  readonly emit: (record: RecordOf<'mode_change'>) => void;
}

export class KubeletMode {
  readonly #options: KubeletModeOptions;
  readonly #tracker: ModeTracker;
  readonly #minutes: KubeletMinutes;
  #last: Scrape | null = null;
  /** Only what this agent saw itself is kept: what the one before knew is on the clock of its boot. */
  #answered = false;

  constructor(options: KubeletModeOptions) {
    this.#options = options;
    this.#tracker = new ModeTracker(options.epochStart, options.remembered);
    this.#minutes = new KubeletMinutes(options.epochStart);
  }

  get state(): ModeState {
    return this.#tracker.state;
  }

  /** Takes the latest look; one that was taken already means nothing. */
  take(scrape: Scrape | null): void {
    if (scrape === null || scrape === this.#last) return;
    const { gaps, memory } = this.#options;
    const before = this.#tracker.look;
    this.#last = scrape;
    const change = this.#tracker.take(scrape);
    if (scrape.ok) {
      this.#answered = true;
      this.#minutes.take(scrape);
      gaps.close('kubelet', scrape.started, monoNow());
    } else {
      const from = Math.max(before?.ended ?? 0, this.#options.epochStart);
      gaps.open('kubelet', snake(scrape.problem), mono(from), scrape.ended);
    }
    if (change === null) return;
    this.#minutes.modeChanged();
    memory.save(this.#tracker);
    this.#options.emit(this.#record(change));
  }

  /** A minute is over. Undefined where the kubelet did not answer in it. */
  cutMinute(): KubeletMinute | undefined {
    if (this.#answered) this.#options.memory.save(this.#tracker);
    return this.#minutes.cut();
  }

  #record({ model, mode, reason, from, notBefore, at, proof }: ModeChange): RecordOf<'mode_change'> {
    const { epochStart } = this.#options;
    return {
      type: 'mode_change',
      t: since(epochStart, at),
      notBefore: oldest(since(epochStart, notBefore)),
      model,
      from,
      to: mode,
      reason,
      proof,
    };
  }
}

/** Of a kubelet that runs for longer than any record may reach back. */
export const oldest = (at: Offset): Offset => offset(Math.max(at, -MAX_OFFSET));

const snake = (words: string): string => words.replaceAll(/(?!^)[A-Z]/g, (c) => `_${c}`).toLowerCase();
