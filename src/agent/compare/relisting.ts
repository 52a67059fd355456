/*
 * Relisting: what two list answers, compared with the ones before, prove of each id.
 *
 * A list shows a state, and so a stage. The two calls of a relist are two moments, and each is compared with the last whole
 * answer of its own kind.
 */

import type { ListAnswer, ListedItem, Relist, ShownState } from '../../protocol/observation.ts';
import type { PlegState } from '../../protocol/record.ts';
import { type Mono, mono, shift, since } from '../../protocol/units.ts';
import { Absences } from './absences.ts';
import type { ComparisonParts } from './comparisonParts.ts';
import { Contradictions } from './contradictions.ts';
import { DuplicateContainers, type PreviousAnswers } from './duplicateContainers.ts';
import { type ProvenState, spanOf, stageShown, type TimeSpan } from './listHistory.ts';
import { ShortLives } from './shortLife.ts';
import { CREATED, DELETED, STARTED, STOPPED, type Stage } from './stages.ts';
import { completed, type TrackedContainer } from './trackedContainer.ts';
import { REMEMBERED_FOR } from './trackedContainers.ts';

export class Relisting {
  readonly #parts: ComparisonParts;
  readonly #absences: Absences;
  readonly #contradictions: Contradictions;
  readonly #duplicates: DuplicateContainers;
  readonly #shortLives: ShortLives;
  readonly #unchangedSandboxes = new UnchangedLists();
  readonly #unchangedContainers = new UnchangedLists();
  #previous: PreviousAnswers = { sandboxes: null, containers: null };

  constructor(parts: ComparisonParts) {
    this.#parts = parts;
    this.#absences = new Absences(parts);
    this.#contradictions = new Contradictions(parts);
    this.#duplicates = new DuplicateContainers(parts.emitter, parts.containers);
    this.#shortLives = new ShortLives(parts);
  }

  /** A list call failed: the time between the lists around it is longer than a period. */
  failed(): void {
    this.#shortLives.listFailed();
  }

  compare(relist: Relist): void {
    const { sandboxes, containers } = relist;
    this.#parts.expectations.relistBegan();
    this.#compare(sandboxes, this.#previous.sandboxes, true);
    this.#compare(containers, this.#previous.containers, false);
    this.#duplicates.report(relist, this.#previous);
    this.#shortLives.relisted(sandboxes.whole && containers.whole);
    this.#previous = {
      sandboxes: sandboxes.whole ? sandboxes : this.#previous.sandboxes,
      containers: containers.whole ? containers : this.#previous.containers,
    };
    const { sandboxes: first, containers: second } = this.#previous;
    if (first !== null && second !== null) this.#parts.firstLists.listed(first, second);
    this.#parts.containers.relisted(containers.end);
    this.#parts.coverage.relisted(mono(Math.min(sandboxes.start, containers.start)));
  }

  /** A status was received: it may prove that a container ran which lists never showed running. */
  statusReceived(id: string): void {
    const container = this.#parts.containers.forUpdate(id);
    if (container !== undefined) this.#shortLives.reportUnseenRun(container);
  }

  #compare(answer: ListAnswer, previous: ListAnswer | null, sandboxes: boolean): void {
    const { containers } = this.#parts;
    const lists = sandboxes ? this.#unchangedSandboxes : this.#unchangedContainers;
    const all = lists.unchangedIn(answer, containers.version);
    if (all !== null) {
      for (const container of all) container.recordStillShown(answer);
      return;
    }
    const unchanged: TrackedContainer[] = [];
    for (const item of answer.items.values()) {
      const container = containers.unchanged(item);
      if (container === undefined) {
        this.#compareItem(item, answer, previous);
        continue;
      }
      container.recordStillShown(answer);
      unchanged.push(container);
    }
    const absent = answer.whole ? this.#compareAbsent(answer, previous, sandboxes) : null;
    lists.compared(answer, containers.version, unchanged, absent);
  }

  /** Returns how many containers a whole answer lacks that were not settled as gone before. */
  #compareAbsent(answer: ListAnswer, previous: ListAnswer | null, sandboxes: boolean): number {
    let absent = 0;
    const { containers } = this.#parts;
    for (const container of containers.unsettled) {
      if (container.isSandbox !== sandboxes || answer.items.has(container.id)) continue;
      absent += 1;
      container.unchangedItem = null;
      this.#shortLives.absent(container, answer, previous);
      this.#recordState(container, 'non-existent', answer, previous);
      this.#absences.absent(container, answer);
      if (this.#absences.isSettled(container, answer)) containers.settleAsGone(container);
    }
    return absent;
  }

  #compareItem(item: ListedItem, answer: ListAnswer, previous: ListAnswer | null): void {
    const container = this.#containerOf(item, answer);
    if (container === undefined) return;
    const { confirmations, lists, stages } = container;
    const state = this.#mayBeStarting(container, item.state, answer) ? 'unknown' : item.state;
    container.lastSign = answer.end;
    this.#recordState(container, plegState(item.state), answer, previous);
    this.#recordListed(container, previous);
    if (confirmations.isAnyUnconfirmed) {
      this.#contradictions.examineEvents(container, { ...spanOf(answer), shown: state });
    }
    // A sandbox that may be starting exists, whatever stage it has reached.
    if (state !== item.state) lists.raiseLowerBounds(DELETED, answer.start);
    if (state === 'unknown') return;
    if (state === 'running' && lists.shown === 'exited') {
      this.#contradictions.recordRegression(container, answer);
    }
    if (state === 'exited' && lists.shown !== 'exited') {
      lists.exited = spanOf(answer);
      this.#shortLives.exited(container, answer, previous);
    }
    lists.shown = state;
    if (state === 'running') stages.ran = true;
    lists.recordPassedBefore(stageShown(state), answer);
    if (previous === null) stages.waiveUpTo(stageShown(state));
    else this.#proveShown(container, state, answer.end);
    container.recordStillShown(answer);
    this.#shortLives.reportUnseenRun(container);
    // An unconfirmed event waits for what the next list shows, even if that is the same. And without a whole list before it,
    // this one could prove nothing yet.
    if (previous !== null && !confirmations.isAnyUnconfirmed) container.unchangedItem = item;
  }

  /** Whether it proves nothing that a list shows a sandbox as ended: it may not have started yet. */
  #mayBeStarting({ events, isSandbox, lists }: TrackedContainer, state: ShownState, list: TimeSpan): boolean {
    const { sandboxesListedBeforeStart } = this.#parts.expectations.profile;
    if (!sandboxesListedBeforeStart || !isSandbox || state !== 'exited') return false;
    // That an event showed it up, or ended, is not enough: this list may be older.
    const ended = events.first(STOPPED) ?? list.end;
    return lists.shown === null && ended > list.start;
  }

  #containerOf(item: ListedItem, answer: ListAnswer): TrackedContainer | undefined {
    const { containers, expectations } = this.#parts;
    const container = containers.forUpdate(item.object.id) ?? expectations.track(item.object, answer.end);
    if (container !== undefined && container.lists.item !== item) {
      container.lists.item = item;
      // A list knows best whether it lists a sandbox.
      const { isSandbox } = item.object;
      containers.identify(container, { ...completed(container.identity, item.object), isSandbox });
    }
    return container;
  }

  /** Proofs by a list that shows an id at all, in whatever state. */
  #recordListed(container: TrackedContainer, previous: ListAnswer | null): void {
    const { lists, stages } = container;
    const first = !lists.isListed;
    lists.recordListed();
    if (first && previous === null) stages.waiveUpTo(CREATED);
    if (first && previous !== null && this.#boundsCreation(previous, container.id)) {
      lists.raiseLowerBounds(CREATED, previous.start);
    }
    const { is } = stages.standing(DELETED);
    if (is === 'expected' || is === 'missed')
      this.#parts.expectations.retractProof(container, DELETED, 'listed_again');
    else if (is !== 'waived' || stages.reached !== DELETED) return;
    else stages.setStanding(DELETED, { is: 'none' });
    stages.reached = lists.stage;
  }

  /** Where the DELETED of a sandbox is never sent, a list that lacked it has proven its STOPPED. */
  #retractEnd(container: TrackedContainer): void {
    const { expectations } = this.#parts;
    if (!container.isSandbox || expectations.profile.announcesSandboxRemoval) return;
    const { is } = container.stages.standing(STOPPED);
    if (is === 'expected' || is === 'missed') expectations.retractProof(container, STOPPED, 'listed_again');
  }

  /**
   * An answer that lacked an id bounds when it was created, unless it existed and was not tracked. An answer from before what is
   * remembered bounds nothing: the events of the id may have come since, and be forgotten.
   */
  #boundsCreation({ start, items }: ListAnswer, id: string): boolean {
    return !items.has(id) && start >= shift(this.#parts.emitter.now, -REMEMBERED_FOR);
  }

  /** An id that a list shows is at least at the shown stage; whether it ever ran is another matter. */
  #proveShown(container: TrackedContainer, state: ProvenState, to: Mono): void {
    const { stages } = container;
    // A sandbox first seen NOTREADY may never have come up.
    if (container.isSandbox && state === 'exited' && !stages.ran) return;
    this.#proveListed(container, CREATED, state, to);
    if (state === 'created') return;
    if (stages.ran) this.#proveListed(container, STARTED, state, to);
    if (state === 'running') return;
    if (stages.ran) this.#proveListed(container, STOPPED, state, to);
    else this.#queryTimes(container, to);
  }

  #proveListed(container: TrackedContainer, stage: Stage, state: ShownState, to: Mono): void {
    const { expectations, kubelet } = this.#parts;
    const evidence = `listed ${state}`;
    kubelet.proven(container, stage, { ...expectations.lowerBound(container, stage), to, evidence });
    if (!container.stages.isProvable(stage)) return;
    expectations.prove(container, stage, { by: null, to, cause: 'unannounced_by_list', evidence });
  }

  /** Exited, and nothing proves that it ran: only its exact times show whether events were due. */
  #queryTimes(container: TrackedContainer, listEnd: Mono): void {
    if (container.isSandbox || container.stages.standing(STARTED).is !== 'none') return;
    if (container.claimTimesQuery(listEnd)) this.#parts.emitter.query(container.identity);
  }

  /** Records a change of what the kubelet would call the state. That a sandbox runs which was gone takes back its end. */
  #recordState(
    container: TrackedContainer,
    state: PlegState,
    answer: ListAnswer,
    previous: ListAnswer | null,
  ): void {
    const { id, isSandbox, lists } = container;
    const old = lists.state;
    lists.state = state;
    if (lists.isListed && old === 'non-existent' && state === 'running') this.#retractEnd(container);
    if (old === state || previous === null) return;
    const { emitter } = this.#parts;
    const from = lists.lowerBound(DELETED) ?? previous.start;
    emitter.emit(container.identity, {
      type: 'relist_change',
      t: since(emitter.epochStart, answer.end),
      containerId: id,
      isSandbox,
      window: emitter.span({ start: from, end: answer.end }),
      oldState: old,
      newState: state,
    });
  }
}

/** The kubelet's term for a shown state (pkg/kubelet/pleg/generic.go, convertState: CREATED is `unknown`). */
const plegState = (state: ShownState): PlegState => (state === 'created' ? 'unknown' : state);

/**
 * Lists that can be skipped: when every container of a kind could be skipped and none was absent, the same answer once more
 * proves only that all are still there, until the version of the tracked containers changes.
 */
class UnchangedLists {
  /** The items of the last answer where it may be skipped; null where it may not. */
  #items: ListAnswer['items'] | null = null;
  #version = 0;
  #containers: readonly TrackedContainer[] = [];

  /** All containers of the kind, where this answer adds nothing on any of them; null where it must be compared. */
  unchangedIn({ items }: ListAnswer, version: number): readonly TrackedContainer[] | null {
    return items === this.#items && version === this.#version ? this.#containers : null;
  }

  /** An answer was compared: these containers are unchanged, and this many are absent; null where it cannot say. */
  compared(
    { items }: ListAnswer,
    version: number,
    unchanged: readonly TrackedContainer[],
    absent: number | null,
  ): void {
    this.#items = absent === 0 && unchanged.length === items.size ? items : null;
    this.#version = version;
    this.#containers = unchanged;
  }
}
