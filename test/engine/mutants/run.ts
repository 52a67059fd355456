/*
 * The comparison, broken on purpose: its tests must notice each rule of rules.ts that is broken. Run by `make engine-mutants`;
 * with numbers only those.
 *
 *   found      a test fails, and it is said which
 *   SURVIVED   none does; where that is known, rules.ts says why
 *
 * Of each mutant the ordinary tests of src/agent/compare and of the token bucket are run first, and the random histories only where those pass.
 */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import * as v from 'valibot';
import { run } from '../../../devtools/localServices/process.ts';
import { messageOf } from '../../../src/platform/errors.ts';
import { brokenTree, edited } from '../../support/brokenTree.ts';
import { MUTANTS, type Mutant } from './rules.ts';

/** So many mutants are tried at a time. */
const AT_A_TIME = Math.min(2, availableParallelism());
const TEST_RUNS = [
  ['src/agent/compare/', 'src/platform/tokenBucket', '--exclude', '**/*.property.test.ts'],
  ['test/engine/comparison.property.test.ts'],
];
/** Far more than either run takes: a mutant that never ends is none. */
const RUN_WITHIN_MS = 20 * 60_000;

const ReportSchema = v.object({
  testResults: v.array(
    v.object({
      name: v.string(),
      assertionResults: v.array(v.object({ fullName: v.string(), status: v.string() })),
    }),
  ),
});

const asked = process.argv.slice(2);
const numbered = MUTANTS.map((mutant, i) => ({ mutant, number: `${i + 1}` }));
const wanted = numbered.filter(({ number }) => asked.length === 0 || asked.includes(number));
// Better known now than after minutes.
for (const { edits } of MUTANTS) edited(edits);

const left = [...wanted];
const survived: string[] = [];
const unexpected: string[] = [];
await Promise.all(Array.from({ length: AT_A_TIME }, lane));
for (const line of survived) console.log(line);
console.log(`${wanted.length - survived.length} of ${wanted.length} were found`);
for (const line of unexpected) console.log(line);
process.exitCode = unexpected.length === 0 ? 0 : 1;

async function lane(): Promise<void> {
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const { number, mutant } = next;
    const name = `${number}. ${mutant.name}`;
    try {
      tell(name, mutant, await failingTest(mutant));
    } catch (error) {
      unexpected.push(`NOT TRIED ${name}: ${messageOf(error)}`);
    }
  }
}

function tell(name: string, { survives }: Mutant, found: string | null): void {
  console.log(found === null ? `SURVIVED ${name}` : `found    ${name}: ${found}`);
  if (found === null) survived.push(`survived ${name}: ${survives ?? 'nobody knows why'}`);
  if (found === null && survives === undefined) unexpected.push(`NOT FOUND ${name}`);
  if (found !== null && survives !== undefined) unexpected.push(`FOUND, although said to survive ${name}`);
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
  const once = ['run', '--project', 'unit', '--bail=1', '--maxWorkers=1'];
  const args = [vitest, ...once, '--reporter=json', `--outputFile=${report}`, ...tests];
  // The histories that the ordinary run tries, whatever is asked for here.
  const env = { ...process.env, PLEGWATCH_HISTORIES: undefined, PLEGWATCH_SEED: undefined };
  const said = await run(process.execPath, args, { cwd: root, env, timeoutMs: RUN_WITHIN_MS }).then(
    () => null,
    (error: unknown) => messageOf(error),
  );
  if (said === null) return null;
  const failed = existsSync(report) ? firstFailed(readFileSync(report, 'utf8')) : null;
  // What cannot even be loaded is no broken rule.
  if (failed === null) throw new Error(`no test fails, and yet ${said}`);
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
