/*
 * The HTTP server of the agent's process. It answers in every state:
 *
 *   starting ── epochRuns() ──► running ── epochEnds() ──► between epochs ── epochRuns() ──► running
 *
 * While the first epoch starts, the agent is not alive: it has its startup probe for that. Between two epochs it is alive as long as it
 * makes progress, because a restart would cure nothing, and not ready. The main process answers itself, so a frozen one does not.
 */
import { monoNow } from '../platform/clock.ts';
import { type Check, type HttpServer, serveHttp } from '../platform/http.ts';
import { between, type Micros, type Mono, millis } from '../protocol/units.ts';
import type { AgentConfig } from './config.ts';
import type { AgentMetrics } from './metrics.ts';
import type { Observer } from './observe/observer.ts';
import type { Shipper } from './ship/shipper.ts';
import type { Spool } from './spool/spool.ts';

/** Longer than a start takes on a slow disk, and than the pause after one that failed. */
const MAX_STEP: Micros = millis(120_000);

export interface ServedEpoch {
  readonly observer: Pick<
    Observer,
    | 'pendingEvents'
    | 'trackedContainers'
    | 'untrackedContainers'
    | 'overdueSuppressed'
    | 'kubeletCounters'
    | 'readerError'
    | 'relistError'
  >;
  readonly shipper: Pick<
    Shipper,
    | 'unacknowledged'
    | 'oldestUnackedSeconds'
    | 'refusedAcks'
    | 'keyValidSeconds'
    | 'error'
    | 'ackError'
    | 'enrolmentError'
  >;
  readonly spool: Pick<Spool, 'bytes' | 'unackedBytes' | 'error' | 'dropped' | 'isInMemory'>;
}

export class AgentServer {
  readonly #metrics: AgentMetrics;
  readonly #spoolMaxBytes: number;
  readonly #now: () => Mono;
  #state: 'starting' | 'running' | 'between epochs' = 'starting';
  /** The present epoch, or the last one: its totals still count. */
  #epoch: ServedEpoch | null = null;
  #reason = 'the first epoch has not started';
  /** When the last step between two epochs ended. */
  #progressAt: Mono;

  constructor(metrics: AgentMetrics, { spoolMaxBytes }: Pick<AgentConfig, 'spoolMaxBytes'>, now = monoNow) {
    this.#metrics = metrics;
    this.#spoolMaxBytes = spoolMaxBytes;
    this.#now = now;
    this.#progressAt = now();
  }

  /** Resolves when the server listens. Throws HTTP_ADDRESS_IN_USE. */
  listen(address: string): Promise<HttpServer> {
    const metrics = () => this.metrics();
    const live = () => this.live();
    const ready = () => this.ready();
    return serveHttp({ address, metrics, live, ready });
  }

  epochRuns(epoch: ServedEpoch): void {
    if (this.#epoch !== null) {
      this.#mirrorTotals(this.#epoch);
      this.#metrics.carryTotals();
    }
    this.#epoch = epoch;
    this.#state = 'running';
  }

  epochEnds(): void {
    this.#state = 'between epochs';
    this.progressed('the last epoch has ended, and the next one has not started');
  }

  /** A step between two epochs has ended. `reason`: why there is no epoch, if that is another one. */
  progressed(reason = this.#reason): void {
    this.#reason = reason;
    this.#progressAt = this.#now();
  }

  metrics(): Promise<string> {
    const metrics = this.#metrics;
    const epoch = this.#epoch;
    metrics.spoolMaxBytes.set(this.#spoolMaxBytes);
    if (epoch === null) return metrics.registry.metrics();
    this.#mirrorTotals(epoch);
    if (this.#state === 'running') {
      const { observer, shipper, spool } = epoch;
      metrics.pendingEvents.set(observer.pendingEvents);
      metrics.trackedContainers.set(observer.trackedContainers);
      metrics.spoolBytes.set(spool.bytes);
      metrics.spoolUnackedBytes.set(spool.unackedBytes);
      metrics.spoolFailing.set(spool.error === null ? 0 : 1);
      metrics.spoolInMemory.set(spool.isInMemory ? 1 : 0);
      metrics.unackedRecords.set(shipper.unacknowledged);
      metrics.oldestUnackedAge.set(shipper.oldestUnackedSeconds);
      metrics.nodeKeyValid.set(shipper.keyValidSeconds);
    }
    return metrics.registry.metrics();
  }

  /** A restart cures only a stuck reader, or a start that is stuck: Redis or a full spool must never restart a fleet. */
  live(): Readonly<Record<string, Check>> {
    const epoch = this.#epoch;
    if (this.#state === 'starting' || epoch === null) return { epoch: () => this.#reason };
    if (this.#state === 'running') return { reader: () => epoch.observer.readerError };
    const stuck = between(this.#progressAt, this.#now());
    return {
      epoch: () => (stuck > MAX_STEP ? `nothing for ${Math.round(stuck / 1e6)} s: ${this.#reason}` : null),
    };
  }

  ready(): Readonly<Record<string, Check>> {
    const epoch = this.#epoch;
    if (this.#state !== 'running' || epoch === null) return { epoch: () => this.#reason };
    const { observer, shipper, spool } = epoch;
    return {
      relist: () => observer.relistError,
      redis: () => shipper.error,
      acks: () => shipper.ackError,
      enrolment: () => shipper.enrolmentError,
      spool: () => spool.error,
    };
  }

  #mirrorTotals({ observer, shipper, spool }: ServedEpoch): void {
    this.#metrics.untrackedContainers.set(observer.untrackedContainers);
    this.#metrics.overdueSuppressed.set(observer.overdueSuppressed);
    const { lateSuppressed, notBrought, unobservedPods } = observer.kubeletCounters;
    this.#metrics.kubeletLateSuppressed.set(lateSuppressed);
    this.#metrics.podsApiNotBrought.set(notBrought);
    this.#metrics.podsApiUnobservedPods.set(unobservedPods);
    this.#metrics.spoolDropped.set(spool.dropped);
    this.#metrics.refusedAcks.set(shipper.refusedAcks);
  }
}
