/*
 * Contradictions: lists that contradict an event, and lists that contradict each other.
 */

import type { ListAnswer } from '../../protocol/observation.ts';
import { millis } from '../../protocol/units.ts';
import type { ComparisonParts } from './comparisonParts.ts';
import { eventFinding, plainFinding, timesOf } from './findings.ts';
import { type ListSighting, stageShown } from './listHistory.ts';
import { STARTED, STOPPED } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';
import { hadHappened } from './unobservableReason.ts';

/** A spurious event announced nothing, so it has no true time. */
const NO_TIMES = { occurred: null, lateness: null, delivery: null };

export class Contradictions {
  readonly #parts: Pick<ComparisonParts, 'emitter' | 'expectations'>;

  constructor(parts: Pick<ComparisonParts, 'emitter' | 'expectations'>) {
    this.#parts = parts;
  }

  /** Holds the unconfirmed events of a container against a list, and reports those that are spurious. */
  examineEvents(container: TrackedContainer, list: ListSighting): void {
    const { emitter, expectations } = this.#parts;
    const { confirmations, lists, stages, times } = container;
    const shown = list.shown === 'unknown' ? null : stageShown(list.shown);
    const lead = container.isSandbox ? expectations.profile.lead : millis(0);
    for (const event of confirmations.examine(shown, list, lead)) {
      const { stage, received } = event;
      // Where its exact time says that it had happened when the event came, the lists are wrong.
      if (hadHappened(container, stage, received)) continue;
      const judgement = emitter.judgement('spurious', 'lists_contradict', {
        lists: event.lists.map((each) => ({ ...emitter.span(each), shown: each.shown })),
      });
      emitter.emit(container.identity, eventFinding(judgement, container, stage, received, NO_TIMES));
      // The same event came again since, and nothing contradicts that one yet.
      if (event.again) continue;
      expectations.retractEvent(container, stage, { received, findingId: judgement.findingId });
      if (shown !== null) stages.reached = shown;
      // Only a list or a status can still prove it.
      stages.ran = lists.shown === 'running' || times.proveRun;
    }
  }

  /**
   * Records EXITED -> RUNNING of one id. Lists that contradict each other prove neither that it started nor that it stopped, so
   * from now on neither is due.
   */
  recordRegression(container: TrackedContainer, answer: ListAnswer): void {
    const { emitter, expectations } = this.#parts;
    const { exited } = container.lists;
    const judgement = emitter.judgement('regression', 'state_went_back', {
      listedExited: exited && emitter.span(exited),
      listedRunning: emitter.span(answer),
      exactTimes: timesOf(container),
    });
    emitter.emit(container.identity, plainFinding(judgement, container.identity));
    container.regress();
    for (const stage of [STARTED, STOPPED] as const) {
      const came = container.stages.standing(stage).is === 'announced';
      if (!came) expectations.retractProof(container, stage, 'state_went_back');
      expectations.waive(container, stage);
    }
    container.stages.reached = STARTED;
  }
}
