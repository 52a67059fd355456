/*
 * The stream policy: whether to subscribe to the runtime's events, and how soon again. An observer must not hurt the node.
 *
 *   never                             Off
 *   a runtime without a stream        Unsupported
 *   a runtime that bears subscribers  subscribe
 *   any other                         Unsafe; with `always` subscribe, but only while the kubelet's own metric proves that it
 *                                     does not listen itself, and leave as soon as it proves that no more
 *
 * Every disconnect costs some runtime something, so subscriptions are spaced with jitter from 1 s to 60 s, and those that may
 * crash the runtime when they end by ten minutes. What this needs to know outlives the process.
 */

import type { RuntimeProfile } from '../../../cri/profiles.ts';
import { doubled } from '../../../platform/backoff.ts';
import { type Micros, millis, type Wall, wall } from '../../../protocol/units.ts';
import type { GateAnswer } from '../kubelet/gate.ts';

/** What `--subscribe` says. */
export type StreamSetting = 'auto' | 'always' | 'never';

export interface Circumstances {
  readonly setting: StreamSetting;
  readonly profile: RuntimeProfile;
  readonly gate: GateAnswer;
  /** Since the last subscription, of an earlier process too; null where there was none. */
  readonly sinceSubscribed: Micros | null;
}

export type Decision =
  | {
      readonly subscribe: true;
      /** To be decided again whenever something is heard of the kubelet, and the runtime left where the answer is no. */
      readonly whileGateOff: boolean;
      /** What the report should say of it; empty where it goes without saying. */
      readonly why: string;
    }
  | Refusal;

export interface Refusal {
  readonly subscribe: false;
  readonly state: 'Off' | 'Unsafe' | 'Unsupported' | 'Interrupted';
  readonly why: string;
}

const SUBSCRIBE: Decision = { subscribe: true, whileGateOff: false, why: '' };
/** Between two subscriptions to a runtime that may crash when one ends. */
const RARELY: Micros = millis(600_000);

/** The policy. Pure: the same circumstances, the same decision. */
export function decide(circumstances: Circumstances): Decision {
  const { setting, profile } = circumstances;
  if (setting === 'never') return refuse('Off', 'switched off by --subscribe never');
  if (profile.subscription === 'impossible') return refuse('Unsupported', profile.why);
  if (profile.subscription === 'safe') return SUBSCRIBE;
  if (setting === 'auto') return refuse('Unsafe', profile.why);
  return decideAlways(circumstances);
}

function decideAlways({ profile, gate, sinceSubscribed }: Circumstances): Decision {
  const crashes = profile.subscription === 'crashes';
  if (gate.is === 'unknown') {
    return refuse(
      'Unsafe',
      `${profile.why}; --subscribe always needs proof that the kubelet does not listen: ${gate.why}`,
    );
  }
  if (gate.is === 'on') {
    return refuse(
      'Unsafe',
      `${profile.why}; --subscribe always is not obeyed while the kubelet's gate EventedPLEG is on`,
    );
  }
  if (crashes && sinceSubscribed !== null && sinceSubscribed < RARELY) {
    return refuse('Interrupted', `${profile.why}: subscribed to every ten minutes at most`);
  }
  const until =
    'subscribed to by --subscribe always while the kubelet proves that its gate EventedPLEG is off';
  return { subscribe: true, whileGateOff: true, why: crashes ? `${until}; ${profile.why}` : until };
}

const refuse = (state: Refusal['state'], why: string): Refusal => ({ subscribe: false, state, why });

/** How long the kubelet is waited for after the runtime was away. */
export const KUBELET_FIRST: Micros = millis(10_000);

/**
 * Whether a lost stream is to be opened again only after the kubelet's: the runtime gives what nobody heard to the first
 * who comes.
 */
export function letsKubeletFirst(lost: boolean, gate: GateAnswer): boolean {
  return lost && (gate.is === 'on' || (gate.is === 'unknown' && gate.before === 'on'));
}

/** Whether the kubelet has subscribed since `before`, by its own count, which begins anew when it is restarted. */
export function kubeletCame(before: number | undefined, now: number | undefined): boolean {
  if (now === undefined) return false;
  const from = before === undefined || now < before ? 0 : before;
  return now > from;
}

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
const MOST_ATTEMPTS = 1_000;

/** What outlives the process. */
export interface Remembered {
  /** Subscriptions in a row that did not last. */
  readonly attempts: number;
  /** When the last one was made, by the wall clock; null where none was. */
  readonly subscribed: Wall | null;
}

/** Keeps what is remembered. Neither may throw for what a damaged file says. */
export interface PaceMemory {
  load(): Promise<unknown>;
  save(remembered: Remembered): void;
}

/** Without a place to keep it nothing outlives the process. */
export const NO_MEMORY: PaceMemory = { load: async () => null, save: () => undefined };

/** How soon to subscribe again. */
export class Pace {
  readonly #memory: PaceMemory;
  readonly #random: () => number;
  #attempts = 0;
  #subscribed: Wall | null = null;

  constructor(memory: PaceMemory, random: () => number = Math.random) {
    this.#memory = memory;
    this.#random = random;
  }

  /** Takes up what an earlier process left, and says how long to wait before the first subscription. */
  async recall(now: Wall): Promise<Micros> {
    const { attempts, subscribed } = remembered(await this.#memory.load());
    this.#attempts = attempts;
    this.#subscribed = subscribed;
    if (attempts === 0 || subscribed === null) return millis(0);
    // A clock that went back must not make the wait longer than it would be after a failure just now.
    const gone = Math.max(0, now - subscribed);
    return millis(Math.max(0, this.#delayMs() - gone / 1000));
  }

  /** A subscription is made: should this process die with it, the next one has to know. */
  subscribing(now: Wall): void {
    this.#subscribed = now;
    this.#memory.save({ attempts: Math.min(this.#attempts + 1, MOST_ATTEMPTS), subscribed: now });
  }

  /** A subscription lasted. */
  lasted(): void {
    this.#attempts = 0;
    this.#memory.save({ attempts: 0, subscribed: this.#subscribed });
  }

  /** The wait after a subscription that did not last, or could not even be made. */
  failed(): Micros {
    this.#attempts = Math.min(this.#attempts + 1, MOST_ATTEMPTS);
    return millis(this.#delayMs());
  }

  sinceSubscribed(now: Wall): Micros | null {
    return this.#subscribed === null ? null : (Math.max(0, now - this.#subscribed) as Micros);
  }

  #delayMs(): number {
    const most = doubled(FIRST_RETRY_MS, LAST_RETRY_MS, this.#attempts);
    return FIRST_RETRY_MS + this.#random() * (most - FIRST_RETRY_MS);
  }
}

/** Reads what was remembered, which may be anything. */
function remembered(input: unknown): Remembered {
  const field = (name: keyof Remembered): unknown => Reflect.get(Object(input), name);
  const attempts = field('attempts');
  const subscribed = field('subscribed');
  return {
    attempts: isCount(attempts) ? Math.min(attempts, MOST_ATTEMPTS) : 0,
    subscribed: isCount(subscribed) ? wall(subscribed) : null,
  };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
