import { expect, test } from 'vitest';
import { specsOf } from './specs.ts';

const spec = (text: string, State: string, more: object = {}) => ({
  ...{ LeafNodeType: 'It', LeafNodeText: text, ContainerHierarchyTexts: ['[k8s.io] Container'], State },
  ...{ StartTime: '2026-01-01T10:00:00Z', EndTime: '2026-01-01T10:00:02Z', ...more },
});
const reportOf = (...specs: readonly object[]) => JSON.stringify([{ SpecReports: specs }]);

test('a spec has its whole name, its state and its time', () => {
  const at = Date.UTC(2026, 0, 1, 10);
  expect(specsOf(reportOf(spec('starts', 'passed')))).toEqual([
    { name: '[k8s.io] Container starts', state: 'passed', from: at, to: at + 2_000, why: '' },
  ]);
});

test('a spec that was not run says what the machine lacks, and one that failed what was wrong', () => {
  const skipped = spec('execSync with timeout', 'skipped');
  const failed = spec('stops', 'failed', { Failure: { Message: 'still\n  running' } });
  expect(specsOf(reportOf(skipped, failed)).map(({ why }) => why)).toEqual([
    'the machine lacks ipcs and pgrep in busybox',
    'still running',
  ]);
});

test('the set-up of a suite and benchmarks are no specs', () => {
  const setUp = { ...spec('', 'passed'), LeafNodeType: 'BeforeSuite', ContainerHierarchyTexts: null };
  expect(specsOf(reportOf(setUp, spec('benchmark about starts', 'skipped')))).toEqual([]);
});
