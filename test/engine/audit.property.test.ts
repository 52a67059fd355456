/*
 * Random histories that an agent watched, and the audit of what it recorded.
 */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { auditEpoch } from '../../src/audit/epochAudit.ts';
import type { StoredEpoch, StoredMinute } from '../../src/audit/storedEpoch.ts';
import { mono } from '../../src/protocol/units.ts';
import { runsOf } from '../support/runs.ts';
import { groundTruthOf } from './histories/groundTruth.ts';
import { anyHistory } from './histories/history.ts';
import { storedEpochOf } from './histories/storedHistory.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_120);

test('an audit has nothing to say about what an agent recorded, nor once most of what it read is forgotten', {
  timeout: 3_600_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(anyHistory, async (history) => {
      const epoch = storedEpochOf(groundTruthOf(history));
      expect((await auditEpoch(epoch)).differences).toEqual([]);
      const { differences } = await auditEpoch(followedByAnHour(epoch));
      // The agent ended before it could judge this, and no record says so.
      const judgedByThen = differences.filter((each) => !('made' in each) || each.made.t < epoch.end - LAST);
      expect(judgedByThen).toEqual([]);
    }),
    { numRuns: runsOf(1_000), seed: SEED },
  );
});

const HOUR = 3_600_000_000;
/** Until a verdict must be stored. */
const LAST = 20_000_000;

/** In which nothing was seen. */
function followedByAnHour(epoch: StoredEpoch): StoredEpoch {
  const end = mono(epoch.end + HOUR);
  const seq = epoch.lastMinute + 1;
  async function* minutes(): AsyncGenerator<StoredMinute> {
    let clock = epoch.clock ?? 0;
    for await (const minute of epoch.minutes) {
      yield minute;
      clock = minute.clock;
    }
    yield { seq, from: epoch.end, to: end, clock, relists: [] };
  }
  return { ...epoch, end, lastMinute: seq, minutes: minutes() };
}
