/*
 * Relisting: both list calls, paced.
 *
 * The period is counted from the end of one relist to the start of the next, as the kubelet's is, with jitter so that the
 * agents of many nodes do not march in step, and stretched (to a minute at most) so that listing takes no more than one
 * hundredth of the time: an observer must not become the load. A burst of events asks for one earlier, within these bounds, and
 * never after one that failed: what that cost the runtime nobody knows.
 */

import type { CriCall } from '../../cri/client.ts';
import { type CriClient, CriError } from '../../cri/client.ts';
import { CONTAINER_LABELS, readContainer, readSandbox, SANDBOX_LABELS } from '../../cri/items.ts';
import { ListCall, type ListCallPorts, type MeasuredListAnswer, type Way } from '../../cri/listCall.ts';
import { EndlessAnswer, ListReader, MalformedAnswer } from '../../cri/lists.ts';
import type { RuntimeProfile } from '../../cri/profiles.ts';
import { jittered } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { sleep } from '../../platform/sleep.ts';
import type { Relist } from '../../protocol/observation.ts';
import { between, type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import { Bursts } from './burstTrigger.ts';
import type { RelistFigures } from './relistMinute.ts';

/** The kubelet's own limit of a runtime request (kubelet --runtime-request-timeout). */
const LIST_TIMEOUT_MS = 120_000;
const JITTER = 0.1;
const MOST_SHARE = 0.01;
const LONGEST: Micros = millis(60_000);
/** No burst makes the pause shorter: the period of a kubelet that only relists (pkg/kubelet/kubelet.go, genericPlegRelistPeriod). */
const SOONEST: Micros = millis(1_000);
/** For less it is not worth a token: where events come evenly, there would be none left for a burst. */
const WORTHWHILE: Micros = millis(1_000);

/** Codes of a failed relist beside those of its calls. */
export const RELIST_ERROR_CODES = ['TOO_MANY_ITEMS', 'TOO_MANY_BYTES', 'UNEXPECTED'] as const;

export interface RelistFailure {
  /** When the relist began that failed, and when that was known. */
  readonly from: Mono;
  readonly at: Mono;
  /** What went wrong: see docs/reference/errors.md, "Lists that fail". */
  readonly code: string;
  readonly message: string;
}

type ListName = Extract<CriCall, 'ListPodSandbox' | 'ListContainers'>;

export interface RelistEvents {
  relisted(relist: Relist, figures: RelistFigures): void;
  failed(failure: RelistFailure): void;
  /** Items that had no usable id, or were none, and answers that could not be read as a whole. */
  refused(call: ListName, messages: number): void;
}

export interface RelistOptions {
  readonly client: CriClient;
  readonly period: Micros;
  readonly profile: Pick<RuntimeProfile, 'streamingLists'>;
  readonly log: Logger;
  /** For each of the two calls. */
  readonly timeoutMs?: number;
}

export class Relister {
  readonly #options: RelistOptions;
  readonly #events: RelistEvents;
  readonly #sandboxes: ListCall;
  readonly #containers: ListCall;
  readonly #bursts = new Bursts();
  #waitingSince: Mono | null = null;
  /** Ends the pause as early as it may end, worth it until then; null where there is none, or it was done. */
  #hasten: { readonly until: Mono; readonly now: () => void } | null = null;

  constructor(options: RelistOptions, events: RelistEvents) {
    const { client } = options;
    this.#options = options;
    this.#events = events;
    this.#sandboxes = this.#listCall('sandboxes', new ListReader(readSandbox, SANDBOX_LABELS), {
      plain: (bounds) => client.listSandboxes(bounds),
      streamed: (bounds, take) => client.streamSandboxes(bounds, take),
    });
    this.#containers = this.#listCall('containers', new ListReader(readContainer, CONTAINER_LABELS), {
      plain: (bounds) => client.listContainers(bounds),
      streamed: (bounds, take) => client.streamContainers(bounds, take),
    });
    this.runtimeIs(options.profile);
  }

  /** When the relist began that is under way; null where none is. */
  get waitingSince(): Mono | null {
    return this.#waitingSince;
  }

  /** From now on another runtime answers. */
  runtimeIs(profile: Pick<RuntimeProfile, 'streamingLists'>): void {
    this.#sandboxes.runtimeIs(profile);
    this.#containers.runtimeIs(profile);
  }

  /** An event came: many of them ask for a relist earlier than it is due. */
  heard(): void {
    this.#bursts.heard();
    this.#hastenAfterBurst();
  }

  /** Relists until the signal is aborted; every failure is told, none ends it. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#bursts.relisting();
      const { least, failed } = await this.#once(signal);
      const wait = Math.min(LONGEST, Math.max(this.#options.period, least));
      const usual = jittered(wait, JITTER);
      const soonest = failed ? usual : Math.max(SOONEST, least);
      if (!signal.aborted) await this.#pause(usual, soonest, signal);
    }
  }

  /** Waits `usual` microseconds, after a burst of events only `soonest` where that is less. Ends early with the signal. */
  async #pause(usual: number, soonest: number, signal: AbortSignal): Promise<void> {
    const begun = monoNow();
    const early = new AbortController();
    const end = () => early.abort();
    const isWorthIt = soonest + WORTHWHILE <= usual;
    this.#hasten = isWorthIt ? { until: shift(begun, usual - WORTHWHILE), now: end } : null;
    this.#hastenAfterBurst();
    signal.addEventListener('abort', end);
    await sleep(usual / 1000, early.signal);
    signal.removeEventListener('abort', end);
    this.#hasten = null;
    if (early.signal.aborted) await sleep((soonest - between(begun, monoNow())) / 1000, signal);
  }

  #hastenAfterBurst(): void {
    const hasten = this.#hasten;
    const now = monoNow();
    if (hasten === null || now > hasten.until || !this.#bursts.take(now)) return;
    this.#hasten = null;
    hasten.now();
  }

  /** `least`: how long the next one should wait for the sake of the runtime, in microseconds. */
  async #once(signal: AbortSignal): Promise<{ readonly least: number; readonly failed: boolean }> {
    const start = monoNow();
    this.#waitingSince = start;
    try {
      const sandboxes = await this.#ask('ListPodSandbox', this.#sandboxes, signal);
      const containers = await this.#ask('ListContainers', this.#containers, signal);
      const took = between(start, containers.end);
      this.#events.relisted(
        { sandboxes, containers },
        {
          took,
          sandboxes: sandboxes.items.size,
          containers: containers.items.size,
          bytes: sandboxes.bytes + containers.bytes,
        },
      );
      return { least: took / MOST_SHARE, failed: false };
    } catch (error) {
      // That we ended it says nothing of the runtime.
      if (signal.aborted) return { least: 0, failed: true };
      const at = monoNow();
      this.#events.failed({ from: start, at, code: codeOf(error), message: messageOf(error) });
      // A call that failed cost the runtime little; it may be back soon.
      return { least: between(start, at), failed: true };
    } finally {
      this.#waitingSince = null;
    }
  }

  async #ask(call: ListName, list: ListCall, signal: AbortSignal): Promise<MeasuredListAnswer> {
    const before = list.reader.refused;
    let answers = 0;
    try {
      return await list.ask(signal);
    } catch (error) {
      if (error instanceof MalformedAnswer || error instanceof EndlessAnswer) answers = 1;
      throw error;
    } finally {
      const refused = answers + list.reader.refused - before;
      if (refused > 0) this.#events.refused(call, refused);
    }
  }

  #listCall(list: string, reader: ListReader, ports: ListCallPorts): ListCall {
    const { log, timeoutMs = LIST_TIMEOUT_MS } = this.#options;
    return new ListCall(reader, ports, timeoutMs, (way: Way, why) => {
      if (way === 'streamed') log.info({ list, code: why.code, error: why.message }, 'list is streamed');
      else log.warn({ list, code: why.code, error: why.message }, 'list cannot be streamed');
    });
  }
}

function codeOf(error: unknown): string {
  if (error instanceof CriError || error instanceof EndlessAnswer) return error.code;
  return error instanceof MalformedAnswer ? 'MALFORMED' : 'UNEXPECTED';
}
