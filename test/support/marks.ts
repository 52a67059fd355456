/*
 * Marks: what the long tests must come across at some time, each cause of a gap, each kind of finding, each repair and each refusal. A mark is
 * derived from what is stored at the end, so that the product knows nothing of it.
 *
 * A long test counts in how many of its runs it hit each mark, prints that, and fails if it missed one that it must hit within its number of runs, or hit
 * one that nobody has listed. expectedMarks.ts lists them all.
 */
import type { RecordOf } from '../../src/protocol/record.ts';
import { EXPECTED_MARKS, type Expectation } from './expectedMarks.ts';

type LongTest = Exclude<Expectation['in'], 'elsewhere'>;

interface MarkReport {
  readonly summary: string;
  /** Why it fails; empty if it does not. */
  readonly problems: readonly string[];
}

export class MarkCounts {
  readonly #runs = new Map<string, number>();

  /** The marks of one run. */
  add(marks: Iterable<string>): void {
    for (const mark of new Set(marks)) this.#runs.set(mark, 1 + (this.#runs.get(mark) ?? 0));
  }

  report(test: LongTest, runs: number): MarkReport {
    const counts = [...this.#runs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([mark, n]) => `${mark} ${n}`);
    const missed = [...EXPECTED_MARKS].flatMap(([mark, expectations]) => {
      if (this.#runs.has(mark)) return [];
      return expectations.flatMap((each) => (each.in === test ? [{ mark, within: each.within }] : []));
    });
    return {
      summary: `marks hit in ${runs} runs: ${counts.join(', ')}; not hit: ${missed.map(({ mark }) => mark).join(', ') || 'none'}`,
      problems: [
        ...missed.filter(({ within }) => within <= runs).map(({ mark }) => `mark never hit: ${mark}`),
        ...[...this.#runs.keys()]
          .filter((mark) => !EXPECTED_MARKS.has(mark))
          .map((mark) => `mark that expectedMarks.ts does not list: ${mark}`),
      ],
    };
  }
}

/** Why a list failed is in the gap's cause, which may be any code of gRPC. */
const causeIn = (scope: string, cause: string): string =>
  scope === 'list' && cause !== 'slow' ? 'failed' : cause;

export const gapMark = (scope: string, cause: string): string => `gap ${scope} ${causeIn(scope, cause)}`;

/** The marks of a finding: its kind, and why it could not be observed. */
export const findingMarks = ({ kind, cause }: Pick<RecordOf<'finding'>, 'kind' | 'cause'>): string[] => [
  `finding ${kind}`,
  ...(kind === 'unobservable' ? [`unobservable ${cause}`] : []),
];
