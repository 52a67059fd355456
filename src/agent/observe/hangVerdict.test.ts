/*
 * The verdict on a list that hangs: each rule on the values that decide it.
 */
import { expect, test } from 'vitest';
import { conclude, type HangEvidence, type Unanswered } from './hangVerdict.ts';

const unanswered = (more: Partial<Unanswered> = {}): Unanswered => ({
  ...{ isSandbox: false, othersSince: 9, alikeSince: 9, isOnly: false },
  ...more,
});
const alone = { othersSince: 0, alikeSince: 0 };

/** `quick` of the statuses asked for were answered quickly; of the others, those that are not `unanswered` slowly. */
const verdictOn = (evidence: Partial<HangEvidence<Unanswered>>) =>
  conclude({
    ...{ call: 'ListContainers', listed: 40, asked: 20, quick: 19, unanswered: [], left: 20 },
    ...evidence,
  });

test('a container whose status does not answer is named if a later one of another container was answered', () => {
  const hung = unanswered({ alikeSince: 1, othersSince: 1 });
  expect(verdictOn({ unanswered: [hung] })).toEqual({ verdict: 'container', named: hung });
  expect(verdictOn({ unanswered: [unanswered(alone)] })).toEqual({ verdict: 'unknown', named: null });
});

test('statuses of sandboxes say nothing about containers, unless there is no other container', () => {
  const hung = { othersSince: 5, alikeSince: 0 };
  expect(verdictOn({ unanswered: [unanswered(hung)] }).verdict).toBe('unknown');
  expect(verdictOn({ unanswered: [unanswered({ ...hung, isOnly: true })] }).verdict).toBe('container');
});

test('a sandbox that does not answer while its list hangs is a pod', () => {
  const hung = unanswered({ isSandbox: true });
  expect(verdictOn({ call: 'ListPodSandbox', unanswered: [hung] })).toEqual({ verdict: 'pod', named: hung });
});

test('an object that the list does not list is named only after all listed ones were answered', () => {
  const sandbox = unanswered({ isSandbox: true });
  expect(verdictOn({ unanswered: [sandbox] })).toEqual({ verdict: 'unknown', named: null });
  expect(verdictOn({ unanswered: [sandbox], left: 0 })).toEqual({ verdict: 'pod', named: sandbox });
  const container = unanswered();
  expect(verdictOn({ asked: 21, unanswered: [sandbox, container] }).named).toBe(container);
});

test('the first of several statuses without an answer is named', () => {
  const [first, second] = [unanswered(), unanswered()];
  expect(verdictOn({ asked: 21, unanswered: [first, second] }).named).toBe(first);
});

test('where as many statuses are slow as quick, none is named', () => {
  expect(verdictOn({ asked: 11, quick: 5, unanswered: [unanswered()] }).verdict).toBe('unknown');
  expect(verdictOn({ asked: 11, quick: 6, unanswered: [unanswered()] }).verdict).toBe('container');
});

test('three statuses that do not answer, and none later that does, are the runtime; so are all where fewer are listed', () => {
  const hung = (count: number) => Array.from({ length: count }, () => unanswered(alone));
  const verdict = (count: number, listed: number) =>
    verdictOn({ listed, asked: count, quick: 0, unanswered: hung(count) }).verdict;
  expect(verdict(2, 40)).toBe('unknown');
  expect(verdict(3, 40)).toBe('runtime');
  expect(verdict(2, 2)).toBe('runtime');
  expect(verdictOn({ asked: 23, quick: 20, unanswered: hung(3) }).verdict).toBe('runtime');
});

test('three containers that do not answer are not the runtime if the status of a sandbox was answered since', () => {
  const hung = [unanswered({ othersSince: 2, alikeSince: 0 }), unanswered({ othersSince: 1, alikeSince: 0 })];
  expect(verdictOn({ asked: 5, quick: 2, unanswered: [...hung, unanswered(alone)] }).verdict).toBe('unknown');
});

test('a runtime that answers most statuses slowly is named after three', () => {
  expect(verdictOn({ asked: 2, quick: 0 }).verdict).toBe('unknown');
  expect(verdictOn({ asked: 6, quick: 3 }).verdict).toBe('runtime');
  expect(verdictOn({ asked: 7, quick: 4 }).verdict).toBe('unknown');
});

test('no status holds a list up if all were answered, and most quickly', () => {
  expect(verdictOn({ asked: 40, quick: 40, left: 1 }).verdict).toBe('unknown');
  expect(verdictOn({ asked: 40, quick: 40, left: 0 }).verdict).toBe('none');
  expect(verdictOn({ asked: 4, quick: 2, left: 0 }).verdict).toBe('unknown');
  expect(verdictOn({ listed: 0, asked: 0, quick: 0, left: 0 }).verdict).toBe('unknown');
});
