/*
 * The views that can be exported, and the column that says on which day a row is.
 */
import {
  containerEvents,
  epochs,
  findings,
  gaps,
  kubeletHours,
  kubeletMinutes,
  modeChanges,
  nodeConditions,
  nodeInfo,
  notReadyIntervals,
  plegVerdicts,
  relistChanges,
  relistHours,
  relistMinutes,
  relists,
  shortLives,
  statusChecks,
  statusLags,
  streamSessions,
} from '../../store/schema/views.ts';

export const EXPORTED_VIEWS = {
  container_events: { rows: containerEvents, time: containerEvents.received_at },
  epochs: { rows: epochs, time: epochs.started_at },
  findings: { rows: findings, time: findings.detected_at },
  gaps: { rows: gaps, time: gaps.from_at },
  kubelet_hours: { rows: kubeletHours, time: kubeletHours.hour },
  kubelet_minutes: { rows: kubeletMinutes, time: kubeletMinutes.minute },
  mode_changes: { rows: modeChanges, time: modeChanges.at },
  node_conditions: { rows: nodeConditions, time: nodeConditions.at },
  node_info: { rows: nodeInfo, time: nodeInfo.from_at },
  not_ready_intervals: { rows: notReadyIntervals, time: notReadyIntervals.from_at },
  pleg_verdicts: { rows: plegVerdicts, time: plegVerdicts.from_at },
  relist_changes: { rows: relistChanges, time: relistChanges.window_to },
  relist_hours: { rows: relistHours, time: relistHours.hour },
  relist_minutes: { rows: relistMinutes, time: relistMinutes.minute },
  relists: { rows: relists, time: relists.sandboxes_from },
  short_lives: { rows: shortLives, time: shortLives.detected_at },
  status_checks: { rows: statusChecks, time: statusChecks.minute },
  status_lags: { rows: statusLags, time: statusLags.at },
  stream_sessions: { rows: streamSessions, time: streamSessions.opened_at },
} as const;

export type ExportedView = keyof typeof EXPORTED_VIEWS;
