/*
 * Random histories, held against oracles that know only what really happened. The rules are in words in oracles/: of each
 * kind of finding none is wrong, and none is overlooked that was clearly to be seen.
 *
 * PLEGWATCH_HISTORIES sets how many are tried, PLEGWATCH_SEED which ones: the ordinary run tries the same ones every time, so
 * that it fails for a change and not by chance. Look for new ones with another seed.
 */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  ContainerIdentitySchema,
  EVENT_TYPES,
  type FindingKind,
  parseRecord,
} from '../../src/protocol/record.ts';
import { parse } from '../../src/protocol/validation.ts';
import { type Playing, runComparison } from './histories/comparisonRun.ts';
import { groundTruthOf } from './histories/groundTruth.ts';
import { anyHistory, type History } from './histories/history.ts';
import { counters } from './oracles/counters.ts';
import { events } from './oracles/events.ts';
import { regression, silentStream, unannounced } from './oracles/lists.ts';
import { missed } from './oracles/missed.ts';
import type { HistoryRun, Oracle } from './oracles/oracle.ts';
import { shortLife, twins } from './oracles/overlooked.ts';
import { spurious } from './oracles/spurious.ts';

const ASKED = process.env['PLEGWATCH_HISTORIES'];
const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_120);
const ALL_HISTORIES = 10_000;
const HISTORIES = Number(ASKED ?? ALL_HISTORIES);

const ORACLES: Readonly<Record<string, Oracle>> = {
  missed,
  events,
  spurious,
  regression,
  unannounced,
  silentStream,
  shortLife,
  twins,
  counters,
};

const OF_STAGE = ['evidence', 'lowerBoundKnown', 'state', 'exactTimes', 'statusAnswer'];
const OF_EVENT = ['received', 'state', 'exactTimes'];
/** What each kind of finding lists at the least. */
const PROOFS: Readonly<Record<FindingKind, readonly string[]>> = {
  missed: [...OF_STAGE, 'session', 'armedAt', 'coveredSince', 'drainedTo', 'eventsInSession'],
  unobservable: OF_STAGE,
  unannounced: OF_STAGE,
  late: OF_EVENT,
  out_of_order: [...OF_EVENT, 'after', 'afterReceived', 'habitOfRuntime'],
  stale: [...OF_EVENT, 'list'],
  duplicate: [...OF_EVENT, 'firstReceived'],
  spurious: [...OF_EVENT, 'lists'],
  short_life: ['lifeMinMs', 'lifeMaxMs', 'listBefore', 'listAfter', 'exactTimes'],
  duplicate_container: ['other', 'together', 'exactTimes', 'exactTimesOfOther', 'listedRunning'],
  regression: ['listedExited', 'listedRunning', 'exactTimes'],
  silent_stream: ['transitions', 'session', 'openedAt', 'drainedTo'],
};
const restsOn = (kind: FindingKind) => expect.arrayContaining([...PROOFS[kind]]);

function tell(history: History): HistoryRun & { readonly outcome: Playing } {
  const truth = groundTruthOf(history);
  return { truth, outcome: runComparison(truth) };
}

test('of every kind nothing is told that is not so, and nothing is overlooked that was clearly to be seen', {
  timeout: 7_200_000,
}, () => {
  const clear = new Map(Object.keys(ORACLES).map((name) => [name, 0]));
  fc.assert(
    fc.property(anyHistory, (history: History) => {
      const run = tell(history);
      for (const [name, oracle] of Object.entries(ORACLES)) {
        const result = oracle(run);
        expect({ name, wrong: result.wrong }).toEqual({ name, wrong: [] });
        expect({ name, overlooked: result.overlooked }).toEqual({ name, overlooked: [] });
        clear.set(name, (clear.get(name) ?? 0) + result.clear);
      }
      expect(run.outcome.forgotten()).toBe(0);
      // To recognise what lists show as it was saves work, and changes nothing.
      expect(runComparison(run.truth, false).emissions).toEqual(run.outcome.emissions);
    }),
    { numRuns: HISTORIES, seed: SEED },
  );
  if (ASKED !== undefined)
    console.info(HISTORIES, 'histories; clearly to be seen:', Object.fromEntries(clear));
  // Histories in which nothing is at stake would prove nothing. A few of them need not contain every kind.
  if (HISTORIES < ALL_HISTORIES) return;
  for (const [name, count] of clear) expect({ name, none: count === 0 }).toEqual({ name, none: false });
});

test('every record is one that a store takes, and every finding lists what it rests on', {
  timeout: 600_000,
}, () => {
  fc.assert(
    fc.property(anyHistory, (history: History) => {
      for (const { record, object } of tell(history).outcome.emissions) {
        expect(parseRecord(record)).toMatchObject({ ok: true });
        if (record.type === 'finding') expect(Object.keys(record.proof)).toEqual(restsOn(record.kind));
        if (object !== null) expect(parse(ContainerIdentitySchema, object)).toMatchObject({ ok: true });
      }
    }),
    { numRuns: 100, seed: SEED },
  );
});

test('a history is told in the order of its stages', () => {
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
