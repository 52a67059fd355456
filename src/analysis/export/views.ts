/*
 * The views that can be exported, and the column that says on which day a row is.
 */
import * as views from '../../store/schema/views.ts';

export const EXPORTED_VIEWS = {
  container_events: { rows: views.containerEvents, time: views.containerEvents.received_at },
  epochs: { rows: views.epochs, time: views.epochs.started_at },
  findings: { rows: views.findings, time: views.findings.detected_at },
  gaps: { rows: views.gaps, time: views.gaps.from_at },
  kubelet_hours: { rows: views.kubeletHours, time: views.kubeletHours.hour },
  kubelet_lag_hours: { rows: views.kubeletLagHours, time: views.kubeletLagHours.hour },
  kubelet_lag_minutes: { rows: views.kubeletLagMinutes, time: views.kubeletLagMinutes.minute },
  kubelet_minutes: { rows: views.kubeletMinutes, time: views.kubeletMinutes.minute },
  mode_changes: { rows: views.modeChanges, time: views.modeChanges.at },
  node_conditions: { rows: views.nodeConditions, time: views.nodeConditions.at },
  node_info: { rows: views.nodeInfo, time: views.nodeInfo.from_at },
  not_ready_intervals: { rows: views.notReadyIntervals, time: views.notReadyIntervals.from_at },
  pleg_verdicts: { rows: views.plegVerdicts, time: views.plegVerdicts.from_at },
  relist_changes: { rows: views.relistChanges, time: views.relistChanges.window_to },
  relist_hours: { rows: views.relistHours, time: views.relistHours.hour },
  relist_minutes: { rows: views.relistMinutes, time: views.relistMinutes.minute },
  relists: { rows: views.relists, time: views.relists.sandboxes_from },
  short_lives: { rows: views.shortLives, time: views.shortLives.detected_at },
  list_hangs: { rows: views.listHangs, time: views.listHangs.from_at },
  status_checks: { rows: views.statusChecks, time: views.statusChecks.minute },
  status_lags: { rows: views.statusLags, time: views.statusLags.at },
  stream_sessions: { rows: views.streamSessions, time: views.streamSessions.opened_at },
} as const;

export type ExportedView = keyof typeof EXPORTED_VIEWS;
