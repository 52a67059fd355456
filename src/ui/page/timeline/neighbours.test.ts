import { expect, test } from 'vitest';
import type { Neighbour } from '../../api.ts';
import { comparisons } from './neighbours.ts';

const node = (more: Partial<Neighbour> = {}): Neighbour => ({
  ...{ cluster: 'east', node: 'n', agent: 'Reporting', mode: 'Evented', streamState: 'Active', fallbacks: 0 },
  ...{ verdict: 'unknown', reason: '', missed: 0, decided: 10, watched: 1, maxMs: 8, p99Ms: 5 },
  ...{ runtimeName: 'containerd', runtimeVersion: '2.1.4', kubeletVersion: 'v1.36.2', agentVersion: '0.1.0' },
  ...{ osImage: 'Ubuntu', kernelVersion: '6.8' },
  ...more,
});
const differing = (own: Neighbour, others: readonly Neighbour[]) =>
  comparisons(own, others).filter(({ is }) => is === 'different');
const nobody = node({
  ...{
    agent: 'NeverSeen',
    mode: 'Unknown',
    streamState: 'Unknown',
    missed: null,
    watched: null,
    maxMs: null,
    p99Ms: null,
  },
  ...{ runtimeName: null, runtimeVersion: null, kubeletVersion: null, agentVersion: null },
});

test('a node like its neighbours differs in nothing', () => {
  expect(differing(node(), [node(), node({ maxMs: 11 }), node({ watched: 0.996 })])).toEqual([]);
});

test('a version, a mode and figures that are unusual in its pool differ, with how many have which', () => {
  const own = node({ mode: 'Fallback', kubeletVersion: 'v1.35.4', missed: 13, watched: 0.8, p99Ms: 12_000 });
  expect(differing(own, [node(), node(), node({ kubeletVersion: 'v1.35.4' })])).toEqual([
    { name: 'PLEG mode', own: 'Fallback', others: 'Evented: 3', is: 'different' },
    { name: 'Kubelet', own: 'v1.35.4', others: 'v1.36.2: 2, v1.35.4: 1', is: 'different' },
    { name: 'Missed events', own: '13', others: '0', is: 'different' },
    { name: 'Watched', own: '80.0 %', others: '100 %', is: 'different' },
    { name: 'Relists, 99th percentile', own: '12 s', others: '5 ms', is: 'different' },
  ]);
});

test('neighbours that nobody observed are counted and compared with nothing', () => {
  const kubelet = (others: readonly Neighbour[]) =>
    comparisons(node(), others).find(({ name }) => name === 'Missed events');
  expect(kubelet([node(), nobody])).toMatchObject({ others: '0, not observed: 1', is: 'equal' });
  expect(kubelet([nobody])).toMatchObject({ others: 'not observed: 1', is: 'unknown' });
});

test('a node that nobody observed differs from neighbours that somebody did', () => {
  const missed = differing(nobody, [node(), node()]).find(({ name }) => name === 'Missed events');
  expect(missed).toMatchObject({ own: 'not observed', others: '0' });
});

test('names that turn the text around them are shown as escapes', () => {
  const [first] = differing(node({ osImage: '\u202eevil' }), [node()]);
  expect(first?.own).toBe('\\u{202e}evil');
});
