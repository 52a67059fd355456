/*
 * The last line of a test run, plain: `N passed, N failed, N skipped`.
 */
import type { TestModule, TestRunEndReason } from 'vitest/node';

export default class ClosingLine {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[], reason: TestRunEndReason): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: 'passed' | 'failed' | 'skipped') =>
      tests.filter((test) => test.result().state === state).length;
    // What fails outside a test (a file that cannot be loaded, an unhandled error) is a failure too.
    const outside =
      errors.length +
      modules.filter((module) => module.state() === 'failed' && module.errors().length > 0).length;
    const failed = count('failed') + outside;
    console.log(`\n${count('passed')} passed, ${failed} failed, ${count('skipped')} skipped`);
    if (reason === 'interrupted') console.log('The run was interrupted.');
  }
}
