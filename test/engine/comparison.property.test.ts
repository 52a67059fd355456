/*
 * Random histories, compared with oracles that know only what really happened. The rules are written down in oracles/: no
 * finding of any kind is wrong, and none that was clearly observable is overlooked.
 *
 * PLEGWATCH_HISTORIES sets how many are tried, PLEGWATCH_SEED which ones. `make test` always tries the same ones, so that it fails
 * because of a change and not by chance; `make histories` tries others and prints their seed.
 */
import * as fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import type { Emission } from '../../src/agent/compare/emitter.ts';
import { TrackedContainers } from '../../src/agent/compare/trackedContainers.ts';
import {
  ContainerIdentitySchema,
  EVENT_TYPES,
  type EvidenceRecord,
  type FindingKind,
  parseRecord,
} from '../../src/protocol/record.ts';
import { parse } from '../../src/protocol/validation.ts';
import { findingMarks, gapMark, MarkCounts } from '../support/marks.ts';
import { ALL_HISTORIES, HISTORIES, runsOf } from '../support/runs.ts';
import { runComparison } from './histories/comparisonRun.ts';
import { groundTruthOf } from './histories/groundTruth.ts';
import { anyHistory, type History } from './histories/history.ts';
import { counters } from './oracles/counters.ts';
import { drops } from './oracles/drops.ts';
import { duplicateContainers } from './oracles/duplicateContainers.ts';
import { events } from './oracles/events.ts';
import { kubeletLag, kubeletLate, kubeletOfMisses } from './oracles/kubelet.ts';
import { firstLists, regression, silentStream, unannounced } from './oracles/lists.ts';
import { missed } from './oracles/missed.ts';
import type { HistoryRun, Oracle } from './oracles/oracle.ts';
import { shortLife } from './oracles/shortLife.ts';
import { spurious } from './oracles/spurious.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_120);

const ORACLES: Readonly<Record<string, Oracle>> = {
  missed,
  events,
  spurious,
  regression,
  unannounced,
  silentStream,
  shortLife,
  duplicateContainers,
  firstLists,
  kubeletLate,
  kubeletLag,
  kubeletOfMisses,
  drops,
  counters,
};

const STAGE_PROOF = ['evidence', 'lowerBoundKnown', 'state', 'exactTimes', 'statusAnswer'];
const EVENT_PROOF = ['received', 'state', 'exactTimes'];
/** The fields that the proof of each kind of finding has at least. */
const PROOFS: Readonly<Record<FindingKind, readonly string[]>> = {
  missed: [...STAGE_PROOF, 'session', 'armedAt', 'coveredSince', 'drainedTo', 'eventsInSession', 'lastEvent'],
  unobservable: STAGE_PROOF,
  unannounced: STAGE_PROOF,
  late: EVENT_PROOF,
  out_of_order: [...EVENT_PROOF, 'after', 'afterReceived', 'habitOfRuntime'],
  stale: [...EVENT_PROOF, 'list'],
  duplicate: [...EVENT_PROOF, 'firstReceived'],
  spurious: [...EVENT_PROOF, 'lists'],
  short_life: ['lifeMinMs', 'lifeMaxMs', 'listBefore', 'listAfter', 'exactTimes'],
  duplicate_container: ['other', 'together', 'exactTimes', 'exactTimesOfOther', 'listedRunning'],
  regression: ['listedExited', 'listedRunning', 'exactTimes'],
  silent_stream: ['session', 'drainedTo'],
  kubelet_late: [...STAGE_PROOF, 'asked', 'answered', 'lateAfter', 'watchSince', 'podState'],
};
const proofOf = (kind: FindingKind) => expect.arrayContaining([...PROOFS[kind]]);

function runOf(history: History): HistoryRun {
  const truth = groundTruthOf(history);
  return { truth, outcome: runComparison(truth) };
}

function marksOf(record: EvidenceRecord): string[] {
  if (record.type === 'finding') return findingMarks(record);
  if (record.type === 'gap') return [gapMark(record.scope, record.cause)];
  return record.type === 'finding_resolved' ? ['repair finding_resolved'] : [];
}

test('no finding of any kind is wrong, and none that was clearly observable is overlooked', {
  timeout: 7_200_000,
}, () => {
  const clear = new Map(Object.keys(ORACLES).map((name) => [name, 0]));
  const marks = new MarkCounts();
  fc.assert(
    fc.property(anyHistory, (history: History) => {
      const run = runOf(history);
      marks.add(run.outcome.emissions.flatMap(({ record }) => marksOf(record)));
      for (const [name, oracle] of Object.entries(ORACLES)) {
        const result = oracle(run);
        expect({ name, wrong: result.wrong }).toEqual({ name, wrong: [] });
        expect({ name, overlooked: result.overlooked }).toEqual({ name, overlooked: [] });
        clear.set(name, (clear.get(name) ?? 0) + result.clear);
      }
      expect(run.outcome.afterDecided).toEqual([]);
      expect(run.outcome.undecidedAt).toEqual([]);
      expect(run.outcome.trackedAfterEnd()).toBe(0);
    }),
    { numRuns: HISTORIES, seed: SEED },
  );
  const { summary, problems } = marks.report('histories', HISTORIES);
  if (process.env['PLEGWATCH_HISTORIES'] !== undefined) {
    console.info(summary);
    console.info(`${HISTORIES} histories of seed ${SEED}; clearly observable:`, Object.fromEntries(clear));
  }
  expect(problems).toEqual([]);
  // Histories in which nothing is at stake would prove nothing. A few of them need not contain every kind.
  if (HISTORIES < ALL_HISTORIES) return;
  for (const [name, count] of clear) expect({ name, none: count === 0 }).toEqual({ name, none: false });
});

/** The first container of which an event was never sent stands for all others of its kind: of two in one list, either. */
const withoutExample = (emission: Emission): unknown =>
  emission.record.type === 'finding' && emission.record.cause === 'never_sent'
    ? {
        ...emission.record,
        containerId: null,
        window: null,
        proof: null,
        isSandbox: emission.object?.isSandbox,
      }
    : emission;

/** The contents of one list may be said in any order, and ids are given in that order. */
function saidBy({
  emissions,
  counters: counted,
  pending,
  decidedUntil,
  afterDecided,
}: HistoryRun['outcome']) {
  const withoutId = (key: string, value: unknown) => (/^(finding|gap)Id$|^missed$/.test(key) ? null : value);
  const said = emissions.map((emission) => JSON.stringify(withoutExample(emission), withoutId)).sort();
  return { said, counted, pending, decidedUntil, decidedTooEarly: afterDecided.length };
}

test('a container that is settled as gone, or shown unchanged, need not be compared with lists: they say the same', {
  timeout: 7_200_000,
}, () => {
  fc.assert(
    fc.property(anyHistory, (history: History) => {
      const truth = groundTruthOf(history);
      const skipped = runComparison(truth);
      expect(runComparison(truth, false).emissions).toEqual(skipped.emissions);
      const settle = vi.spyOn(TrackedContainers.prototype, 'settleAsGone').mockReturnValue(undefined);
      const compared = runComparison(truth);
      settle.mockRestore();
      expect(saidBy(skipped)).toEqual(saidBy(compared));
    }),
    { numRuns: runsOf(2_000), seed: SEED },
  );
});

test('every record is valid, and every finding has the proof of its kind', () => {
  fc.assert(
    fc.property(anyHistory, (history: History) => {
      for (const { record, object } of runOf(history).outcome.emissions) {
        expect(parseRecord(record)).toMatchObject({ ok: true });
        if (record.type === 'finding') expect(Object.keys(record.proof)).toEqual(proofOf(record.kind));
        if (object !== null) expect(parse(ContainerIdentitySchema, object)).toMatchObject({ ok: true });
      }
    }),
    { numRuns: 100, seed: SEED },
  );
});

test('a container of a random history reaches its stages in their order', () => {
  fc.assert(
    fc.property(anyHistory, (history: History) => {
      for (const { at } of groundTruthOf(history).containers) {
        const times = EVENT_TYPES.flatMap((type) => at[type] ?? []);
        expect(times).toEqual([...times].sort((a, b) => a - b));
      }
    }),
    { numRuns: 50, seed: SEED },
  );
});
