import { expect, test } from 'vitest';
import { FALLBACKS, FLEET, fragmentOf, type Place, placeOf, VERSIONS } from './place.ts';

const NO_KEY = { cluster: null, pool: null, runtimeName: null, runtimeVersion: null, kubeletVersion: null };
const from = Date.parse('2026-11-22T03:12:00.250Z');

test('every place leads to a fragment that leads back to it', () => {
  const places: readonly Place[] = [
    FLEET,
    { view: 'fleet', group: 'pool', colour: 'misses', state: 'some', search: 'a b&c#d' },
    { view: 'node', cluster: 'a/b', node: '<b>?#', period: { from, to: from + 1 }, only: 'shop/' },
    { view: 'node', cluster: 'east', node: 'n', period: { last: 60 }, only: '' },
    { view: 'finding', id: '746b41d7', cluster: 'ea?st', node: 'no/de' },
    { view: 'node', cluster: 'east', node: 'n', period: { last: 60 }, only: '', beside: true },
    {
      view: 'pool',
      key: { ...NO_KEY, by: 'pool', cluster: 'ea?st', pool: 'a&b/c' },
      period: { last: 604_800 },
    },
    { view: 'pool', key: { ...NO_KEY, by: 'version', runtimeName: 'x' }, period: { from, to: from + 1 } },
    { view: 'fallbacks', days: 90, day: '2026-11-22' },
    { view: 'unobserved', why: null },
    { view: 'unobserved', why: 'mode.NotObserved.Forbidden' },
    { ...VERSIONS, days: 30, rows: 'each' },
    { view: 'hours', days: 28 },
  ];
  for (const place of places) expect(placeOf(fragmentOf(place))).toEqual(place);
});

test('a default is not in the address', () => {
  expect(fragmentOf(FLEET)).toBe('#/fleet');
  expect(fragmentOf(VERSIONS)).toBe('#/versions');
});

test('an address that is cut off, empty or of nobody leads to the fleet', () => {
  for (const fragment of ['', '#', '#/node/east', '#/%E0%A4%A', '#/nothing/here', '#/finding/']) {
    expect(placeOf(fragment)).toEqual(FLEET);
  }
});

test('a period that ends before it begins is the last hour', () => {
  const place = placeOf('#/node/east/n?from=2026-11-22T03:13:00Z&to=2026-11-22T03:12:00Z');
  expect(place).toMatchObject({ period: { last: 3600 } });
});

test('numbers out of their bounds are replaced by the usual ones', () => {
  expect(placeOf('#/versions?days=1e9')).toEqual(VERSIONS);
  expect(placeOf('#/fallbacks?days=0&day=2026-13-01')).toEqual(FALLBACKS);
  expect(placeOf('#/node/east/n?last=-5')).toMatchObject({ period: { last: 3600 } });
});

test('a time without a zone is UTC', () => {
  for (const text of [
    '2026-11-22T03:12:00Z',
    '2026-11-22T03:12:00',
    '2026-11-22T03:12',
    '2026-11-22 03:12',
  ]) {
    const place = placeOf(`#/node/east/n?${new URLSearchParams({ from: text, to: '2026-11-23' })}`);
    expect(place).toMatchObject({ period: { from: from - 250, to: Date.parse('2026-11-23T00:00:00Z') } });
  }
});
