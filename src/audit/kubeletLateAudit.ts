/*
 * The audit of `kubelet_late`: what the kubelet's own status showed is not on record, so the rules cannot make these findings again. Each
 * is held against what is: its proof agrees with itself, a list on record found the change in its window, and no gap says that the
 * kubelet's status was not watched from then until the answer.
 */
import type { Mono } from '../protocol/units.ts';
import type { Difference } from './difference.ts';
import type { WhyUndecided } from './findingMatch.ts';
import type { RecentRecords } from './recentRecords.ts';
import type { StoredChange, StoredFinding, StoredGap } from './storedEpoch.ts';

/** `--kubelet-late-after` cannot be less, in microseconds. */
const MIN_LATE_AFTER = 2_000_000;

/** The proof's statement about the question, in microseconds since the epoch began. */
interface Question {
  readonly asked: number;
  readonly answered: number;
}

export class KubeletLateAudit {
  readonly #gaps: readonly StoredGap[];
  readonly #recent: RecentRecords;
  readonly #whyUndecided: WhyUndecided;
  /** By id: the changes that lists found. */
  readonly #changes = new Map<string, StoredChange[]>();
  readonly #undecided = new Map<string, number>();
  #confirmed = 0;

  constructor(gaps: readonly StoredGap[], recent: RecentRecords, whyUndecided: WhyUndecided) {
    this.#gaps = gaps;
    this.#recent = recent;
    this.#whyUndecided = whyUndecided;
  }

  get confirmed(): number {
    return this.#confirmed;
  }

  get undecided(): ReadonlyMap<string, number> {
    return this.#undecided;
  }

  add(change: StoredChange): void {
    const { id } = change.identity;
    const known = this.#changes.get(id);
    if (known === undefined) this.#changes.set(id, [change]);
    else known.push(change);
  }

  forget(before: Mono): void {
    for (const [id, changes] of this.#changes) {
      const left = changes.filter(({ to }) => to >= before);
      if (left.length === 0) this.#changes.delete(id);
      else this.#changes.set(id, left);
    }
  }

  /** Every list until the answer must have been added. */
  judge(stored: StoredFinding): Difference[] {
    const why = this.#whyWrong(stored);
    if (why === null) {
      this.#confirmed += 1;
      return [];
    }
    const reason = this.#reason(stored);
    if (reason === null) return [{ is: 'unproven_kubelet_late', stored, why }];
    this.#undecided.set(reason, (this.#undecided.get(reason) ?? 0) + 1);
    return [];
  }

  #whyWrong(stored: StoredFinding): string | null {
    const question = questionOf(stored);
    if (question === null || stored.from === null) return 'Its proof contradicts itself';
    if (!this.#isFound(stored)) return 'No list on record found this change in its window';
    const { from, resolved } = stored;
    const isGap = this.#gaps.some(
      (gap) => gap.from <= question.answered && (gap.to ?? question.answered) >= from,
    );
    if (isGap) return "A gap says that the kubelet's own status was not watched then";
    return resolved !== null && resolved < question.asked
      ? 'It was resolved before the kubelet was asked'
      : null;
  }

  /**
   * Whether a list found the change: the one that ends the window, an earlier one of which only later events say that this container had run, or one
   * before a status that says when it ran.
   */
  #isFound({ id, from, to, proof: { evidence } }: StoredFinding): boolean {
    const state = /^listed (running|exited)$/.exec(String(evidence))?.[1] ?? 'exited';
    const shown = (this.#changes.get(id ?? '') ?? []).filter((each) => to !== null && each.to <= to).at(-1);
    return shown !== undefined && shown.newState === state && shown.from === from;
  }

  #reason({ id, from, to, seq }: StoredFinding): string | null {
    if (id === null || from === null || to === null) return null;
    if (this.#recent.isDoubtful(id, from))
      return 'a list was incomplete, or showed the id CREATED or UNKNOWN, which the records do not distinguish';
    return this.#whyUndecided(from, to, id, seq);
  }
}

/** Null where it contradicts itself. */
function questionOf({ eventType, from, to, at, proof }: StoredFinding): Question | null {
  const [asked, answered, lateAfter, watchSince] = ['asked', 'answered', 'lateAfter', 'watchSince'].map(
    (key) => proof[key],
  );
  const numbers = [from, to, asked, answered, lateAfter, watchSince];
  if (typeof asked !== 'number' || typeof answered !== 'number' || !numbers.every(Number.isSafeInteger))
    return null;
  const state = proof['podState'];
  const isNotShown =
    state === 'waiting' || state === 'absent' || (state === 'running' && eventType === 'STOPPED');
  const inOrder = [watchSince, from, to, asked, answered, at].map(Number);
  const isInOrder = inOrder.every((each, i) => i === 0 || each >= (inOrder[i - 1] ?? each));
  const isLate = Number(lateAfter) >= MIN_LATE_AFTER && asked - Number(to) >= Number(lateAfter);
  const isOfContainer = eventType === 'STARTED' || eventType === 'STOPPED';
  return isNotShown && isInOrder && isLate && isOfContainer ? { asked, answered } : null;
}
