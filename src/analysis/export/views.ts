/*
 * The views that can be exported.
 *
 *   time      the column that says on which day a row is, unless the view has a column `day`
 *   kept      for how long Postgres has the rows, and what they are computed from: as long as events, as findings, or two days (short)
 *   changes   what happens to rows after all that agents recorded on their day is stored. Added: controllers write more, or correct them, or later
 *             records do. Taken back: that, and some rows go. Moved: that, and rows go to other days at any time
 */
import * as views from '../../store/schema/views.ts';

export const EXPORTED_VIEWS = {
  container_events: {
    rows: views.containerEvents,
    time: views.containerEvents.received_at,
    kept: 'events',
    changes: 'never',
  },
  epochs: { rows: views.epochs, time: views.epochs.started_at, kept: 'findings', changes: 'taken back' },
  fallback_intervals: {
    rows: views.fallbackIntervals,
    time: views.fallbackIntervals.from_at,
    kept: 'findings',
    changes: 'taken back',
  },
  findings: { rows: views.findings, time: views.findings.detected_at, kept: 'findings', changes: 'added' },
  gaps: { rows: views.gaps, time: views.gaps.from_at, kept: 'findings', changes: 'taken back' },
  kubelet_hours: {
    rows: views.kubeletHours,
    time: views.kubeletHours.hour,
    kept: 'findings',
    changes: 'never',
  },
  kubelet_lag_hours: {
    rows: views.kubeletLagHours,
    time: views.kubeletLagHours.hour,
    kept: 'findings',
    changes: 'never',
  },
  kubelet_lag_minutes: {
    rows: views.kubeletLagMinutes,
    time: views.kubeletLagMinutes.minute,
    kept: 'events',
    changes: 'never',
  },
  kubelet_minutes: {
    rows: views.kubeletMinutes,
    time: views.kubeletMinutes.minute,
    kept: 'events',
    changes: 'never',
  },
  mode_changes: {
    rows: views.modeChanges,
    time: views.modeChanges.at,
    kept: 'findings',
    changes: 'taken back',
  },
  node_conditions: {
    rows: views.nodeConditions,
    time: views.nodeConditions.at,
    kept: 'findings',
    changes: 'taken back',
  },
  node_info: { rows: views.nodeInfo, time: views.nodeInfo.from_at, kept: 'findings', changes: 'taken back' },
  // In the file of the day on which its first record was stored, a node is as it was at the export. A Node that is created again has another such day.
  nodes: { rows: views.nodes, time: views.nodes.first_seen, kept: 'findings', changes: 'moved' },
  not_ready_intervals: {
    rows: views.notReadyIntervals,
    time: views.notReadyIntervals.from_at,
    kept: 'findings',
    changes: 'taken back',
  },
  pleg_verdicts: {
    rows: views.plegVerdicts,
    time: views.plegVerdicts.from_at,
    kept: 'events',
    changes: 'taken back',
  },
  relist_changes: {
    rows: views.relistChanges,
    time: views.relistChanges.window_to,
    kept: 'events',
    changes: 'never',
  },
  relist_hours: { rows: views.relistHours, time: views.relistHours.hour, kept: 'findings', changes: 'never' },
  relist_minutes: {
    rows: views.relistMinutes,
    time: views.relistMinutes.minute,
    kept: 'events',
    changes: 'never',
  },
  relists: { rows: views.relists, time: views.relists.sandboxes_from, kept: 'events', changes: 'never' },
  short_lives: {
    rows: views.shortLives,
    time: views.shortLives.detected_at,
    kept: 'events',
    changes: 'taken back',
  },
  list_hangs: { rows: views.listHangs, time: views.listHangs.from_at, kept: 'events', changes: 'taken back' },
  status_checks: {
    rows: views.statusChecks,
    time: views.statusChecks.minute,
    kept: 'events',
    changes: 'never',
  },
  status_lags: { rows: views.statusLags, time: views.statusLags.at, kept: 'short', changes: 'taken back' },
  stream_sessions: {
    rows: views.streamSessions,
    time: views.streamSessions.opened_at,
    kept: 'findings',
    changes: 'taken back',
  },
} as const;

export type ExportedView = keyof typeof EXPORTED_VIEWS;

/** Those that the questions in lake/ read. */
export const LAKE_VIEWS: readonly ExportedView[] = [
  'container_events',
  'epochs',
  'fallback_intervals',
  'findings',
  'gaps',
  'kubelet_hours',
  'kubelet_lag_hours',
  'kubelet_minutes',
  'list_hangs',
  'mode_changes',
  'node_conditions',
  'node_info',
  'nodes',
  'not_ready_intervals',
  'pleg_verdicts',
  'relist_changes',
  'relist_hours',
  'relist_minutes',
  'short_lives',
  'status_checks',
  'status_lags',
  'stream_sessions',
];

export const EXPORT_FORMATS = ['csv', 'parquet'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];
