/*
 * The oracle of a scenario: it holds what a store has of a node against what happened to its simulated runtime.
 *
 * No finding of any kind may be wrong, and none overlooked that was clearly to be seen. Times are milliseconds of the
 * machine's wall clock.
 */
import { breaksWithoutSession, stopsWithoutGap, wrongChanges, wrongDeliveries } from './completeness.ts';
import { ExpectedFindings } from './expectedFindings.ts';
import { FindingCheck } from './findingCheck.ts';
import type { RuntimeTruth, TimeRange } from './groundTruth.ts';
import { Observability } from './observability.ts';
import type { OracleConditions } from './oracleConditions.ts';
import { type CheckedKind, nameOf, type StoredEvidence } from './storedEvidence.ts';

/** How long before and after its transitions the rest is shown of what was overlooked, in milliseconds. */
const NEAR_MS = 15_000;

const KINDS: readonly CheckedKind[] = [
  'missed',
  'late',
  'out_of_order',
  'duplicate',
  'spurious',
  'unannounced',
  'short_life',
  'duplicate_container',
  'regression',
  'silent_stream',
  'unobservable',
];

export class FindingsOracle {
  readonly #truth: RuntimeTruth;
  readonly #evidence: StoredEvidence;
  readonly #check: FindingCheck;
  readonly #expected: ExpectedFindings;

  constructor(truth: RuntimeTruth, evidence: StoredEvidence, conditions: OracleConditions) {
    this.#truth = truth;
    this.#evidence = evidence;
    const observability = new Observability(truth, evidence);
    this.#check = new FindingCheck(truth, evidence, observability, conditions);
    this.#expected = new ExpectedFindings(truth, evidence, observability, conditions);
  }

  /** Stored findings that are not true, each with its proof, to see why it was made. */
  wrong(): string[] {
    return [
      ...this.#evidence.findings
        .filter((each) => !this.#check.isTrue(each))
        .map((each) => `${nameOf(each)}: ${JSON.stringify(each.proof)}`),
      ...wrongDeliveries(this.#truth, this.#evidence),
      ...wrongChanges(this.#truth, this.#evidence.changes),
      ...breaksWithoutSession(this.#truth, this.#evidence.sessions),
      ...stopsWithoutGap(this.#truth, this.#evidence.gaps),
    ];
  }

  /** Facts that were clearly to be seen and are not stored, with all that is stored of the id, to see why. */
  overlooked(): string[] {
    return KINDS.flatMap((kind) => {
      const stored = new Set(this.#evidence.findings.filter((each) => each.kind === kind).map(nameOf));
      const lacking = this.#expected.of(kind).filter((name) => !stored.has(name));
      return lacking.map((name) => `${name}: ${this.#storedOf(name)}`);
    });
  }

  /** The decisive rows come first, because a report of a test run is cut; of the others only those that were near. */
  #storedOf(name: string): string {
    const { changes, events, findings, gaps, sessions } = this.#evidence;
    const ofId = <T extends { readonly id: string }>(rows: readonly T[]) =>
      rows.filter(({ id }) => id !== '' && name.includes(id));
    const transitions = ofId(this.#truth.transitions);
    const [from = 0, to = from] = [transitions[0]?.ms, transitions.at(-1)?.ms];
    const near = <T extends TimeRange>(rows: readonly T[]) =>
      rows.filter((each) => (each.to ?? this.#truth.end) > from - NEAR_MS && each.from < to + NEAR_MS);
    return JSON.stringify({
      findings: ofId(findings).map(({ kind, type, cause, detected, proof }) => [
        kind,
        type,
        cause,
        detected,
        proof,
      ]),
      gaps: near(gaps).map(({ scope, cause, ...gap }) => [scope, cause, gap.from, gap.to]),
      transitions: transitions.map(({ ms, transition, silent }) => [ms, transition, silent]),
      events: ofId(events).map(({ type, received }) => [type, received]),
      changes: ofId(changes),
      relists: near(this.#truth.relists),
      firstLists: near(this.#evidence.firstLists),
      sessions,
    });
  }
}
