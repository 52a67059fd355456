import { describe, expect, it } from 'vitest';
import { PLEG_EVENTS, PLEG_STATES, type PlegState } from '../../protocol/record.ts';
import { plegMask } from './recordWriters.ts';

const named = (old: PlegState, now: PlegState) =>
  PLEG_EVENTS.filter((_, bit) => (plegMask(old, now) & (1 << bit)) !== 0);

describe("the kubelet's table of changes (kubelet pkg/kubelet/pleg/generic.go, generateEvents)", () => {
  it('makes nothing of a state that stayed', () => {
    for (const state of PLEG_STATES) expect(named(state, state)).toEqual([]);
  });

  it('looks at the new state only, but for one that is gone', () => {
    for (const old of PLEG_STATES) {
      if (old !== 'running') expect(named(old, 'running')).toEqual(['ContainerStarted']);
      if (old !== 'exited') expect(named(old, 'exited')).toEqual(['ContainerDied']);
      if (old !== 'unknown') expect(named(old, 'unknown')).toEqual(['ContainerChanged']);
    }
  });

  it('does not announce a death twice', () => {
    expect(named('exited', 'non-existent')).toEqual(['ContainerRemoved']);
    expect(named('running', 'non-existent')).toEqual(['ContainerDied', 'ContainerRemoved']);
    expect(named('unknown', 'non-existent')).toEqual(['ContainerDied', 'ContainerRemoved']);
  });
});
