/*
 * The last lines of a test run: one line for each failure, then `N passed, N failed, N skipped`, so that the end of a long
 * log is enough.
 */
import { stripVTControlCharacters } from 'node:util';
import type { TestModule, TestRunEndReason } from 'vitest/node';

interface TestFailure {
  readonly where: string;
  readonly why: string | undefined;
}

export default class ClosingLine {
  onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly { readonly message: string }[],
    reason: TestRunEndReason,
  ): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: 'passed' | 'skipped') =>
      tests.filter((test) => test.result().state === state).length;
    const failures = [
      ...modules.flatMap(failuresOf),
      ...errors.map(({ message }) => ({ where: 'outside of any test', why: message })),
    ];
    console.log('');
    for (const { where, why } of failures) {
      console.log(`failed: ${where}: ${stripVTControlCharacters(why ?? '').split('\n', 1)[0]}`);
    }
    console.log(`${count('passed')} passed, ${failures.length} failed, ${count('skipped')} skipped`);
    if (reason === 'interrupted') console.log('The run was interrupted.');
  }
}

/** What fails outside a test (a file that cannot be loaded, a hook) is a failure too. */
function failuresOf(module: TestModule): readonly TestFailure[] {
  const file = module.relativeModuleId;
  const tests = [...module.children.allTests('failed')];
  return [
    ...module.errors().map(({ message }) => ({ where: file, why: message })),
    ...[...module.children.allSuites()].flatMap((suite) =>
      suite.errors().map(({ message }) => ({ where: `${file} > ${suite.fullName}`, why: message })),
    ),
    ...tests.map((test) => ({
      where: `${file} > ${test.fullName}`,
      why: test.result().errors?.[0]?.message,
    })),
  ];
}
