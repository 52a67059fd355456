/*
 * The last lines of a test run: the slowest files, each failure, how to run their files alone, then `N passed, N failed, N skipped`, so that the end of a long
 * log is enough. A failure is told by the first lines of its error, and by those that differ.
 */
import { stripVTControlCharacters } from 'node:util';
import type { TestModule, TestRunEndReason } from 'vitest/node';

/** The path by which a failing example was made smaller may be thousands of characters long. */
const MAX_LINE = 1_000;
const MAX_LINES = 6;
const MAX_DIFFERENCES = 5;
const SLOWEST = 10;
/** Seconds from which on a file is worth a line. */
const SLOW = 30;

interface Thrown {
  readonly message: string;
  /** How the expected and the received value differ, a line for each line of them. */
  readonly diff?: string | undefined;
  readonly cause?: Thrown | undefined;
}

interface TestFailure {
  readonly where: string;
  readonly why: string;
}

export default class ClosingLine {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly Thrown[], reason: TestRunEndReason): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: 'passed' | 'skipped') =>
      tests.filter((test) => test.result().state === state).length;
    const failures = [
      ...modules.flatMap(failuresOf),
      ...errors.map((error) => ({ where: 'outside of any test', why: reasonOf(error) })),
    ];
    console.log('');
    const seconds = (module: TestModule) => Math.round(module.diagnostic().duration / 1000);
    const slow = modules.filter((module) => seconds(module) >= SLOW).sort((a, b) => seconds(b) - seconds(a));
    for (const module of slow.slice(0, SLOWEST)) {
      const worked = module.meta().processorTime;
      const share = worked === undefined ? '' : `, ${Math.round(worked)} s of a processor`;
      console.log(`${seconds(module)} s${share}: ${module.relativeModuleId}`);
    }
    for (const { where, why } of failures) {
      console.log(`failed: ${where}: ${why}`);
    }
    const failed = modules.filter((module) => failuresOf(module).length > 0);
    for (const [target, modules] of Map.groupBy(failed, targetOf)) {
      const files = modules.map(({ relativeModuleId }) => relativeModuleId).join(' ');
      console.log(`alone: make ${target} TESTS="${files}"`);
    }
    console.log(`${count('passed')} passed, ${failures.length} failed, ${count('skipped')} skipped`);
    if (reason === 'interrupted') console.log('The run was interrupted.');
  }
}

/** The target that runs the files of a project. */
const TARGETS: Readonly<Record<string, string>> = {
  kubelet: 'kubelet-test',
  release: 'release-test',
  cluster: 'cluster-test',
  versions: 'versions',
  spark: 'lake',
};
const targetOf = ({ project }: TestModule): string => TARGETS[project.name] ?? 'test';

/** A failure outside a test (a file that cannot be loaded, a hook) is a failure too. */
function failuresOf(module: TestModule): readonly TestFailure[] {
  const file = module.relativeModuleId;
  const tests = [...module.children.allTests('failed')];
  return [
    ...module.errors().map((error) => ({ where: file, why: reasonOf(error) })),
    ...[...module.children.allSuites()].flatMap((suite) =>
      suite.errors().map((error) => ({ where: `${file} > ${suite.fullName}`, why: reasonOf(error) })),
    ),
    ...tests.map((test) => ({
      where: `${file} > ${test.fullName}`,
      why: reasonOf(test.result().errors?.[0]),
    })),
  ];
}

/** The first lines of an error (the seed of a failed property is among them), the first of its cause, and what differs. */
function reasonOf(error: Thrown | undefined): string {
  const lines = linesOf(error?.message).slice(0, MAX_LINES);
  return [...lines, ...linesOf(error?.cause?.message).slice(0, 1), ...differencesOf(error)].join('\n  ');
}

/** The lines of a difference that only one of the two values has, without the two that head it. */
function differencesOf(error: Thrown | undefined): string[] {
  const differing = linesOf(error?.diff ?? error?.cause?.diff).filter(
    (line) => /^[+-]/.test(line) && !/^[+-] (Expected|Received)/.test(line),
  );
  const more = differing.length - MAX_DIFFERENCES;
  return [...differing.slice(0, MAX_DIFFERENCES), ...(more > 0 ? [`${more} more lines`] : [])];
}

const linesOf = (text: string | undefined): string[] =>
  text === undefined
    ? []
    : stripVTControlCharacters(text)
        .split('\n')
        .map((line) => (line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line));
