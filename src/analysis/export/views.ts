/*
 * The views that can be exported.
 *
 *   time      the column that says on which day a row is, unless the view has a column `day`
 *   kept      for how long Postgres has the rows, and what they are computed from: as long as events, as findings, or two days (short)
 *   changes   rows change or come when all that agents recorded on their day is stored: controllers write them, or later records add to them.
 *             'added': none is taken back
 */
import * as views from '../../store/schema/views.ts';

export const EXPORTED_VIEWS = {
  container_events: {
    rows: views.containerEvents,
    time: views.containerEvents.received_at,
    kept: 'events',
    changes: false,
  },
  epochs: { rows: views.epochs, time: views.epochs.started_at, kept: 'findings', changes: true },
  fallback_intervals: {
    rows: views.fallbackIntervals,
    time: views.fallbackIntervals.from_at,
    kept: 'findings',
    changes: true,
  },
  findings: { rows: views.findings, time: views.findings.detected_at, kept: 'findings', changes: 'added' },
  gaps: { rows: views.gaps, time: views.gaps.from_at, kept: 'findings', changes: true },
  kubelet_hours: {
    rows: views.kubeletHours,
    time: views.kubeletHours.hour,
    kept: 'findings',
    changes: false,
  },
  kubelet_lag_hours: {
    rows: views.kubeletLagHours,
    time: views.kubeletLagHours.hour,
    kept: 'findings',
    changes: false,
  },
  kubelet_lag_minutes: {
    rows: views.kubeletLagMinutes,
    time: views.kubeletLagMinutes.minute,
    kept: 'events',
    changes: false,
  },
  kubelet_minutes: {
    rows: views.kubeletMinutes,
    time: views.kubeletMinutes.minute,
    kept: 'events',
    changes: false,
  },
  mode_changes: { rows: views.modeChanges, time: views.modeChanges.at, kept: 'findings', changes: true },
  node_conditions: {
    rows: views.nodeConditions,
    time: views.nodeConditions.at,
    kept: 'findings',
    changes: true,
  },
  node_info: { rows: views.nodeInfo, time: views.nodeInfo.from_at, kept: 'findings', changes: true },
  not_ready_intervals: {
    rows: views.notReadyIntervals,
    time: views.notReadyIntervals.from_at,
    kept: 'findings',
    changes: true,
  },
  pleg_verdicts: {
    rows: views.plegVerdicts,
    time: views.plegVerdicts.from_at,
    kept: 'events',
    changes: true,
  },
  relist_changes: {
    rows: views.relistChanges,
    time: views.relistChanges.window_to,
    kept: 'events',
    changes: false,
  },
  relist_hours: { rows: views.relistHours, time: views.relistHours.hour, kept: 'findings', changes: false },
  relist_minutes: {
    rows: views.relistMinutes,
    time: views.relistMinutes.minute,
    kept: 'events',
    changes: false,
  },
  relists: { rows: views.relists, time: views.relists.sandboxes_from, kept: 'events', changes: false },
  short_lives: { rows: views.shortLives, time: views.shortLives.detected_at, kept: 'events', changes: true },
  list_hangs: { rows: views.listHangs, time: views.listHangs.from_at, kept: 'events', changes: true },
  status_checks: {
    rows: views.statusChecks,
    time: views.statusChecks.minute,
    kept: 'events',
    changes: false,
  },
  status_lags: { rows: views.statusLags, time: views.statusLags.at, kept: 'short', changes: true },
  stream_sessions: {
    rows: views.streamSessions,
    time: views.streamSessions.opened_at,
    kept: 'findings',
    changes: true,
  },
} as const;

export type ExportedView = keyof typeof EXPORTED_VIEWS;

/** Those that the questions in lake/ read. */
export const LAKE_VIEWS: readonly ExportedView[] = [
  'container_events',
  'fallback_intervals',
  'findings',
  'kubelet_hours',
  'kubelet_lag_hours',
  'kubelet_minutes',
  'list_hangs',
  'node_conditions',
  'node_info',
  'not_ready_intervals',
  'pleg_verdicts',
  'relist_changes',
  'relist_hours',
  'short_lives',
  'status_checks',
  'stream_sessions',
];

export const EXPORT_FORMATS = ['csv', 'parquet'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];
