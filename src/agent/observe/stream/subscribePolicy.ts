/*
 * The subscribe policy: whether to subscribe to the runtime's events, and how soon to try again. An observer must not hurt the node.
 *
 *   --subscribe never                      Off
 *   a runtime without a stream             Unsupported
 *   a runtime that is safe to subscribe to subscribe
 *   any other runtime                      Unsafe; with --subscribe always subscribe, but only while the kubelet's own metric proves
 *                                          that it does not subscribe itself, and leave as soon as it no longer does
 *
 * Every disconnect costs some runtime something, so subscriptions are spaced with jitter from 1 s to 60 s, and by ten minutes if their
 * end may crash the runtime. The pace outlives the process.
 */

import * as v from 'valibot';
import type { RuntimeProfile } from '../../../cri/profiles.ts';
import { doubled } from '../../../platform/backoff.ts';
import { type Micros, millis, type Wall, wall } from '../../../protocol/units.ts';
import type { GateStatus } from '../kubelet/gate.ts';
import type { SavedFile } from '../savedFile.ts';

export type SubscribeSetting = 'auto' | 'always' | 'never';

export interface SubscribeCircumstances {
  readonly setting: SubscribeSetting;
  readonly profile: RuntimeProfile;
  readonly gate: GateStatus;
  /** Since the last subscription, of an earlier process too; null if there was none. */
  readonly sinceSubscribed: Micros | null;
}

export type SubscribeDecision =
  | {
      readonly subscribe: true;
      /** To be checked again after every scrape of the kubelet; if refused then, the session ends. */
      readonly whileGateOff: boolean;
      /** For the report; empty if nothing needs saying. */
      readonly why: string;
    }
  | SubscribeRefusal;

export interface SubscribeRefusal {
  readonly subscribe: false;
  readonly state: 'Off' | 'Unsafe' | 'Unsupported' | 'Interrupted';
  readonly why: string;
}

const SUBSCRIBE: SubscribeDecision = { subscribe: true, whileGateOff: false, why: '' };
/** Between two subscriptions to a runtime that may crash when one ends. */
const CRASHING_INTERVAL: Micros = millis(600_000);

/** The policy. Pure. */
export function decide(circumstances: SubscribeCircumstances): SubscribeDecision {
  const { setting, profile } = circumstances;
  if (setting === 'never') return refuse('Off', 'switched off by --subscribe never');
  if (profile.subscription === 'impossible') return refuse('Unsupported', profile.why);
  if (profile.subscription === 'safe') return SUBSCRIBE;
  if (setting === 'auto') return refuse('Unsafe', profile.why);
  return decideAlways(circumstances);
}

function decideAlways({ profile, gate, sinceSubscribed }: SubscribeCircumstances): SubscribeDecision {
  const crashes = profile.subscription === 'crashes';
  if (gate.is === 'unknown') {
    return refuse(
      'Unsafe',
      `${profile.why}; --subscribe always needs proof that the kubelet does not subscribe: ${gate.why}`,
    );
  }
  if (gate.is === 'on') {
    return refuse(
      'Unsafe',
      `${profile.why}; --subscribe always is ignored while the kubelet's gate EventedPLEG is on`,
    );
  }
  if (crashes && sinceSubscribed !== null && sinceSubscribed < CRASHING_INTERVAL) {
    return refuse('Interrupted', `${profile.why}: subscribed to every ten minutes at most`);
  }
  const until =
    'subscribed to by --subscribe always while the kubelet proves that its gate EventedPLEG is off';
  return { subscribe: true, whileGateOff: true, why: crashes ? `${until}; ${profile.why}` : until };
}

const refuse = (state: SubscribeRefusal['state'], why: string): SubscribeRefusal => ({
  subscribe: false,
  state,
  why,
});

/** How long to wait for the kubelet's subscription after the runtime was down. */
export const KUBELET_WAIT: Micros = millis(10_000);

/**
 * Whether a lost stream may be opened again only after the kubelet's: the runtime sends its backlog to the first subscriber. A kubelet that
 * has given up its stream takes none.
 */
export function mustWaitForKubelet(lost: boolean, gate: GateStatus, kubeletHasGivenUp: boolean): boolean {
  return lost && !kubeletHasGivenUp && (gate.is === 'on' || (gate.is === 'unknown' && gate.before === 'on'));
}

/** Whether the kubelet has subscribed since `before`, by its own counter, which a restart resets. */
export function kubeletSubscribed(before: number | undefined, now: number | undefined): boolean {
  if (now === undefined) return false;
  const from = before === undefined || now < before ? 0 : before;
  return now > from;
}

const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;
const MAX_ATTEMPTS = 1_000;

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** The pace as it outlives the process: an agent that crashes again and again must not subscribe again and again. */
export const SavedPaceSchema = v.object({
  /** Subscriptions in a row that did not last. */
  attempts: v.fallback(v.pipe(count, v.toMaxValue(MAX_ATTEMPTS)), 0),
  /** When the last subscription was made, by the wall clock; null if none was. */
  subscribed: v.fallback(v.nullable(v.pipe(count, v.transform<number, Wall>(wall))), null),
});
export type SavedPace = Readonly<v.InferOutput<typeof SavedPaceSchema>>;

export type PaceStore = Pick<SavedFile<typeof SavedPaceSchema>, 'load' | 'save' | 'saved'>;

export const NO_PACE_STORE: PaceStore = {
  load: async () => null,
  save: () => undefined,
  saved: async () => undefined,
};

export class SubscriptionPace {
  readonly #store: PaceStore;
  readonly #random: () => number;
  #attempts = 0;
  #subscribed: Wall | null = null;

  constructor(store: PaceStore, random: () => number = Math.random) {
    this.#store = store;
    this.#random = random;
  }

  /** Loads the pace of an earlier process. Returns how long to wait before the first subscription. */
  async load(now: Wall): Promise<Micros> {
    const { attempts, subscribed } = (await this.#store.load()) ?? { attempts: 0, subscribed: null };
    this.#attempts = attempts;
    this.#subscribed = subscribed;
    if (attempts === 0 || subscribed === null) return millis(0);
    // A clock set back must not make the wait longer than after a failure just now.
    const elapsed = Math.max(0, now - subscribed);
    return millis(Math.max(0, this.#delayMs() - elapsed / 1000));
  }

  /** Called before subscribing, so that the next process knows should this one die with it. */
  subscribing(now: Wall): void {
    this.#subscribed = now;
    this.#store.save({ attempts: Math.min(this.#attempts + 1, MAX_ATTEMPTS), subscribed: now });
  }

  /** Resolves when the next process can load what is known so far. */
  saved(): Promise<void> {
    return this.#store.saved();
  }

  lasted(): void {
    this.#attempts = 0;
    this.#store.save({ attempts: 0, subscribed: this.#subscribed });
  }

  /** Returns the wait after a subscription that did not last, or was never made. */
  failed(): Micros {
    this.#attempts = Math.min(this.#attempts + 1, MAX_ATTEMPTS);
    return millis(this.#delayMs());
  }

  sinceSubscribed(now: Wall): Micros | null {
    return this.#subscribed === null ? null : (Math.max(0, now - this.#subscribed) as Micros);
  }

  #delayMs(): number {
    const max = doubled(MIN_RETRY_MS, MAX_RETRY_MS, this.#attempts);
    return MIN_RETRY_MS + this.#random() * (max - MIN_RETRY_MS);
  }
}
