/*
 * How far everything is decided: whoever knows all records until now knows of each earlier transition whether its event came.
 *
 * Later ones may still be judged. Undecided are changes that no list shows yet, that are due, or that wait for a status or another list. An
 * agent that is killed never says what becomes of these.
 */

import type { Relist } from '../../protocol/observation.ts';
import { type Mono, mono, shift } from '../../protocol/units.ts';
import type { ComparisonParts } from './comparisonParts.ts';
import type { TimeSpan } from './listHistory.ts';
import { CREATED, DELETED, STAGES, STARTED, STOPPED, type Stage } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';

export class Decided {
  readonly #parts: Pick<ComparisonParts, 'containers' | 'coverage' | 'expectations'>;
  /** When the last whole relist began before whose end every event was received. */
  #listed: Mono;
  /** Later whole relists. */
  #ahead: TimeSpan[] = [];
  /** The last answer: what is decided stays so. */
  #until: Mono;

  constructor(parts: Pick<ComparisonParts, 'containers' | 'coverage' | 'expectations'>, epochStart: Mono) {
    this.#parts = parts;
    this.#listed = epochStart;
    this.#until = epochStart;
  }

  relisted({ sandboxes, containers }: Relist): void {
    if (!sandboxes.whole || !containers.whole) return;
    this.#ahead.push({
      start: mono(Math.min(sandboxes.start, containers.start)),
      end: mono(Math.max(sandboxes.end, containers.end)),
    });
    this.#advance();
  }

  /** Stages that lists show without a lower bound are left out: nobody can date them, and they can never be held against the runtime. */
  get until(): Mono {
    const { containers, expectations } = this.#parts;
    this.#advance();
    // A sandbox may be listed for a while after its DELETED.
    let until: number = shift(this.#listed, -expectations.profile.lead);
    // No container puts it later. Most calls end here: they come more often than lists.
    if (until <= this.#until) return this.#until;
    expectations.forEachOpen((_container, _stage, { proof: { by, from } }) => {
      // A stage that an event proves may still be dated.
      until = Math.min(until, from ?? (by === null ? until : this.#until));
    });
    for (const container of containers) {
      for (const stage of undecidedStages(container)) {
        until = Math.min(until, expectations.lowerBound(container, stage).from ?? until);
      }
    }
    this.#until = mono(Math.max(this.#until, until));
    return this.#until;
  }

  /** Containers that a list lacks may have come and gone, and then only their events show them; each item is read at any moment of the call. */
  #advance(): void {
    const drained = this.#parts.coverage.session?.watermark ?? Number.POSITIVE_INFINITY;
    for (const { start, end } of this.#ahead) if (end <= drained) this.#listed = start;
    this.#ahead = this.#ahead.filter(({ end }) => end > drained);
  }
}

/**
 * The stages that it may have reached, and that are neither due nor known not to be. Each counts: the earliest may have no lower bound,
 * and that a later one is open does not decide an earlier one.
 */
function undecidedStages({ awaitsTimes, isSandbox, lists, stages }: TrackedContainer): Stage[] {
  const undecided: Stage[] = [];
  // A list that shows it in a known state decides.
  if (lists.isListed && lists.shown === null && stages.standing(CREATED).is === 'none')
    undecided.push(CREATED);
  // An event that came before a list showed the id has announced a stage, and proves none.
  const next = STAGES.find((stage) => stage > stages.reached && stages.standing(stage).is === 'none');
  if (lists.isUnknown && next !== undefined) undecided.push(next);
  // The next list decides.
  const isAbsent = lists.state === 'non-existent' && stages.reached !== -1;
  if (isAbsent && stages.standing(DELETED).is === 'none') undecided.push(DELETED);
  // The next list that lacks it decides what its DELETED proved.
  const isEndOpen = stages.ran && stages.standing(DELETED).is === 'announced';
  if (isEndOpen && stages.standing(STOPPED).is === 'none') undecided.push(STOPPED);
  // Its status decides whether it ran; that of a sandbox does not say it.
  const mayHaveRun = !isSandbox && lists.shown === 'exited' && !stages.ran && awaitsTimes;
  if (mayHaveRun && stages.standing(STARTED).is === 'none') undecided.push(STARTED);
  return undecided;
}
