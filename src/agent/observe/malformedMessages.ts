/*
 * Refusals: what the runtime sent and could not be read, counted by call, and named in the log. A hostile runtime sends it
 * as fast as it can, so a call is in the log once a minute at most, with how much was refused since.
 */
import type { Logger } from '../../platform/log.ts';
import type { AgentMetrics } from '../metrics.ts';
import { Tally } from './tally.ts';

/** The calls whose answers are read. */
export type CriCall =
  | 'Version'
  | 'ListPodSandbox'
  | 'ListContainers'
  | 'ContainerStatus'
  | 'PodSandboxStatus'
  | 'GetContainerEvents';

export class Refusals {
  readonly #metrics: Pick<AgentMetrics, 'malformed'>;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #tallies = new Map<CriCall, Tally>();

  constructor(metrics: Pick<AgentMetrics, 'malformed'>, log: Pick<Logger, 'warn'>) {
    this.#metrics = metrics;
    this.#log = log;
  }

  /** So many messages, or items of a list, were refused. */
  count(call: CriCall, messages = 1): void {
    this.#metrics.malformed.inc({ call }, messages);
    let tally = this.#tallies.get(call);
    if (tally === undefined) {
      tally = new Tally((refused) =>
        this.#log.warn({ call, messages: refused }, 'the runtime sent what cannot be read'),
      );
      this.#tallies.set(call, tally);
    }
    tally.count(messages);
  }

  /** Names what was not named yet, where the last line of its call is a minute old. */
  sayDue(): void {
    for (const tally of this.#tallies.values()) tally.sayDue();
  }

  /** Names what was not named yet. */
  sayRest(): void {
    for (const tally of this.#tallies.values()) tally.sayRest();
  }
}
