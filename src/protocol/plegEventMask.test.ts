import { describe, expect, it } from 'vitest';
import { plegEventMask } from './plegEventMask.ts';
import { PLEG_EVENTS, PLEG_STATES, type PlegState } from './record.ts';

const named = (oldState: PlegState, newState: PlegState) =>
  PLEG_EVENTS.filter((_, bit) => (plegEventMask(oldState, newState) & (1 << bit)) !== 0);

describe('PLEG events of a change (kubelet pkg/kubelet/pleg/generic.go, generateEvents)', () => {
  it('an unchanged state makes no event', () => {
    for (const state of PLEG_STATES) expect(named(state, state)).toEqual([]);
  });

  it('the new state alone decides the event, except for a container that is gone', () => {
    for (const old of PLEG_STATES) {
      if (old !== 'running') expect(named(old, 'running')).toEqual(['ContainerStarted']);
      if (old !== 'exited') expect(named(old, 'exited')).toEqual(['ContainerDied']);
      if (old !== 'unknown') expect(named(old, 'unknown')).toEqual(['ContainerChanged']);
    }
  });

  it('a container that is gone died too, unless it had exited before', () => {
    expect(named('exited', 'non-existent')).toEqual(['ContainerRemoved']);
    expect(named('running', 'non-existent')).toEqual(['ContainerDied', 'ContainerRemoved']);
    expect(named('unknown', 'non-existent')).toEqual(['ContainerDied', 'ContainerRemoved']);
  });
});
