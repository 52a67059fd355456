/*
 * Sends findings, their resolutions, mode changes and verdicts to a collector of OpenTelemetry, by OTLP over HTTP. Only the leader does.
 *
 * While it is to send, every transaction that stores one of them puts it into store.otlp_outbox (a trigger), from where it is deleted once the
 * collector has accepted it: a record may be sent twice, with the same log.record.uid. While the collector does not answer, the newest 100,000 wait
 * there, and older ones are counted and dropped, as is one that the collector refuses but not others, and one that Postgres takes too long to read
 * alone: SQL still has them. Storing evidence never waits for it.
 */
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { and, eq, isNotNull, isNull } from 'drizzle-orm';
import { errorFields, PlegwatchError } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { type DatabaseErrorKind, databaseErrorKind } from '../../store/databaseError.ts';
import { databaseNow } from '../../store/expressions.ts';
import { cluster, otlpOutbox } from '../../store/schema/tables.ts';
import type { Store } from '../../store/store.ts';
import type { LogExporter } from './exporter.ts';
import { deleteSent, dropNext, dropOldest, listOutbox, type Outgoing } from './statements.ts';

/** The results of a record. */
export const OTLP_RESULTS = ['sent', 'dropped'] as const;
type OtlpResult = (typeof OTLP_RESULTS)[number];

const PERIOD_MS = 2_000;
const BACKOFF = { firstMs: 1_000, maxMs: 60_000 };
const AT_ONCE = 500;
const MAX_WAITING = 100_000;
/** A verdict rests on everything that was stored of its period, and minutes of it may come later than the one that ended it. */
const VERDICTS_AFTER_MS = 300_000;
/** The exporter gives up when a connection is idle, but not one on which an answer comes byte by byte. */
const MAX_REQUEST_MS = 300_000;
/** Errors of Postgres for which a row that it reads may be the cause. */
const OF_ROWS: readonly DatabaseErrorKind[] = ['timeout', 'data'];
/** The statuses of a wrong address, or a caller without the right. */
const OF_ADDRESS = [401, 402, 403, 404, 405, 407];

export interface OtlpSenderOptions {
  /** In the term of the leader. */
  readonly store: Store;
  /** The name of the cluster. */
  readonly cluster: string;
  /** The URL of the collector, without `/v1/logs`; undefined: nothing is sent, and what waits is deleted. */
  readonly endpoint: string | undefined;
  readonly log: Logger;
  readonly onResult: (result: OtlpResult, count: number) => void;
  /** For tests. */
  readonly maxWaiting?: number;
  readonly verdictsAfterMs?: number;
  readonly maxRequestMs?: number;
}

/** Runs until it is stopped, and survives every failure. The next leader sends again records that are under way then. */
export function startOtlpSender(options: OtlpSenderOptions): { stop(): Promise<void> } {
  const { endpoint, log } = options;
  let sender: OtlpSender | undefined;
  async function pass(url: string, signal: AbortSignal): Promise<number> {
    const { LogExporter } = await import('./exporter.ts');
    sender ??= new OtlpSender(options, new LogExporter(url, log));
    return sender.pass(signal);
  }
  const loop = new Loop({
    work: (signal) => (endpoint === undefined ? withdraw(options) : pass(endpoint, signal)),
    onError: (error, waitMs) =>
      log.warn({ ...errorFields(error), waitMs }, 'records could not be sent to the collector, retrying'),
    backoff: BACKOFF,
  });
  loop.start();
  return {
    async stop() {
      await loop.stop();
      sender?.close();
    },
  };
}

/** Nothing is put into the outbox any more. */
async function withdraw({ store, cluster: name }: OtlpSenderOptions): Promise<number> {
  const clusterId = await store.ensureCluster(name);
  await store.query((db) =>
    db
      .update(cluster)
      .set({ otlp_since: null })
      .where(and(eq(cluster.cluster_id, clusterId), isNotNull(cluster.otlp_since))),
  );
  await store.query((db) => db.delete(otlpOutbox).where(eq(otlpOutbox.cluster_id, clusterId)));
  return Number.POSITIVE_INFINITY;
}

class OtlpSender {
  readonly #options: OtlpSenderOptions;
  readonly #exporter: LogExporter;
  #atOnce = AT_ONCE;

  constructor(options: OtlpSenderOptions, exporter: LogExporter) {
    this.#options = options;
    this.#exporter = exporter;
  }

  /** Sends what waits. Returns after how many milliseconds to look again; throws if the collector did not accept it. */
  async pass(signal: AbortSignal): Promise<number> {
    const { store, cluster: name, log, onResult } = this.#options;
    const { maxWaiting = MAX_WAITING, verdictsAfterMs = VERDICTS_AFTER_MS } = this.#options;
    const clusterId = await store.ensureCluster(name);
    await store.query((db) =>
      db
        .update(cluster)
        .set({ otlp_since: databaseNow })
        .where(and(eq(cluster.cluster_id, clusterId), isNull(cluster.otlp_since))),
    );
    const { count: dropped } = await store.run(dropOldest, [clusterId, maxWaiting]);
    if (dropped > 0) {
      onResult('dropped', dropped);
      log.warn({ dropped }, 'too many records wait for the collector: the oldest were dropped');
    }
    const atOnce = this.#atOnce;
    const rows = await this.#next(clusterId, verdictsAfterMs);
    const records = this.#exporter.recordsOf(rows);
    const refusals = records.length > 0 ? await this.#send(records, signal) : [];
    const [refusal] = refusals;
    // Where nothing is accepted, it is not for the record.
    if (refusal !== undefined && refusals.length === records.length) throw refusal;
    await store.run(deleteSent, [clusterId, rows.map(({ outbox_id }) => outbox_id)]);
    onResult('sent', records.length - refusals.length);
    onResult('dropped', rows.length - records.length + refusals.length);
    if (refusal !== undefined)
      log.warn(
        { ...errorFields(refusal), dropped: refusals.length },
        'the collector refused records and accepted others: they were dropped',
      );
    return rows.length < atOnce ? PERIOD_MS : 0;
  }

  close(): void {
    this.#exporter.close();
  }

  /** The next records. A verdict can be so slow to read that nothing behind it would ever be sent: after a failure each is read alone at first. */
  async #next(clusterId: number, verdictsAfterMs: number): Promise<readonly Outgoing[]> {
    const { store, log, onResult } = this.#options;
    try {
      const { rows } = await store.run(listOutbox, [clusterId, this.#atOnce, verdictsAfterMs]);
      this.#atOnce = Math.min(AT_ONCE, this.#atOnce * 2);
      return rows;
    } catch (error) {
      if (!OF_ROWS.includes(databaseErrorKind(error))) throw error;
      if (this.#atOnce === 1) {
        const { count: dropped } = await store.run(dropNext, [clusterId, verdictsAfterMs]);
        onResult('dropped', dropped);
        log.warn(
          { ...errorFields(error), dropped },
          'a record could not be read for the collector: it was dropped',
        );
        return [];
      }
      this.#atOnce = 1;
      throw error;
    }
  }

  /**
   * Sends records, in smaller requests if it must be: a request may be too large, or one record be what the collector refuses.
   * Returns an error for each record that it refuses alone.
   */
  async #send(records: readonly ReadableLogRecord[], signal: AbortSignal): Promise<readonly Error[]> {
    const error = await this.#export(records, signal);
    if (error === null) return [];
    const refused = refusedError(error);
    const isOfContent = mayBeOfContent(error);
    if (isOfContent && records.length > 1) {
      const half = records.length >> 1;
      const first = await this.#send(records.slice(0, half), signal);
      return [...first, ...(await this.#send(records.slice(half), signal))];
    }
    if (isOfContent && (await this.#export([], signal)) === null) return [refused];
    throw refused;
  }

  /** As {@link LogExporter.export}, for a limited time. */
  #export(records: readonly ReadableLogRecord[], stopped: AbortSignal): Promise<Error | null> {
    const { maxRequestMs = MAX_REQUEST_MS } = this.#options;
    return this.#exporter.export(records, AbortSignal.any([stopped, AbortSignal.timeout(maxRequestMs)]));
  }
}

/** Whether a smaller request might be accepted: an answer that is not about who asks and where, or a connection that was closed meanwhile. */
function mayBeOfContent(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined;
  if (typeof code === 'number') return code >= 400 && !OF_ADDRESS.includes(code);
  return code === 'ECONNRESET' || code === 'EPIPE';
}

const refusedError = ({ message }: Error): PlegwatchError =>
  new PlegwatchError(
    'OTLP_REFUSED',
    `The collector did not accept: ${message}.`,
    'Check --otlp-endpoint and the OTEL_EXPORTER_OTLP_ variables, and that the collector receives OTLP over HTTP.',
  );
