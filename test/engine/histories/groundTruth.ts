/*
 * The ground truth: what really happens in a history. It is worked out first; the comparison then receives what an agent would
 * have seen of it. Nothing in here knows how the comparison works. For tests.
 */

import { eventsOf, type HistoryEvents, type HistorySession, sessionsOf } from './announcements.ts';
import { containersOf, type HistoryContainer } from './containers.ts';
import type { History } from './history.ts';
import { type HistoryKubelet, kubeletOf } from './kubelet.ts';
import { type HistoryRelists, relistsOf } from './relists.ts';

export interface GroundTruth extends HistoryEvents, HistoryRelists {
  readonly history: History;
  readonly containers: readonly HistoryContainer[];
  readonly sessions: readonly HistorySession[];
  readonly kubelet: HistoryKubelet;
}

export function groundTruthOf(history: History): GroundTruth {
  const containers = containersOf(history);
  const sessions = sessionsOf(history);
  return {
    history,
    containers,
    sessions,
    kubelet: kubeletOf(history, containers),
    ...relistsOf(history, containers),
    ...eventsOf(history, containers, sessions),
  };
}

const WALL = 1_700_000_000_000;

/** The wall clock in milliseconds. */
export const wallAt = ({ clockSteps }: History, at: number): number =>
  clockSteps.reduce((wall, step) => (step.at <= at ? wall + step.by : wall), WALL + at);
