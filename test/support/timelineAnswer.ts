/*
 * The answer that a timeline of the page is drawn from, with nothing in it but what a test says: one hour of a night.
 */
import type { TimelineAnswer } from '../../src/ui/api.ts';

export const NIGHT = Date.parse('2026-11-22T03:00:00Z');
export const hour = { from: NIGHT, to: NIGHT + 3_600_000 };

/** The time this many seconds after the hour has begun. */
export const at = (second: number): string => new Date(NIGHT + second * 1000).toISOString();

export const rows = <T>(...all: readonly T[]) => ({ rows: all, cut: null });

export const timelineAnswer = (more: Partial<TimelineAnswer>): TimelineAnswer => ({
  ...{ cluster: 'east', node: 'n', now: at(3600), from: at(0), to: at(3600) },
  ...{
    isUnsigned: false,
    firstSeen: at(0),
    lastSeen: at(3600),
    decidedThrough: at(3600),
    empty: null,
    containers: [],
    histBoundsMs: [],
  },
  ...{ sessions: rows(), gaps: rows(), hangs: rows(), modes: rows(), conditions: rows(), relists: rows() },
  ...{ events: rows(), changes: rows(), findings: rows() },
  ...{ lags: rows(), earlier: { events: [], changes: [] } },
  ...more,
});
