/*
 * Pods whose events all came, with which timelines begin, and what was found of the rest of a timeline.
 */
import { EVENT_TYPES } from '../../src/protocol/record.ts';
import {
  announced,
  C1_RUNNING,
  compare,
  covered,
  listed,
  received,
  type TimelineOutcome,
  type TimelineSettings,
  type TimelineStep,
  times,
} from './timeline.ts';

/** Its container is created. */
export const pod = [...announced(4, 's1', 'CREATED', 'STARTED'), received(4, 'c1', 'CREATED')];
export const createdPod = [...covered, ...pod];
export const runningPod = [...createdPod, received(4.5, 'c1', 'STARTED'), listed(5, C1_RUNNING)];

/** A pod whose events came in their order, with their times; its container runs from 5 s on. */
export const running: readonly TimelineStep[] = [
  received(4, 's1', 'CREATED'),
  received(4.1, 's1', 'STARTED'),
  received(4.2, 'c1', 'CREATED', { times: times({ created: 4.2 }) }),
  received(5, 'c1', 'STARTED', { times: times({ created: 4.2, started: 5 }) }),
];

/** The findings as `<kind> <id> <type> <cause>`, in their order. */
export const summaries = ({ findings }: TimelineOutcome): string[] =>
  findings.map(({ kind, containerId, eventType, cause }) =>
    [kind, containerId, eventType, cause].filter(Boolean).join(' '),
  );
/** The proofs of the findings of a kind. */
export const proofsOf = (kind: string, steps: readonly TimelineStep[], settings = {}) =>
  compare([...covered, ...steps], { until: 60, ...settings })
    .findings.filter((finding) => finding.kind === kind)
    .map(({ proof }) => proof);
export const findingsOf = (steps: readonly TimelineStep[], until = 30) =>
  summaries(compare([...covered, ...steps], { until }));

export const everMissed = (steps: readonly TimelineStep[], settings: Partial<TimelineSettings> = {}) =>
  compare(steps, { until: 120, ...settings }).everMissed;

/** An event of a pod that appeared before the list at 5 s. */
export function ofText(text: string): TimelineStep {
  const [id = '', type] = text.split(' ');
  return received(4, id, EVENT_TYPES.find((each) => each === type) ?? 255);
}
