/*
 * Status queries: asks ContainerStatus and PodSandboxStatus for the exact times of what is overdue. Rate, time and number are bounded
 * for both calls together. Containers go first: only their statuses have exact times that can clear a runtime, or convict it.
 */
import { type CriCall, CriError, type ObserverCalls } from '../../cri/client.ts';
import { sandboxAnswer, timesOf } from '../../cri/items.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { StatusAnswer, StatusQuery } from '../../protocol/observation.ts';
import { PacedCalls } from './pacedCalls.ts';

type FoundStatus = Pick<Extract<StatusAnswer, { found: true }>, 'times' | 'sandbox'>;

const BOUNDS = { timeoutMs: 5_000 } as const;

export interface StatusQueryEvents {
  answered(answer: StatusAnswer): void;
  /** The answer could not be decoded; it is passed to `answered` as not found, too. */
  malformed(call: Extract<CriCall, 'ContainerStatus' | 'PodSandboxStatus'>): void;
}

export class StatusQueries {
  readonly #client: ObserverCalls;
  readonly #events: StatusQueryEvents;
  readonly #calls: PacedCalls<StatusQuery>;

  constructor(client: ObserverCalls, events: StatusQueryEvents) {
    this.#client = client;
    this.#events = events;
    this.#calls = new PacedCalls(async (query) => events.answered(await this.#answer(query)));
  }

  /** Queues a query. Drops it if too many wait: the finding then rests on the window of the lists alone. */
  ask(query: StatusQuery): void {
    this.#calls.add(query.id, query, !query.isSandbox);
  }

  stop(): void {
    this.#calls.stop();
  }

  async #answer({ id, isSandbox }: StatusQuery): Promise<StatusAnswer> {
    const asked = monoNow();
    try {
      const status = await (isSandbox ? this.#sandboxStatus(id) : this.#containerStatus(id));
      if (status === null)
        return { id, asked, at: monoNow(), found: false, reason: 'the answer is of another id' };
      return { id, asked, at: monoNow(), found: true, ...status };
    } catch (error) {
      const reason = error instanceof CriError ? error.code : messageOf(error);
      if (reason === 'MALFORMED') this.#events.malformed(isSandbox ? 'PodSandboxStatus' : 'ContainerStatus');
      return { id, asked, at: monoNow(), found: false, reason };
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
