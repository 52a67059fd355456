/*
 * Refusals: what the runtime sent and could not be read, counted by call, and named in the log. A hostile runtime sends it
 * as fast as it can, so a call is in the log once a minute at most, with how much was refused since.
 */
import { monoNow } from '../clock.ts';
import { between, type Mono, millis } from '../evidence/units.ts';
import type { Logger } from '../log.ts';
import type { AgentMetrics } from './metrics.ts';

/** The calls whose answers are read. */
export type CriCall =
  | 'Version'
  | 'ListPodSandbox'
  | 'ListContainers'
  | 'ContainerStatus'
  | 'PodSandboxStatus'
  | 'GetContainerEvents';

const SAID_EVERY = millis(60_000);

interface Tally {
  readonly said: Mono;
  /** Refused since it was last said. */
  readonly since: number;
}

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
    const now = monoNow();
    const tally = this.#tallies.get(call);
    const refused = (tally?.since ?? 0) + messages;
    if (tally !== undefined && between(tally.said, now) < SAID_EVERY) {
      this.#tallies.set(call, { said: tally.said, since: refused });
      return;
    }
    this.#tallies.set(call, { said: now, since: 0 });
    this.#log.warn({ call, messages: refused }, 'the runtime sent what cannot be read');
  }
}
