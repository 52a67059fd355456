/*
 * Status queries: asks ContainerStatus and PodSandboxStatus for the exact times of what is overdue. Rate, time and number are bounded
 * for both calls together, because the runtime has other work. Containers go first: only their statuses have exact times that can
 * clear a runtime, or convict it.
 */
import { type CriCall, CriError, type ObserverCalls } from '../../cri/client.ts';
import { sandboxAnswer, timesOf } from '../../cri/items.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { StatusAnswer, StatusQuery } from '../../protocol/observation.ts';

type FoundStatus = Pick<Extract<StatusAnswer, { found: true }>, 'times' | 'sandbox'>;

const INTERVAL_MS = 200;
const BOUNDS = { timeoutMs: 5_000 } as const;
const MAX_WAITING = 1_000;

export interface StatusQueryEvents {
  answered(answer: StatusAnswer): void;
  /** The answer could not be decoded; it is passed to `answered` as not found, too. */
  malformed(call: Extract<CriCall, 'ContainerStatus' | 'PodSandboxStatus'>): void;
}

export class StatusQueries {
  readonly #client: ObserverCalls;
  readonly #events: StatusQueryEvents;
  readonly #containers = new Set<string>();
  readonly #sandboxes = new Set<string>();
  /** Runs only while a query waits, so that an idle node is not woken up. */
  #timer: NodeJS.Timeout | undefined;
  #asking = false;
  #stopped = false;

  constructor(client: ObserverCalls, events: StatusQueryEvents) {
    this.#client = client;
    this.#events = events;
  }

  /** Queues a query. Drops it if too many wait: the finding then rests on the window of the lists alone. */
  ask({ id, isSandbox }: StatusQuery): void {
    if (this.#stopped || this.#containers.size + this.#sandboxes.size >= MAX_WAITING) return;
    (isSandbox ? this.#sandboxes : this.#containers).add(id);
    this.#timer ??= setInterval(() => void this.#askNext(), INTERVAL_MS);
  }

  stop(): void {
    this.#stopped = true;
    this.#stopTimer();
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #askNext(): Promise<void> {
    if (this.#asking) return;
    const next = this.#takeNext();
    if (next === null) {
      this.#stopTimer();
      return;
    }
    this.#asking = true;
    this.#events.answered(await this.#answer(next));
    this.#asking = false;
  }

  #takeNext(): StatusQuery | null {
    for (const waiting of [this.#containers, this.#sandboxes]) {
      const [id] = waiting;
      if (id !== undefined) {
        waiting.delete(id);
        return { id, isSandbox: waiting === this.#sandboxes };
      }
    }
    return null;
  }

  async #answer({ id, isSandbox }: StatusQuery): Promise<StatusAnswer> {
    try {
      const status = await (isSandbox ? this.#sandboxStatus(id) : this.#containerStatus(id));
      if (status === null) return { id, at: monoNow(), found: false, reason: 'the answer is of another id' };
      return { id, at: monoNow(), found: true, ...status };
    } catch (error) {
      const reason = error instanceof CriError ? error.code : messageOf(error);
      if (reason === 'MALFORMED') this.#events.malformed(isSandbox ? 'PodSandboxStatus' : 'ContainerStatus');
      return { id, at: monoNow(), found: false, reason };
    }
  }

  async #containerStatus(id: string): Promise<FoundStatus | null> {
    const status = await this.#client.containerStatus(id, BOUNDS);
    return status?.id === id ? { times: timesOf(status), sandbox: null } : null;
  }

  async #sandboxStatus(id: string): Promise<FoundStatus | null> {
    const status = await this.#client.sandboxStatus(id, BOUNDS);
    return status?.id === id ? sandboxAnswer(status) : null;
  }
}
