import { expect, test } from 'vitest';
import { parseRecord } from '../../protocol/record.ts';
import { mono } from '../../protocol/units.ts';
import { NodeState } from './nodeState.ts';

const START = mono(1_000_000);
const at = (seconds: number) => mono(START + seconds * 1e6);

test('no state is reported before the subscription has one', () => {
  const state = new NodeState(START);
  state.setRelist(true, '');
  expect(state.takeChange(at(1))).toBeNull();
  expect(state.stream).toBeNull();
});

test('the state is reported once, and then only when it changes', () => {
  const state = new NodeState(START);
  state.setStream('Arming', '', '', at(1));
  const first = state.takeChange(at(1));
  expect(first).toMatchObject({
    t: 1e6,
    stream: { state: 'Arming', since: 1e6 },
    relist: { healthy: false },
  });
  expect(parseRecord(first)).toMatchObject({ ok: true });
  expect(state.takeChange(at(2))).toBeNull();
  state.setRelist(true, '');
  expect(state.takeChange(at(3))).toMatchObject({ t: 3e6, relist: { healthy: true, reason: '' } });
  expect(state.takeChange(at(4))).toBeNull();
});

test('another reason does not change since when a stream state lasts', () => {
  const state = new NodeState(START);
  state.setStream('Active', '', '', at(5));
  state.setStream('Active', 'still', '', at(9));
  expect(state.takeChange(at(10))).toMatchObject({
    stream: { state: 'Active', since: 5e6, reason: 'still' },
  });
});

test('the last error stays until there is another', () => {
  const state = new NodeState(START);
  state.setStream('Interrupted', 'broken', 'UNAVAILABLE: gone', at(1));
  state.setStream('Active', '', '', at(2));
  expect(state.takeChange(at(2))).toMatchObject({
    stream: { state: 'Active', lastError: 'UNAVAILABLE: gone' },
  });
  state.setStream('Interrupted', 'broken', 'INTERNAL', at(3));
  expect(state.takeChange(at(3))).toMatchObject({ stream: { lastError: 'INTERNAL' } });
});

test('the relist error is the reason while lists fail', () => {
  const state = new NodeState(START);
  expect(state.relistError).toBe('no relist yet');
  state.setRelist(false, 'UNAVAILABLE');
  expect(state.relistError).toBe('UNAVAILABLE');
  state.setRelist(true, '');
  expect(state.relistError).toBeNull();
});

test("the kubelet's identity is reported while its mode is observed", () => {
  const state = new NodeState(START);
  state.setStream('Active', '', '', at(1));
  state.setKubeletIdentity('Unverified');
  const mode = { model: 'GenericOnly', mode: 'Generic', reason: 'GateDisabled', since: at(1) } as const;
  state.setMode({ ...mode, streamErrors: null, scrapeError: null });
  const observed = state.takeChange(at(2));
  expect(observed).toMatchObject({ kubeletIdentity: 'Unverified' });
  expect(parseRecord(observed)).toMatchObject({ ok: true });
  state.setKubeletIdentity('Verified');
  expect(state.takeChange(at(3))).toMatchObject({ kubeletIdentity: 'Verified' });
  const unknown = { model: 'Unknown', mode: 'Unknown', reason: 'NotObserved', since: at(4) } as const;
  for (const scrapeError of [null, 'Tls'] as const) {
    state.setMode({ ...unknown, streamErrors: null, scrapeError });
    expect(state.takeChange(at(4))).not.toHaveProperty('kubeletIdentity');
  }
});

test("the watch of the kubelet's pods is reported when it changes, and not at all where it is switched off", () => {
  const state = new NodeState(START);
  state.setStream('Active', '', '', at(1));
  expect(state.takeChange(at(1))).not.toHaveProperty('podsApi');
  state.setPodsApi({ state: 'Absent', reason: 'no_socket' });
  const absent = state.takeChange(at(2));
  expect(absent).toMatchObject({ podsApi: { state: 'Absent', reason: 'no_socket' } });
  expect(parseRecord(absent)).toMatchObject({ ok: true });
  state.setPodsApi({ state: 'Absent', reason: 'no_socket' });
  expect(state.takeChange(at(3))).toBeNull();
});
