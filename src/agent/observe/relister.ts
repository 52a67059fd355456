/*
 * The relister: both list calls, paced.
 *
 * The period is counted from the end of one relist to the start of the next, as the kubelet's is. It has jitter, so that the agents of
 * many nodes do not march in step, and is stretched to at most a minute so that listing takes no more than one hundredth of the time:
 * an observer must not become the load. A burst of events brings a relist forward within these bounds, but never after one that failed:
 * what that cost the runtime is unknown.
 */

import { CriError, type ObserverCalls } from '../../cri/client.ts';
import { CONTAINER_LABELS, readContainer, readSandbox, SANDBOX_LABELS } from '../../cri/items.ts';
import {
  ListCall,
  type ListCallPorts,
  type ListTransport,
  type MeasuredListAnswer,
} from '../../cri/listCall.ts';
import { EndlessAnswer, ListDecoder } from '../../cri/lists.ts';
import { MalformedMessage } from '../../cri/malformed.ts';
import type { RuntimeProfile } from '../../cri/profiles.ts';
import { jittered } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { sleep } from '../../platform/sleep.ts';
import { TokenBucket } from '../../platform/tokenBucket.ts';
import type { Relist } from '../../protocol/observation.ts';
import type { ListCallName } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import type { RelistStats } from './relistMinute.ts';

/** The kubelet's own limit of a runtime request (kubelet --runtime-request-timeout). */
const LIST_TIMEOUT_MS = 120_000;
const JITTER = 0.1;
const MAX_SHARE_OF_TIME = 0.01;
const MAX_WAIT: Micros = millis(60_000);
/** No burst makes the wait shorter: the period of a kubelet that only relists (pkg/kubelet/kubelet.go, genericPlegRelistPeriod). */
const MIN_WAIT: Micros = millis(1_000);
/** A smaller gain is not worth a token: under evenly spaced events none would be left for a burst. */
const MIN_GAIN: Micros = millis(1_000);

/** Five pods that start, or two and a half that live and end. */
export const BURST_EVENTS = 20;
const EARLY_RELISTS = { capacity: 2, interval: millis(30_000) };

/** The codes of a failed relist, apart from those of its calls. */
export const RELIST_ERROR_CODES = ['TOO_MANY_ITEMS', 'TOO_MANY_BYTES', 'UNEXPECTED'] as const;

export interface RelistFailure {
  readonly from: Mono;
  readonly at: Mono;
  /** See docs/reference/errors.md, "Lists that fail". */
  readonly code: string;
  readonly message: string;
}

/** A list call that is under way. */
export interface RunningList {
  readonly call: ListCallName;
  readonly since: Mono;
}

export interface RelisterEvents {
  relisted(relist: Relist, stats: RelistStats): void;
  failed(failure: RelistFailure): void;
  /** Items without a usable id, items that could not be decoded, and answers that could not. */
  malformed(call: ListCallName, messages: number): void;
}

export interface RelisterOptions {
  readonly client: ObserverCalls;
  readonly period: Micros;
  readonly profile: Pick<RuntimeProfile, 'streamingLists'>;
  readonly log: Logger;
  /** For each of the two calls. */
  readonly timeoutMs?: number;
}

interface RelistCost {
  /** How long to wait for the runtime's sake, in microseconds. */
  readonly minWait: number;
  readonly failed: boolean;
}

/** A wait that a burst may shorten. */
interface ShortenableWait {
  /** After this it is no longer worth a token. */
  readonly worthUntil: Mono;
  readonly shorten: () => void;
}

export class Relister {
  readonly #options: RelisterOptions;
  readonly #events: RelisterEvents;
  readonly #sandboxes: ListCall;
  readonly #containers: ListCall;
  readonly #bursts = new BurstTrigger();
  #runningSince: Mono | null = null;
  #running: RunningList | null = null;
  #wait: ShortenableWait | null = null;

  constructor(options: RelisterOptions, events: RelisterEvents) {
    const { client } = options;
    this.#options = options;
    this.#events = events;
    this.#sandboxes = this.#listCall('sandboxes', new ListDecoder(readSandbox, SANDBOX_LABELS), {
      plain: (bounds) => client.listSandboxes(bounds),
      streamed: (bounds, take) => client.streamSandboxes(bounds, take),
    });
    this.#containers = this.#listCall('containers', new ListDecoder(readContainer, CONTAINER_LABELS), {
      plain: (bounds) => client.listContainers(bounds),
      streamed: (bounds, take) => client.streamContainers(bounds, take),
    });
    this.setProfile(options.profile);
  }

  /** When the running relist started; null between two relists. */
  get runningSince(): Mono | null {
    return this.#runningSince;
  }

  /** Which of its two calls is under way. */
  get running(): RunningList | null {
    return this.#running;
  }

  setProfile(profile: Pick<RuntimeProfile, 'streamingLists'>): void {
    this.#sandboxes.setRuntime(profile);
    this.#containers.setRuntime(profile);
  }

  eventReceived(): void {
    this.#bursts.eventReceived();
    this.#shortenAfterBurst();
  }

  /** Relists until the signal is aborted; a failure is reported and does not end it. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#bursts.relistStarted();
      const { minWait, failed } = await this.#relist(signal);
      const wait = Math.min(MAX_WAIT, Math.max(this.#options.period, minWait));
      const usual = jittered(wait, JITTER);
      const shortest = failed ? usual : Math.max(MIN_WAIT, minWait);
      if (!signal.aborted) await this.#waitForNext(usual, shortest, signal);
    }
  }

  /** Waits `usual` microseconds, or only `shortest` after a burst of events. The signal ends it early. */
  async #waitForNext(usual: number, shortest: number, signal: AbortSignal): Promise<void> {
    const start = monoNow();
    const early = new AbortController();
    const shorten = () => early.abort();
    const isWorthIt = shortest + MIN_GAIN <= usual;
    this.#wait = isWorthIt ? { worthUntil: shift(start, usual - MIN_GAIN), shorten } : null;
    this.#shortenAfterBurst();
    signal.addEventListener('abort', shorten);
    await sleep(usual / 1000, early.signal);
    signal.removeEventListener('abort', shorten);
    this.#wait = null;
    if (early.signal.aborted) await sleep((shortest - between(start, monoNow())) / 1000, signal);
  }

  #shortenAfterBurst(): void {
    const wait = this.#wait;
    const now = monoNow();
    if (wait === null || now > wait.worthUntil || !this.#bursts.tryTake(now)) return;
    this.#wait = null;
    wait.shorten();
  }

  async #relist(signal: AbortSignal): Promise<RelistCost> {
    const start = monoNow();
    this.#runningSince = start;
    try {
      const sandboxes = await this.#ask('ListPodSandbox', this.#sandboxes, signal);
      const containers = await this.#ask('ListContainers', this.#containers, signal);
      const took = between(start, containers.end);
      const stats = {
        took,
        sandboxListBytes: sandboxes.bytes,
        containerListBytes: containers.bytes,
      };
      this.#events.relisted({ sandboxes, containers }, stats);
      return { minWait: took / MAX_SHARE_OF_TIME, failed: false };
    } catch (error) {
      // The agent cancelled it, which says nothing about the runtime.
      if (signal.aborted) return { minWait: 0, failed: true };
      const at = monoNow();
      this.#events.failed({ from: start, at, code: codeOf(error), message: messageOf(error) });
      // A call that failed cost the runtime little, and it may be back soon.
      return { minWait: between(start, at), failed: true };
    } finally {
      this.#runningSince = null;
    }
  }

  async #ask(call: ListCallName, list: ListCall, signal: AbortSignal): Promise<MeasuredListAnswer> {
    const before = list.decoder.malformedItems;
    let answers = 0;
    this.#running = { call, since: monoNow() };
    try {
      return await list.ask(signal);
    } catch (error) {
      if (error instanceof MalformedMessage || error instanceof EndlessAnswer) answers = 1;
      throw error;
    } finally {
      this.#running = null;
      const malformed = answers + list.decoder.malformedItems - before;
      if (malformed > 0) this.#events.malformed(call, malformed);
    }
  }

  #listCall(list: string, decoder: ListDecoder, ports: ListCallPorts): ListCall {
    const { log, timeoutMs = LIST_TIMEOUT_MS } = this.#options;
    return new ListCall(decoder, ports, timeoutMs, (transport: ListTransport, why) => {
      if (transport === 'streamed')
        log.info({ list, code: why.code, error: why.message }, 'list is streamed');
      else log.warn({ list, code: why.code, error: why.message }, 'list cannot be streamed');
    });
  }
}

function codeOf(error: unknown): string {
  if (error instanceof CriError || error instanceof EndlessAnswer) return error.code;
  return error instanceof MalformedMessage ? 'MALFORMED' : 'UNEXPECTED';
}

/**
 * After many events the next relist comes early, because containers that live and end between two lists are never listed. Each early relist
 * takes a token, and tokens return slowly: a node that is busy all day is relisted at most a sixth more often at the default period.
 */
export class BurstTrigger {
  #events = 0;
  readonly #tokens = new TokenBucket(EARLY_RELISTS);

  eventReceived(): void {
    this.#events += 1;
  }

  /** A relist starts, and will show what the events so far announced. */
  relistStarted(): void {
    this.#events = 0;
  }

  /** Whether the next relist may come early. If so, this takes a token. */
  tryTake(now: Mono): boolean {
    return this.#events >= BURST_EVENTS && this.#tokens.tryTake(now);
  }
}
