/*
 * The truth: what really happens in a history. It is worked out first; the comparison is then told what an agent would have
 * seen of it. Nothing in here knows how the comparison thinks. For tests.
 */
import type { History } from './history.ts';
import { type Listing, listingOf } from './listing.ts';
import { type Sending, type Session, sendingOf, sessionsOf } from './sending.ts';
import { type Subject, subjectsOf } from './subjects.ts';

export interface Truth extends Sending, Listing {
  readonly history: History;
  readonly subjects: readonly Subject[];
  readonly sessions: readonly Session[];
}

export function truthOf(history: History): Truth {
  const subjects = subjectsOf(history);
  const sessions = sessionsOf(history);
  return {
    history,
    subjects,
    sessions,
    ...listingOf(history, subjects),
    ...sendingOf(history, subjects, sessions),
  };
}

const WALL = 1_700_000_000_000;

/** The wall clock in milliseconds. */
export const wallAt = ({ steps }: History, at: number): number =>
  steps.reduce((wall, step) => (step.at <= at ? wall + step.by : wall), WALL + at);
