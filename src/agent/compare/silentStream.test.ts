/*
 * A stream that announces nothing.
 */
import { describe, expect, test } from 'vitest';
import { CONTAINERD, compare, listed, opened, received } from '../../../test/engine/timeline.ts';

describe('a silent stream', () => {
  const shown = Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`s${n}`, 'running'] as const));
  const steps = [listed(0, {}), opened(1), listed(2, {}), listed(5, shown), listed(10, shown)];

  test('a stream is silent, once, when ten transitions that it should have announced were judged', () => {
    const outcome = compare(steps, { until: 60 });
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toHaveLength(1);
    expect(outcome.stream).toBe('Silent');
    expect(outcome.missed).toEqual([]);
  });

  test('a stream is silent too where what it should have announced may have been restored', () => {
    expect(compare(steps, { until: 60, profile: { ...CONTAINERD, restores: 'unknown' } }).stream).toBe(
      'Silent',
    );
  });

  test('nine unannounced transitions do not make a stream silent', () => {
    const { s5: _, ...four } = shown;
    const nine = [listed(0, {}), opened(1), listed(2, {}), listed(5, { ...four, c1: 'created' })];
    const outcome = compare(nine, { until: 60 });
    expect(outcome.stream).toBe('Arming');
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toEqual([]);
  });

  test('a stream whose first event is merely slow is not silent', () => {
    const outcome = compare([...steps, received(20, 's1', 'CREATED', { built: 4 })], { until: 60 });
    expect(outcome.stream).toBe('Active');
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toEqual([]);
  });

  test('a silent stream is reported once, however much more is not announced', () => {
    const more = { ...shown, s6: 'running' as const, s7: 'running' as const };
    const outcome = compare([...steps, listed(15, more), listed(20, more)], { until: 90 });
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toHaveLength(1);
  });

  test('a stream that had any event is not silent', () => {
    const outcome = compare([...steps, received(20, 's0', 'STARTED', { built: 19 })], { until: 60 });
    expect(outcome.stream).toBe('Active');
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toEqual([]);
  });

  test('an event that may have happened before a stream was opened does not make it silent', () => {
    expect(
      compare([listed(0, {}), opened(1), listed(5, shown), listed(10, shown)], { until: 60 }),
    ).toMatchObject({ stream: 'Arming' });
  });

  test('a silent stream is silent no longer once an event comes', () => {
    expect(compare([...steps, received(50, 's1', 'STOPPED')], { until: 60 }).stream).toBe('Active');
  });
});
