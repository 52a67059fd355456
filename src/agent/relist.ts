/*
 * Relisting: both list calls, paced.
 *
 * The period is counted from the end of one relist to the start of the next, as the kubelet's is, with jitter so that the
 * agents of many nodes do not march in step, and stretched (to a minute at most) so that listing takes no more than one
 * hundredth of the time: an observer must not become the load.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { monoNow } from '../clock.ts';
import { between, type Micros, type Mono, millis } from '../evidence/units.ts';
import { type CriClient, CriError } from './cri/client.ts';
import { CONTAINER_LABELS, readContainer, readSandbox, SANDBOX_LABELS } from './cri/items.ts';
import { ListReader } from './cri/lists.ts';
import type { RelistFigures } from './minute.ts';
import type { Answer, Relist } from './pleg/observation.ts';

/** The kubelet's own limit of a runtime request (kubelet --runtime-request-timeout). */
const LIST_TIMEOUT_MS = 120_000;
const JITTER = 0.1;
const MOST_SHARE = 0.01;
const LONGEST: Micros = millis(60_000);

export interface RelistEvents {
  relisted(relist: Relist, figures: RelistFigures): void;
  failed(at: Mono, code: string, message: string): void;
  /** Items that had no usable id, or were none, since the last time. */
  refused(items: number): void;
}

export class Relister {
  readonly #client: CriClient;
  readonly #period: Micros;
  readonly #events: RelistEvents;
  readonly #sandboxes = new ListReader(readSandbox, SANDBOX_LABELS);
  readonly #containers = new ListReader(readContainer, CONTAINER_LABELS);

  constructor(client: CriClient, period: Micros, events: RelistEvents) {
    this.#client = client;
    this.#period = period;
    this.#events = events;
  }

  /** Relists until the signal is aborted; every failure is told, none ends it. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wait = Math.min(LONGEST, Math.max(this.#period, await this.#once()));
      const jittered = wait * (1 + JITTER * (2 * Math.random() - 1));
      await sleep(jittered / 1000, undefined, { signal }).catch(endOfSleep);
    }
  }

  /** How long the next one should wait for the sake of the runtime, in microseconds. */
  async #once(): Promise<number> {
    const start = monoNow();
    const refused = this.#refused;
    try {
      const sandboxAnswer = await this.#client.listSandboxes(LIST_TIMEOUT_MS);
      const middle = monoNow();
      const containerAnswer = await this.#client.listContainers(LIST_TIMEOUT_MS);
      const end = monoNow();
      const relist: Relist = {
        sandboxes: answerOf(this.#sandboxes, sandboxAnswer, start, middle),
        containers: answerOf(this.#containers, containerAnswer, middle, end),
      };
      const took = between(start, end);
      this.#events.relisted(relist, {
        took,
        sandboxes: relist.sandboxes.items.size,
        containers: relist.containers.items.size,
        bytes: sandboxAnswer.length + containerAnswer.length,
      });
      return took / MOST_SHARE;
    } catch (error) {
      const code = error instanceof CriError ? error.code : 'MALFORMED';
      this.#events.failed(monoNow(), code, error instanceof Error ? error.message : String(error));
      // A call that failed cost the runtime little; it may be back soon.
      return between(start, monoNow());
    } finally {
      if (this.#refused > refused) this.#events.refused(this.#refused - refused);
    }
  }

  get #refused(): number {
    return this.#sandboxes.refused + this.#containers.refused;
  }
}

function answerOf(reader: ListReader, bytes: Buffer, start: Mono, end: Mono): Answer {
  const items = reader.read(bytes);
  return { start, end, items, whole: reader.whole };
}

/** A sleep ends early only when the program is told to stop, which the loop looks at itself. */
function endOfSleep(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) throw error;
}
