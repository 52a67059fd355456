/*
 * The views that can be exported, and the column that says on which day a row is.
 */
export const EXPORTED_VIEWS = {
  container_events: 'received_at',
  epochs: 'started_at',
  findings: 'detected_at',
  gaps: 'from_at',
  kubelet_hours: 'hour',
  kubelet_minutes: 'minute',
  mode_changes: 'at',
  node_conditions: 'at',
  node_info: 'from_at',
  not_ready_intervals: 'from_at',
  pleg_verdicts: 'from_at',
  relist_changes: 'window_to',
  relist_hours: 'hour',
  relist_minutes: 'minute',
  relists: 'sandboxes_from',
  short_lives: 'detected_at',
  status_checks: 'minute',
  status_lags: 'at',
  stream_sessions: 'opened_at',
} as const;

export type ExportedView = keyof typeof EXPORTED_VIEWS;
