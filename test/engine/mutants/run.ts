/*
 * Breaks the comparison on purpose: its tests must notice each rule of rules.ts that is broken. Run by `make engine-mutants`;
 * with numbers, only those mutants.
 *
 *   found      a test fails; its name is printed
 *   SURVIVED   no test fails; where that is known, rules.ts says why
 *
 * For each mutant the ordinary tests of src/agent/compare, of the token bucket and of the facts about versions run first, and the random histories only where
 * those pass.
 */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import * as v from 'valibot';
import { run } from '../../../devtools/localServices/process.ts';
import { messageOf } from '../../../src/platform/errors.ts';
import { brokenTree, edited } from '../../support/brokenTree.ts';
import { MUTANTS, type Mutant } from './rules.ts';

const AT_A_TIME = Math.min(2, availableParallelism());
const TEST_RUNS = [
  [
    'src/agent/compare/',
    'src/platform/tokenBucket',
    'test/engine/versionFacts',
    '--exclude',
    '**/*.property.test.ts',
  ],
  ['test/engine/comparison.property.test.ts'],
];
/** Far more than either run takes: a mutant that never ends proves nothing. */
const RUN_WITHIN_MS = 20 * 60_000;

const ReportSchema = v.object({
  testResults: v.array(
    v.object({
      name: v.string(),
      assertionResults: v.array(v.object({ fullName: v.string(), status: v.string() })),
    }),
  ),
});

const selected = process.argv.slice(2);
const numbered = MUTANTS.map((mutant, i) => ({ mutant, number: `${i + 1}` }));
const wanted = numbered.filter(({ number }) => selected.length === 0 || selected.includes(number));
// An edit that does not apply should fail now, not after minutes.
for (const { edits } of MUTANTS) edited(edits);

const left = [...wanted];
const survived: string[] = [];
const unexpected: string[] = [];
await Promise.all(Array.from({ length: AT_A_TIME }, worker));
for (const line of survived) console.log(line);
console.log(`${wanted.length - survived.length} of ${wanted.length} were found`);
for (const line of unexpected) console.log(line);
process.exitCode = unexpected.length === 0 ? 0 : 1;

async function worker(): Promise<void> {
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const { number, mutant } = next;
    const name = `${number}. ${mutant.name}`;
    try {
      report(name, mutant, await failingTest(mutant));
    } catch (error) {
      unexpected.push(`NOT TRIED ${name}: ${messageOf(error)}`);
    }
  }
}

function report(name: string, { survives }: Mutant, found: string | null): void {
  console.log(found === null ? `SURVIVED ${name}` : `found    ${name}: ${found}`);
  if (found === null) survived.push(`survived ${name}: ${survives ?? 'for no known reason'}`);
  if (found === null && survives === undefined) unexpected.push(`NOT FOUND ${name}`);
  if (found !== null && survives !== undefined) unexpected.push(`FOUND, although it should survive ${name}`);
}

/** The first test that fails; null where none does. */
async function failingTest({ edits }: Mutant): Promise<string | null> {
  const tree = brokenTree(edits);
  try {
    for (const tests of TEST_RUNS) {
      const found = await failingOf(tree.dir, tests);
      if (found !== null) return found;
    }
    return null;
  } finally {
    tree.remove();
  }
}

async function failingOf(root: string, tests: readonly string[]): Promise<string | null> {
  const report = join(root, 'report.json');
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const once = ['run', '--project', 'unit*', '--bail=1', '--maxWorkers=1'];
  const args = [vitest, ...once, '--reporter=json', `--outputFile=${report}`, ...tests];
  // The histories of the ordinary run, whatever is set here.
  const env = { ...process.env, PLEGWATCH_HISTORIES: undefined, PLEGWATCH_SEED: undefined };
  const failure = await run(process.execPath, args, { cwd: root, env, timeoutMs: RUN_WITHIN_MS }).then(
    () => null,
    (error: unknown) => messageOf(error),
  );
  if (failure === null) return null;
  const failed = existsSync(report) ? firstFailed(readFileSync(report, 'utf8')) : null;
  // A mutant that cannot even be loaded proves nothing.
  if (failed === null) throw new Error(`no test fails, and yet ${failure}`);
  return failed;
}

function firstFailed(report: string): string | null {
  const { testResults } = v.parse(ReportSchema, JSON.parse(report));
  const failed = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName }) => `${basename(name)}: ${fullName}`),
  );
  return failed[0] ?? null;
}
