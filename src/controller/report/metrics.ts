/*
 * The figures of the report writer.
 */
import { Counter, type Registry } from 'prom-client';

/** What became of a report that was due. */
export type WriteResult =
  | 'written'
  | 'refreshed'
  | 'unchanged'
  | 'deleted'
  | 'no_node'
  | 'conflict'
  | 'refused';

export interface ReportMetrics {
  count(result: WriteResult): void;
}

/** Registers `plegwatch_report_writes_total`; once for each registry. */
export function reportMetrics(registry: Registry): ReportMetrics {
  const writes = new Counter({
    name: 'plegwatch_report_writes_total',
    help: 'Reports that were due, by what became of them.',
    labelNames: ['result'],
    registers: [registry],
  });
  return { count: (result) => writes.inc({ result }) };
}
