/*
 * Malformed messages from the runtime: counted and logged by call.
 */
import type { CriCall } from '../../cri/client.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import type { AgentMetrics } from '../metrics.ts';

export class MalformedMessages {
  readonly #metrics: Pick<AgentMetrics, 'malformed'>;
  readonly #log: Pick<ThrottledLog, 'warn'>;

  constructor(metrics: Pick<AgentMetrics, 'malformed'>, log: Pick<ThrottledLog, 'warn'>) {
    this.#metrics = metrics;
    this.#log = log;
  }

  count(call: CriCall, messages = 1): void {
    this.#metrics.malformed.inc({ call }, messages);
    this.#log.warn({ call, messages }, 'malformed messages from the runtime', messages);
  }
}
