/*
 * Questions for ContainerStatus: the exact times of what is overdue. Bounded in rate, in time and in number, because the
 * runtime has other work.
 */
import { monoNow } from '../clock.ts';
import { type CriClient, CriError } from './cri/client.ts';
import { timesOf } from './cri/items.ts';
import type { Ask, StatusAnswer } from './pleg/observation.ts';

const EVERY_MS = 200;
const TIMEOUT_MS = 5_000;
const MOST_WAITING = 1_000;

export class Questions {
  readonly #client: CriClient;
  readonly #answer: (answer: StatusAnswer) => void;
  readonly #waiting = new Set<string>();
  /** Runs only while something waits: an idle node is not woken up for nothing. */
  #timer: NodeJS.Timeout | undefined;
  #asking = false;
  #stopped = false;

  constructor(client: CriClient, answer: (answer: StatusAnswer) => void) {
    this.#client = client;
    this.#answer = answer;
  }

  /** Takes a question; one too many is left unasked, and its verdict rests on the window alone. */
  ask({ id }: Ask): void {
    if (this.#stopped || this.#waiting.size >= MOST_WAITING) return;
    this.#waiting.add(id);
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
    const [id] = this.#waiting;
    if (id === undefined) {
      this.#rest();
      return;
    }
    this.#waiting.delete(id);
    this.#asking = true;
    this.#answer(await this.#status(id));
    this.#asking = false;
  }

  async #status(id: string): Promise<StatusAnswer> {
    try {
      const status = await this.#client.containerStatus(id, TIMEOUT_MS);
      if (status === undefined || status.id !== id) {
        return { id, at: monoNow(), found: false, reason: 'the answer is of another container' };
      }
      return { id, at: monoNow(), found: true, times: timesOf(status) };
    } catch (error) {
      const reason = error instanceof CriError ? error.code : String(error);
      return { id, at: monoNow(), found: false, reason };
    }
  }
}
