import { expect, test } from 'vitest';
import type { FleetNode } from '../../api.ts';
import { countStates, isHeldUp, isLossy, isWatched, keysOf, stateOf, usualColouring } from '../colours.ts';
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
  ...{ agentVersion: '0.1.0', lastSeen: null, lists: 'Listing', heldUpBy: null },
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

test('a node whose agent is silent keeps what was found of it, and is otherwise not observed', () => {
  const silent = (more: Partial<FleetNode>) => node('a', { agent: 'AgentSilent', ...more });
  const lossy = silent({ missed24h: 349, completeness24h: 0.83 });
  const keys = (['mode', 'misses', 'lists', 'completeness', 'stream'] as const).map(
    (colouring) => stateOf(lossy, colouring).key,
  );
  expect(keys).toEqual(['Unknown', 'many', 'Unknown', 'poor', 'AgentSilent']);
  expect(stateOf(silent({ missed24h: 0, completeness24h: 0.999 }), 'misses').key).toBe('Unknown');
});

test('that none is missing of the little that was watched is no good news', () => {
  const states = [1, 0.9, 0.5, null].map((completeness24h) =>
    stateOf(node('a', { completeness24h }), 'misses'),
  );
  expect(states.map(({ key, tone }) => [key, tone])).toEqual([
    ['zero', 'good'],
    ['zero', 'good'],
    ['partly', 'none'],
    ['partly', 'none'],
  ]);
});

test('a stream is watched only while it is active and its agent reports', () => {
  expect(isWatched(node('a'))).toBe(true);
  expect(isWatched(node('a', { agent: 'AgentSilent' }))).toBe(false);
  for (const streamState of ['Arming', 'Off', 'Telepathic'])
    expect(isWatched(node('a', { streamState }))).toBe(false);
  expect(stateOf(node('a', { streamState: 'Telepathic' }), 'stream')).toMatchObject({
    ...{ key: 'Unknown', tone: 'none' },
  });
});

test('a node is held up while lists hang or fail and its agent reports', () => {
  const heldUp = (['Listing', 'ListHangs', 'ListsFailing', null] as const).map((lists) =>
    isHeldUp(node('a', { lists })),
  );
  expect(heldUp).toEqual([false, true, true, false]);
  expect(isHeldUp(node('a', { agent: 'AgentSilent', lists: 'ListHangs' }))).toBe(false);
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

test('several states narrow the fleet to the nodes of each', () => {
  const nodes = ['Evented', 'Fallback', 'HintDisabled'].map((mode) => node(mode, { mode }));
  const place = { ...FLEET, colour: 'mode', state: 'Fallback,HintDisabled' } as const;
  expect(chosenNodes(nodes, place).map(({ mode }) => mode)).toEqual(['Fallback', 'HintDisabled']);
  expect(keysOf(nodes.slice(1), 'mode').join()).toBe(place.state);
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

test('a node that missed events is marked, also if its agent is silent by now, and not one of which nobody knows', () => {
  const marked = [0, 1, null].map((missed24h) => isLossy(node('a', { missed24h })));
  expect(marked).toEqual([false, true, false]);
  expect(isLossy(node('a', { agent: 'AgentSilent', missed24h: 1 }))).toBe(true);
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
