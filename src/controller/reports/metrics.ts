/*
 * What the report writer counts: `plegwatch_report_writes_total` by result.
 */

/** What became of a report that was due. */
type WriteResult = 'written' | 'refreshed' | 'unchanged' | 'deleted' | 'no_node' | 'conflict' | 'refused';

export interface ReportMetrics {
  count(result: WriteResult): void;
}
