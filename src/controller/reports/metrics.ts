/*
 * What became of a report that was due: the results of `plegwatch_report_writes_total`.
 */
export const REPORT_RESULTS = [
  'written',
  'refreshed',
  'unchanged',
  'deleted',
  'no_node',
  'conflict',
  'refused',
] as const;

export type ReportResult = (typeof REPORT_RESULTS)[number];
