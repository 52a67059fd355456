/*
 * The effect of a restart of the kubelet on its mode.
 */
import { describe, expect, test } from 'vitest';
import type { FakeFigures } from '../../../../test/support/fakeKubelet.ts';
import {
  BORN,
  described,
  EVENTED,
  FALLBACK,
  scrapeAt,
  taking,
} from '../../../../test/support/modeScrapes.ts';

describe('a restart of the kubelet', () => {
  const later = { start: BORN + 500 };

  test('a restart ends a fallback and is the reason', () => {
    const { changes } = taking(scrapeAt(10), scrapeAt(20, FALLBACK), scrapeAt(30, { ...EVENTED, ...later }));
    expect(described(changes)[2]).toBe('Fallback Evented KubeletRestarted');
    expect(changes[2]?.proof).toMatchObject({ kubelet_restarted: 'start_time', relists_per_second: null });
  });

  test('a mode that a restart brought is no older than the new run', () => {
    const { changes } = taking(scrapeAt(10, FALLBACK), scrapeAt(30, { ...EVENTED, start: BORN + 124 }));
    expect(changes[1]).toMatchObject({ from: 'Fallback', mode: 'Evented', notBefore: 24e6, at: 30e6 });
  });

  test('where the kubelet does not say when it restarted, the mode changed after the scrape before', () => {
    const { changes } = taking(scrapeAt(10, FALLBACK), scrapeAt(30, EVENTED));
    expect(changes[1]).toMatchObject({ mode: 'Evented', notBefore: 10e6 - 20_000, at: 30e6 });
  });

  test('a counter that fell shows a restart too', () => {
    const { changes } = taking(scrapeAt(10, FALLBACK), scrapeAt(20, EVENTED));
    expect(described(changes)[1]).toBe('Fallback Evented KubeletRestarted');
    expect(changes[1]?.proof).toMatchObject({ kubelet_restarted: 'counter_fell' });
  });

  test('a step of the wall clock, which moves the start time, is no restart', () => {
    const stepped = (seconds: number, figures: FakeFigures) =>
      scrapeAt(seconds, { ...figures, start: BORN + 3600 }, 3600);
    const { changes } = taking(scrapeAt(10), stepped(20, EVENTED), stepped(30, FALLBACK));
    expect(described(changes)).toEqual(['Unknown Evented Connected', null, 'Evented Fallback StreamBroke']);
    expect(changes[2]?.proof).toMatchObject({ kubelet_restarted: null });
  });

  test('a restart into the same good mode is no change', () => {
    const { changes } = taking(scrapeAt(10), scrapeAt(20, { ...EVENTED, ...later }));
    expect(changes[1]).toBeNull();
  });

  test('a restart into the same good mode takes the reason of the new run', () => {
    const { tracker } = taking(scrapeAt(10, FALLBACK), scrapeAt(20, { ...EVENTED, ...later }));
    expect(tracker.state.reason).toBe('KubeletRestarted');
    tracker.take(scrapeAt(30, { ...EVENTED, start: BORN + 900 }));
    expect(tracker.state).toMatchObject({ reason: 'Connected', since: 20e6 });
  });

  test('a restart into a fallback again is another change', () => {
    const down = { ...FALLBACK, ...later, successes: 0 };
    const { changes } = taking(scrapeAt(10), scrapeAt(20, FALLBACK), scrapeAt(30, down), scrapeAt(40, down));
    expect(described(changes).slice(2)).toEqual(['Fallback Fallback RuntimeDownAtStart', null]);
  });

  test('a restart with the gate off is Generic; with the gate on again, GateEnabled is the reason', () => {
    const off = { gate: 0, start: BORN + 500 } as const;
    const { changes } = taking(
      scrapeAt(10),
      scrapeAt(20, off),
      scrapeAt(30, { ...EVENTED, start: BORN + 900 }),
    );
    expect(described(changes).slice(1)).toEqual([
      'Evented Generic GateDisabled',
      'Generic Evented GateEnabled',
    ]);
  });

  test('a restart with another version follows the rules of that version', () => {
    const upgraded = { ...FALLBACK, start: BORN + 500, version: 'v1.37.0' };
    const { changes } = taking(
      scrapeAt(10),
      scrapeAt(20, { ...EVENTED, ...later, version: 'v1.37.0' }),
      scrapeAt(30, upgraded),
    );
    expect(described(changes).slice(1)).toEqual([
      'Evented EventedHint KubeletRestarted',
      'EventedHint HintDisabled StreamBroke',
    ]);
  });

  test('a restart resets the rate of relists', () => {
    const generic = (relists: number): FakeFigures => ({ gate: 0, start: BORN, relists });
    const { tracker } = taking(
      scrapeAt(0, generic(10)),
      scrapeAt(40, generic(50)),
      scrapeAt(50, { ...EVENTED, start: BORN + 50, relists: 4 }),
    );
    expect(tracker.state).toMatchObject({ mode: 'Evented' });
  });
});
