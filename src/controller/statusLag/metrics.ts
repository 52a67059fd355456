/*
 * The labels of the `plegwatch_status_lag_*` metrics.
 */

/**
 * What a read of a pod found.
 *
 *   published   the status shows the transition
 *   stale       the status does not show it yet
 *   ended       the status will never show it
 *   throttled   the API server answered 429
 *   failed      there was no answer, or it could not be decoded
 */
export const READ_RESULTS = ['published', 'stale', 'ended', 'throttled', 'failed'] as const;

export type ReadResult = (typeof READ_RESULTS)[number];

/** Overdue transitions, and samples of announced ones. */
export const WATCH_KINDS = ['overdue', 'sample'] as const;

export type WatchKind = (typeof WATCH_KINDS)[number];
