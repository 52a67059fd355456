/*
 * The exporter of OpenTelemetry. Only a controller that sends loads it, with its packages.
 */
import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { Logger } from '../../platform/log.ts';
import { ThrottledLog } from '../../platform/throttledLog.ts';
import { logRecordOf } from './logRecord.ts';
import type { Outgoing } from './statements.ts';

export class LogExporter {
  readonly #exporter: OTLPLogExporter;

  constructor(endpoint: string, log: Logger) {
    // The exporter warns of a variable that it cannot use.
    diag.setLogger(diagLogger(new ThrottledLog(log, { linesPerMinute: 2 })), DiagLogLevel.WARN);
    this.#exporter = new OTLPLogExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/logs` });
  }

  /** Without rows that were deleted meanwhile. */
  recordsOf(rows: readonly Outgoing[]): readonly ReadableLogRecord[] {
    return rows.map(logRecordOf).filter((each) => each !== null);
  }

  /** Returns why the collector did not accept them; null if it did. Throws the reason of the signal, and does not wait for the answer then. */
  async export(records: readonly ReadableLogRecord[], signal: AbortSignal): Promise<Error | null> {
    signal.throwIfAborted();
    const { code, error } = await new Promise<ExportResult>((resolve, reject) => {
      const onStop = () => reject(signal.reason);
      signal.addEventListener('abort', onStop, { once: true });
      this.#exporter.export([...records], (result) => {
        signal.removeEventListener('abort', onStop);
        resolve(result);
      });
    });
    return code === ExportResultCode.SUCCESS ? null : (error ?? new Error('no reason given'));
  }

  close(): void {
    diag.disable();
  }
}

/** The warnings of the exporter: about its variables, and records that the collector accepted in part. */
const diagLogger = (log: ThrottledLog): DiagLogger => {
  const warn = (message: string, ...details: unknown[]) =>
    log.warn(
      { error: [message, ...details.map(String)].join(' ').slice(0, 1000) },
      'the exporter for the collector warns',
    );
  return { error: warn, warn, info: () => undefined, debug: () => undefined, verbose: () => undefined };
};
