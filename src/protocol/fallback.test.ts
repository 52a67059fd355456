import { describe, expect, test } from 'vitest';
import { CONSEQUENCES, FALLBACK_CONSEQUENCES, fallbackConsequence, minorOf } from './fallback.ts';
import { MODES } from './record.ts';

const of = (mode: string, kubeletVersion: string | null, reason = 'StreamBroke') =>
  fallbackConsequence({ mode, reason, kubeletVersion });

describe('the consequence of a fallback', () => {
  test.each([
    ['Fallback', 'v1.26.15', 'wrong_until_restart'],
    ['Fallback', 'v1.30.14', 'wrong_until_restart'],
    ['Fallback', 'v1.31.9-eks-1a2b3c', 'wrong_until_restart'],
    ['Fallback', 'v1.32.0', 'slower'],
    ['Fallback', 'v1.36.3', 'slower'],
    ['HintDisabled', 'v1.37.2', 'hint_lost'],
    ['HintDisabled', 'v1.38.0', 'unknown'],
    ['HintDisabled', 'v1.36.3', 'unknown'],
    ['Fallback', 'v1.25.16', 'unknown'],
    ['Fallback', 'v1.37.2', 'unknown'],
    ['Fallback', 'v2.0.0', 'unknown'],
    ['Fallback', 'of a vendor', 'unknown'],
    ['Fallback', null, 'unknown'],
  ])('in mode %s of kubelet %s is %s', (mode, version, expected) => {
    expect(of(mode, version)).toBe(expected);
  });

  test.each(['RuntimeUnsupported', 'RuntimeDownAtStart', 'NeverConnected'])(
    'before any event came (%s) is slower, because no pod was written by an event',
    (reason) => {
      expect(of('Fallback', 'v1.30.14', reason)).toBe('slower');
    },
  );

  test('without the proof that no event came is wrong_until_restart up to 1.31', () => {
    for (const reason of ['NotSeen', 'RelistsOften', ''])
      expect(of('Fallback', 'v1.30.14', reason)).toBe('wrong_until_restart');
  });

  test('is nothing in every mode that is no fallback', () => {
    for (const mode of MODES.filter((each) => each !== 'Fallback' && each !== 'HintDisabled'))
      expect(of(mode, 'v1.30.14')).toBeNull();
  });

  test('is said in at most 200 characters', () => {
    for (const each of FALLBACK_CONSEQUENCES) expect(CONSEQUENCES[each].length).toBeLessThanOrEqual(200);
  });
});

describe('the version of a kubelet', () => {
  test.each([
    ['v1.36.2', 36],
    ['v1.27.3+k3s1', 27],
    ['v1.29.1-gke.100', 29],
    ['1.31.0', 31],
    ['v2.0.1', Number.POSITIVE_INFINITY],
    ['v0.9.1', null],
    ['unknown', null],
    ['', null],
    [null, null],
  ])('%s has the minor version %s', (version, minor) => {
    expect(minorOf(version)).toBe(minor);
  });
});
