/*
 * Random histories that an agent watched, and the audit of what it recorded.
 */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { auditEpoch } from '../../src/audit/epochAudit.ts';
import { runsOf } from '../support/runs.ts';
import { groundTruthOf } from './histories/groundTruth.ts';
import { anyHistory } from './histories/history.ts';
import { storedEpochOf } from './histories/storedHistory.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_120);

test('an audit has nothing to say about what an agent recorded', { timeout: 3_600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(anyHistory, async (history) => {
      const { differences } = await auditEpoch(storedEpochOf(groundTruthOf(history)));
      expect(differences).toEqual([]);
    }),
    { numRuns: runsOf(1_000), seed: SEED },
  );
});
