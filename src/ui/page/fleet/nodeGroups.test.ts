import { expect, test } from 'vitest';
import type { FleetNode } from '../../api.ts';
import { countStates, isLossy, stateOf, usualColouring } from '../colours.ts';
import { FLEET } from '../place.ts';
import { chosenNodes, groupsOf } from './nodeGroups.ts';
import { placeOfNode } from './nodeLink.ts';

const node = (name: string, more: Partial<FleetNode> = {}): FleetNode => ({
  ...{ cluster: 'east', node: name, pool: null, agent: 'Reporting', mode: 'Evented', modeReason: null },
  ...{ modeSince: null, streamState: 'Active', streamReason: null, missed24h: 0, completeness24h: 1 },
  ...{
    incompleteReason: null,
    runtimeName: 'containerd',
    runtimeVersion: '2.1.4',
    kubeletVersion: 'v1.36.2',
  },
  ...{ agentVersion: '0.1.0', lastSeen: null },
  ...more,
});

const names = (nodes: readonly FleetNode[], by: 'cluster' | 'pool' | 'version') =>
  groupsOf(nodes, by).map((group) => group.name);

test('groups are in the order of their names, numbers by their value, and nodes without a name of the group last', () => {
  const pooled = ['p10', null, 'p9'].map((pool, n) => node(`n${n}`, { pool }));
  expect(names(pooled, 'pool')).toEqual(['p9', 'p10', 'no pool']);
});

test('pools of the same name in two clusters are two groups', () => {
  const pooled = ['east', 'west'].map((cluster) => node('n', { cluster, pool: 'p' }));
  expect(names(pooled, 'pool')).toEqual(['east / p', 'west / p']);
});

test('a group by version names runtime and kubelet', () => {
  const silent = node('b', { runtimeName: null, runtimeVersion: null, kubeletVersion: null });
  expect(names([node('a'), silent], 'version')).toEqual([
    'containerd 2.1.4, kubelet v1.36.2',
    'unknown version',
  ]);
});

test('a node whose agent is silent is grey in every colouring, whatever it last said', () => {
  const silent = node('a', { agent: 'AgentSilent', mode: 'Evented', missed24h: 7 });
  for (const colouring of ['mode', 'misses', 'completeness'] as const) {
    expect(stateOf(silent, colouring)).toMatchObject({ key: 'Unknown', tone: 'none' });
  }
});

test('misses that could not be observed are not zero misses', () => {
  const keys = [null, 0, 9, 10, 100].map((missed24h) => stateOf(node('a', { missed24h }), 'misses').key);
  expect(keys).toEqual(['Unknown', 'zero', 'some', 'tens', 'many']);
});

test('a mode of a later version is Unknown', () => {
  expect(stateOf(node('a', { mode: 'Telepathic' }), 'mode').key).toBe('Unknown');
});

test('every node is counted in one state, and states without nodes with zero', () => {
  const counts = countStates([node('a'), node('b', { mode: 'Fallback' })], 'mode');
  expect([counts.get('Evented'), counts.get('Fallback'), counts.get('Starting')]).toEqual([1, 1, 0]);
});

test('a search and a state both narrow the fleet', () => {
  const nodes = [node('a-1'), node('a-2', { mode: 'Fallback' }), node('b-1', { mode: 'Fallback' })];
  expect(
    chosenNodes(nodes, { ...FLEET, colour: 'mode', state: 'Fallback', search: ' A-' }).map(
      (each) => each.node,
    ),
  ).toEqual(['a-2']);
});

test('nodes are coloured by mode, unless no mode is known', () => {
  const unknown = node('a', { mode: 'Unknown' });
  expect(usualColouring([unknown, node('b', { agent: 'AgentSilent' })])).toBe('misses');
  expect(usualColouring([unknown, node('b')])).toBe('mode');
});

test('a node that missed events is marked, not one of which nobody knows', () => {
  const marked = [0, 1, null].map((missed24h) => isLossy(node('a', { missed24h })));
  expect(marked).toEqual([false, true, false]);
  expect(isLossy(node('a', { agent: 'AgentSilent', missed24h: 1 }))).toBe(false);
});

test('a node leads to the last hour, to the day of its misses, or to where its evidence ends', () => {
  const [now, longAgo] = ['2026-11-22T12:00:00Z', '2026-11-20T12:00:00Z'];
  const silent = node('a', { agent: 'AgentSilent', lastSeen: longAgo });
  expect(placeOfNode(node('a'), now, 'mode').period).toEqual({ last: 3600 });
  expect(placeOfNode(node('a'), now, 'misses').period).toEqual({ last: 86_400 });
  expect(placeOfNode(node('a', { missed24h: 1 }), now, 'mode').period).toEqual({ last: 86_400 });
  const end = Date.parse(longAgo) + 300_000;
  expect(placeOfNode(silent, now, 'misses').period).toEqual({ from: end - 3_600_000, to: end });
});
