/*
 * Builds broken on purpose: the loss checker must detect each of them. Run by `make torture-mutants`.
 *
 * Each is a copy of this tree with a few edits. An edit that no longer applies is an error.
 */
import { join } from 'node:path';
import { run } from '../../devtools/localServices/process.ts';
import { messageOf } from '../../src/platform/errors.ts';
import { brokenTree, type Edit } from '../support/brokenTree.ts';
import { LimitedDisk } from './disk.ts';
import { runSchedule } from './run.ts';

interface BuildMutant {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** Schedules of the torture, tried in turn until one detects it; or the property that must detect it. */
  readonly foundBy: readonly number[] | Property;
}

interface Property {
  readonly test: string;
  /** How it says that a record is lost, or neither stored nor declared in the end: it must not fail for another reason. */
  readonly says: RegExp;
}

/** Any seed detects it. */
const ANY = [101, 102, 103, 104];
const POWER_CUTS: Property = { test: 'src/agent/spool/powerCut.test.ts', says: /Property failed after/ };
const SIMULATION: Property = {
  test: 'test/simulation/delivery.property.test.ts',
  says: /'(lost|not delivered): /,
};

const edit = (file: string, from: string, to: string): Edit => ({ file: `src/${file}`, from, to });

export const MUTANTS: readonly BuildMutant[] = [
  {
    name: 'the reply is published before the commit',
    foundBy: ANY,
    edits: [
      edit(
        'controller/ingest/commitBatch.ts',
        '{ clusterId, settings, partitions, watches }: CommitContext,',
        'context: CommitContext,',
      ),
      edit(
        'controller/ingest/commitBatch.ts',
        '  for (const { scope, envelope, locked, records } of batches) {\n    const times',
        `  const { clusterId, settings, partitions, watches } = context;
  for (const { scope, envelope, locked, records } of batches) {
    const times`,
      ),
      edit(
        'controller/ingest/commitBatch.ts',
        'return batches.map((batch, i) => {\n    const reply',
        'const done = batches.map((batch, i) => {\n    const reply',
      ),
      edit(
        'controller/ingest/commitBatch.ts',
        '    return committedBatch(batch, reply);\n  });',
        `    return committedBatch(batch, reply);
  });
  for (const [i, each] of done.entries()) await publishReply(context, batches[i].envelope, each);
  return done;`,
      ),
      edit(
        'controller/ingest/commitBatch.ts',
        "import { mayResolve, resolveAcrossEpochs } from './crossEpochResolution.ts';",
        "import { mayResolve, resolveAcrossEpochs } from './crossEpochResolution.ts';\nimport { publishReply } from './replies.ts';",
      ),
      edit(
        'controller/ingest/inputHandler.ts',
        '  return publishReply(options, read.envelope, outcome);\n}',
        '}',
      ),
    ],
  },
  {
    name: "the batch's last seq is published instead of the acked seq",
    foundBy: ANY,
    edits: [
      edit(
        'controller/ingest/epochAdvance.ts',
        'return advances.map(({ scope }, i) => {',
        'return advances.map(({ scope, envelope }, i) => {',
      ),
      edit('controller/ingest/epochAdvance.ts', 'ackedSeq: reply.acked_seq,', 'ackedSeq: envelope.last,'),
    ],
  },
  {
    name: 'received seqs are not subtracted from a batch',
    foundBy: ANY,
    edits: [
      edit(
        'controller/ingest/epoch.ts',
        'fresh: seqsIn(fresh), added }',
        'fresh: last < first ? [] : [{ from: first, to: last }], added }',
      ),
      edit(
        'controller/ingest/epoch.ts',
        "known[place - 1] = { is: 'locked', ...row, fresh: seqsIn(fresh), earlier: [], added: false };",
        `const { first, last } = batches[place - 1].envelope;
         const all = last < first ? [] : [{ from: first, to: last }];
         known[place - 1] = { is: 'locked', ...row, fresh: all, earlier: [], added: false };`,
      ),
    ],
  },
  {
    name: 'a reply of an older ack generation is accepted',
    foundBy: SIMULATION,
    edits: [
      edit('agent/ship/epochDelivery.ts', "if (ackGeneration !== this.#ackGeneration) return 'ignored';", ''),
    ],
  },
  {
    name: 'an agent does not declare since when nobody observed its node',
    foundBy: ANY,
    edits: [
      edit(
        'agent/observe/gaps.ts',
        'if (lastObserved !== null) {',
        'if (lastObserved !== null && quarantined != null) {',
      ),
    ],
  },
  {
    name: "an agent does not declare that its watch of the kubelet's status has ended",
    foundBy: ANY,
    edits: [
      edit(
        'agent/observe/pods/podsWatch.ts',
        "if (syncedAt !== null) gaps.open('kubelet_status', cause, lastGood, now);",
        '',
      ),
    ],
  },
  {
    name: 'the starts that are counted as kubelet lag are not stored',
    foundBy: ANY,
    edits: [
      edit(
        'protocol/storedRecord.ts',
        'kubelet_start_hist: lagHistogram(record.kubeletLag?.starts),',
        'kubelet_start_hist: null,',
      ),
    ],
  },
  {
    name: 'records that cannot be read are skipped without being declared',
    foundBy: SIMULATION,
    edits: [
      edit(
        'agent/ship/batchSender.ts',
        'return maySkip ? { first, entries } : null;',
        'return { first, entries };',
      ),
      edit('agent/spool/epoch.ts', "this.declareLost({ from, to, cause: 'spool_unreadable' });", ''),
    ],
  },
  {
    name: 'a segment that could not be read at the start ends where it is known to',
    foundBy: SIMULATION,
    edits: [
      edit(
        'agent/spool/recovery.ts',
        'isUnreadable && next === undefined;',
        'isUnreadable && next === null;',
      ),
    ],
  },
  {
    name: 'a segment is written before its directory entry is synced',
    foundBy: POWER_CUTS,
    edits: [
      edit('agent/spool/segmentWriter.ts', 'await syncFolder(this.#options.files, this.#epoch.dir);', ''),
    ],
  },
  {
    name: 'an epoch is named before its identity is synced',
    foundBy: POWER_CUTS,
    edits: [edit('agent/spool/files.ts', '(file) => file.datasync()', 'async () => undefined')],
  },
  {
    name: 'the directory entry of an epoch is never synced',
    foundBy: POWER_CUTS,
    edits: [
      edit('agent/spool/newEpoch.ts', "await syncFolder(options.files, join(options.dir, 'epochs'));", ''),
    ],
  },
];

const FAULTS = 20;

if (import.meta.main) {
  const missed = await countMissed(process.argv.slice(2));
  console.log(missed === 0 ? 'every mutant was detected' : `${missed} mutants were NOT detected`);
  process.exitCode = missed === 0 ? 0 : 1;
}

/** Counts the mutants with these numbers; of all if there are none. */
async function countMissed(wanted: readonly string[]): Promise<number> {
  let missed = 0;
  for (const [i, mutant] of MUTANTS.entries()) {
    if (wanted.length > 0 && !wanted.includes(`${i + 1}`)) continue;
    console.log(`${i + 1}. ${mutant.name}`);
    if (!(await detects(mutant))) missed += 1;
  }
  return missed;
}

async function detects(mutant: BuildMutant): Promise<boolean> {
  const without = (await LimitedDisk.whyNot()) === null ? [] : (['full disk'] as const);
  const tree = brokenTree(mutant.edits);
  const root = tree.dir;
  try {
    const { foundBy } = mutant;
    if ('test' in foundBy) return await finds(foundBy, root);
    await run(process.execPath, ['build.mjs'], { cwd: root });
    for (const seed of foundBy) {
      const { result, seconds } = await runSchedule({
        seed,
        faults: FAULTS,
        nodes: 3,
        controllers: 2,
        everyMs: 1_200,
        without: new Set(without),
        forgetful: new Set(),
        operations: 1,
        settlesWithinMs: 20_000,
        root,
        wanted: null,
        log: () => undefined,
      });
      const { problems } = result;
      const summary = problems.length === 0 ? 'nothing' : problems.join(', ');
      console.log(`   schedule ${seed}: ${summary}; ${Math.round(seconds)} s`);
      if (problems.length > 0) return true;
    }
    return false;
  } finally {
    tree.remove();
  }
}

async function finds({ test, says }: Property, root: string): Promise<boolean> {
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const args = [vitest, 'run', '--project', 'unit*', test];
  const failure = await run(process.execPath, args, { cwd: root, timeoutMs: 300_000 }).then(
    () => null,
    (error: unknown) => messageOf(error),
  );
  const found = failure !== null && says.test(failure);
  console.log(`   ${test}: ${found ? 'loses records' : (failure ?? 'nothing')}`);
  return found;
}
