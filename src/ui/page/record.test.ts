import { expect, test } from 'vitest';
import type { PageRecord } from '../api.ts';
import { VERSIONS } from './place.ts';
import { firstPlace, sourceOf, within } from './record.ts';

const at = (minute: number) => Date.UTC(2026, 10, 22, 3, minute);
const RECORD = {
  shows: 'timeline',
  timeline: { cluster: 'c', node: 'n', from: '2026-11-22T03:00:00Z', to: '2026-11-22T03:10:00Z' },
  findings: [{ id: 'known' }],
} as unknown as PageRecord;
const node = (from: number, to: number) =>
  ({ view: 'node', cluster: 'c', node: 'n', period: { from: at(from), to: at(to) }, only: '' }) as const;

test('a record begins with what it was written for', () => {
  expect(firstPlace(RECORD)).toEqual(node(0, 10));
  expect(firstPlace({ ...RECORD, shows: 'finding' })).toMatchObject({ view: 'finding', id: 'known' });
});

test('nothing outside of the period of a record is shown as if nothing had happened there', () => {
  expect(within(RECORD, node(2, 4))).toEqual(node(2, 4));
  expect(within(RECORD, node(8, 12))).toEqual(node(6, 10));
  expect(within(RECORD, node(-30, 60))).toEqual(node(0, 10));
  expect(within(RECORD, VERSIONS)).toEqual(node(0, 10));
});

test('a finding that is not in the record is a problem that says where it is', async () => {
  const { get } = sourceOf(RECORD);
  const { signal } = new AbortController();
  await expect(get('api/finding?id=known', signal)).resolves.toEqual({ id: 'known' });
  await expect(get('api/finding?id=other', signal)).rejects.toMatchObject({
    problem: { message: 'This file does not have that finding.', cure: expect.stringContaining('other') },
  });
});
