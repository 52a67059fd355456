import { expect, test } from 'vitest';
import { plegEvents } from './plegEvents.ts';

test.each([
  ['non-existent', 'running', ['ContainerStarted']],
  ['non-existent', 'exited', ['ContainerDied']],
  ['non-existent', 'unknown', ['ContainerChanged']],
  ['non-existent', 'non-existent', []],
  ['running', 'running', []],
  ['running', 'exited', ['ContainerDied']],
  ['running', 'unknown', ['ContainerChanged']],
  ['running', 'non-existent', ['ContainerDied', 'ContainerRemoved']],
  ['exited', 'running', ['ContainerStarted']],
  ['exited', 'exited', []],
  ['exited', 'unknown', ['ContainerChanged']],
  ['exited', 'non-existent', ['ContainerRemoved']],
  ['unknown', 'running', ['ContainerStarted']],
  ['unknown', 'exited', ['ContainerDied']],
  ['unknown', 'unknown', []],
  ['unknown', 'non-existent', ['ContainerDied', 'ContainerRemoved']],
] as const)("from %s to %s a kubelet's PLEG makes %j", (from, to, events) => {
  expect(plegEvents(from, to)).toEqual(events);
});
