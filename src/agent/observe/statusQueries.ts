/*
 * Questions for ContainerStatus and PodSandboxStatus: what they know of what is overdue. Bounded in rate, in time and in
 * number, all together, because the runtime has other work. Containers go first: only their statuses have exact times that can
 * clear a runtime, or convict it.
 */

import type { CriCall } from '../../cri/client.ts';
import { type CriClient, CriError } from '../../cri/client.ts';
import { sandboxAnswer, timesOf } from '../../cri/items.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { StatusAnswer, StatusQuery } from '../../protocol/observation.ts';

type Known = Pick<Extract<StatusAnswer, { found: true }>, 'times' | 'sandbox'>;

const EVERY_MS = 200;
const TIMEOUT_MS = 5_000;
const MOST_WAITING = 1_000;

export interface QuestionEvents {
  answered(answer: StatusAnswer): void;
  /** An answer came that could not be read; it is told as one that was not found, too. */
  refused(call: Extract<CriCall, 'ContainerStatus' | 'PodSandboxStatus'>): void;
}

export class Questions {
  readonly #client: CriClient;
  readonly #events: QuestionEvents;
  readonly #containers = new Set<string>();
  readonly #sandboxes = new Set<string>();
  /** Runs only while something waits: an idle node is not woken up for nothing. */
  #timer: NodeJS.Timeout | undefined;
  #asking = false;
  #stopped = false;

  constructor(client: CriClient, events: QuestionEvents) {
    this.#client = client;
    this.#events = events;
  }

  /** Takes a question; one too many is left unasked, and its verdict rests on the window alone. */
  ask({ id, isSandbox }: StatusQuery): void {
    if (this.#stopped || this.#containers.size + this.#sandboxes.size >= MOST_WAITING) return;
    (isSandbox ? this.#sandboxes : this.#containers).add(id);
    this.#timer ??= setInterval(() => void this.#askNext(), EVERY_MS);
  }

  stop(): void {
    this.#stopped = true;
    this.#rest();
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #askNext(): Promise<void> {
    if (this.#asking) return;
    const next = this.#next();
    if (next === null) {
      this.#rest();
      return;
    }
    this.#asking = true;
    this.#events.answered(await this.#ask(next));
    this.#asking = false;
  }

  #next(): StatusQuery | null {
    for (const waiting of [this.#containers, this.#sandboxes]) {
      const [id] = waiting;
      if (id !== undefined) {
        waiting.delete(id);
        return { id, isSandbox: waiting === this.#sandboxes };
      }
    }
    return null;
  }

  async #ask({ id, isSandbox }: StatusQuery): Promise<StatusAnswer> {
    try {
      const known = await (isSandbox ? this.#sandbox(id) : this.#container(id));
      if (known === null) return { id, at: monoNow(), found: false, reason: 'the answer is of another id' };
      return { id, at: monoNow(), found: true, ...known };
    } catch (error) {
      const reason = error instanceof CriError ? error.code : messageOf(error);
      if (reason === 'MALFORMED') this.#events.refused(isSandbox ? 'PodSandboxStatus' : 'ContainerStatus');
      return { id, at: monoNow(), found: false, reason };
    }
  }

  async #container(id: string): Promise<Known | null> {
    const status = await this.#client.containerStatus(id, TIMEOUT_MS);
    return status?.id === id ? { times: timesOf(status), sandbox: null } : null;
  }

  async #sandbox(id: string): Promise<Known | null> {
    const status = await this.#client.sandboxStatus(id, TIMEOUT_MS);
    return status?.id === id ? sandboxAnswer(status) : null;
  }
}
