import { expect, test } from 'vitest';
import { parseRecord } from '../../protocol/record.ts';
import { mono } from '../../protocol/units.ts';
import { NodeState } from './nodeState.ts';

const START = mono(1_000_000);
const at = (seconds: number) => mono(START + seconds * 1e6);

test('says nothing before the subscription has said its first word', () => {
  const state = new NodeState(START);
  state.relistIs(true, '');
  expect(state.changed(at(1))).toBeNull();
  expect(state.stream).toBeNull();
});

test('is told at first, and then only when something in it changes', () => {
  const state = new NodeState(START);
  state.streamIs('Arming', '', '', at(1));
  const first = state.changed(at(1));
  expect(first).toMatchObject({
    t: 1e6,
    stream: { state: 'Arming', since: 1e6 },
    relist: { healthy: false },
  });
  expect(parseRecord(first)).toMatchObject({ ok: true });
  expect(state.changed(at(2))).toBeNull();
  state.relistIs(true, '');
  expect(state.changed(at(3))).toMatchObject({ t: 3e6, relist: { healthy: true, reason: '' } });
  expect(state.changed(at(4))).toBeNull();
});

test('a state lasts since it began, whatever its reason becomes', () => {
  const state = new NodeState(START);
  state.streamIs('Active', '', '', at(5));
  state.streamIs('Active', 'still', '', at(9));
  expect(state.changed(at(10))).toMatchObject({ stream: { state: 'Active', since: 5e6, reason: 'still' } });
});

test('the last error stays until there is another, so that a reader sees what broke the stream', () => {
  const state = new NodeState(START);
  state.streamIs('Interrupted', 'broken', 'UNAVAILABLE: gone', at(1));
  state.streamIs('Active', '', '', at(2));
  expect(state.changed(at(2))).toMatchObject({ stream: { state: 'Active', lastError: 'UNAVAILABLE: gone' } });
  state.streamIs('Interrupted', 'broken', 'INTERNAL', at(3));
  expect(state.changed(at(3))).toMatchObject({ stream: { lastError: 'INTERNAL' } });
});

test('the relist problem is the reason while lists fail', () => {
  const state = new NodeState(START);
  expect(state.relistProblem).toBe('no relist yet');
  state.relistIs(false, 'UNAVAILABLE');
  expect(state.relistProblem).toBe('UNAVAILABLE');
  state.relistIs(true, '');
  expect(state.relistProblem).toBeNull();
});
