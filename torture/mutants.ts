/*
 * Broken on purpose: the loss checker must find each of these builds, or it is worth nothing. Run by `make torture-mutants`.
 *
 * Each is a copy of this tree with one edit; an edit that does not apply any more fails, for then nothing was shown.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../src/parts/process.ts';
import { Disk } from './disk.ts';
import { runSchedule } from './run.ts';
import { ROOT } from './world.ts';

interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

interface Mutant {
  readonly name: string;
  readonly edits: readonly Edit[];
}

const MUTANTS: readonly Mutant[] = [
  {
    name: 'the reply is told before the commit',
    edits: [
      {
        file: 'src/controller/ingest/handler.ts',
        from: 'const outcome = await commitBatch(options, envelope);',
        to: `const transaction = (work) => options.store.transaction(async (runner) => {
               const done = await work(runner);
               if (done.kind === 'committed') await tell(options, envelope, done);
               return done;
             });
             const outcome = await commitBatch({ ...options, store: { ...options.store, transaction } }, envelope);`,
      },
      {
        file: 'src/controller/ingest/handler.ts',
        from: '  await tell(options, envelope, outcome);\n}',
        to: '}',
      },
    ],
  },
  {
    name: "the batch's last seq is told instead of the mark",
    edits: [
      {
        file: 'src/controller/ingest/commit.ts',
        from: 'return { round: row.round, mark: row.mark };',
        to: 'return { round: row.round, mark: envelope.last };',
      },
    ],
  },
  {
    name: 'what was received is not taken away from a batch',
    edits: [
      {
        file: 'src/controller/ingest/epoch.ts',
        from: 'fresh: row.fresh_from.map((from, at) => ({ from, to: row.fresh_to[at] ?? from })),',
        to: 'fresh: last < first ? [] : [{ from: first, to: last }],',
      },
    ],
  },
  {
    name: 'a reply of an older round is believed',
    edits: [{ file: 'src/agent/ship.ts', from: 'if (round !== track.round) return;', to: '' }],
  },
];

/** Schedules that are tried, one after another, until one finds the mutant. */
const SEEDS = [101, 102, 103, 104];
const FAULTS = 20;

const wanted = process.argv.slice(2);
const without = (await Disk.whyNot()) === null ? [] : (['full disk'] as const);
let missed = 0;
for (const [i, mutant] of MUTANTS.entries()) {
  if (wanted.length > 0 && !wanted.includes(`${i + 1}`)) continue;
  console.log(`${i + 1}. ${mutant.name}`);
  const found = await hunt(mutant);
  if (!found) missed += 1;
}
console.log(missed === 0 ? 'every one of them was found' : `${missed} of them were NOT found`);
process.exitCode = missed === 0 ? 0 : 1;

async function hunt(mutant: Mutant): Promise<boolean> {
  const root = await built(mutant);
  try {
    for (const seed of SEEDS) {
      const { verdict, seconds } = await runSchedule({
        seed,
        faults: FAULTS,
        nodes: 3,
        controllers: 2,
        everyMs: 1_200,
        without: new Set(without),
        forgetful: new Set(),
        settlesWithinMs: 20_000,
        root,
        say: () => undefined,
      });
      const { problems } = verdict;
      const said = problems.length === 0 ? 'nothing' : problems.join(', ');
      console.log(`   schedule ${seed}: ${said}; ${Math.round(seconds)} s`);
      if (problems.length > 0) return true;
    }
    return false;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** A copy of this tree with the edits, built. */
async function built({ edits }: Mutant): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'plegwatch-mutant-'));
  for (const name of ['src', 'migrations', 'crds', 'parts', 'package.json', 'build.mjs', 'tsconfig.json'])
    cpSync(join(ROOT, name), join(root, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  for (const { file, from, to } of edits) {
    const text = readFileSync(join(root, file), 'utf8');
    if (text.split(from).length !== 2) throw new Error(`${file} has not exactly one ${JSON.stringify(from)}`);
    writeFileSync(
      join(root, file),
      text.replace(from, () => to),
    );
  }
  await run(process.execPath, ['build.mjs'], { cwd: root });
  return root;
}
