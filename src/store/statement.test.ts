/*
 * Rows are checked where they are read.
 */
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { bool, int4, int8, int8Text, textArray, timestamptz } from './schema/columns.ts';
import { epoch } from './schema/tables.ts';
import { json, nullable, present, rowOf } from './statement.ts';

const REFUSED = expect.objectContaining({ code: 'DATABASE_VALUE' });

test('a field becomes what its type says', () => {
  const row = rowOf({
    node_id: epoch.node_id,
    at: timestamptz,
    key: int8Text,
    count: int8,
    causes: textArray,
    proof: json(v.object({ v: v.number() })),
  });
  const sent = {
    ...{ node_id: 7, at: '2026-11-24 09:00:00.5+00', key: '-9223372036854775808', count: '12' },
    ...{ causes: ['pleg'], proof: { v: 1 } },
  };
  expect(row.read(sent)).toEqual({
    ...{ node_id: 7, at: '2026-11-24T09:00:00.500000Z', key: '-9223372036854775808', count: 12 },
    ...{ causes: ['pleg'], proof: { v: 1 } },
  });
});

test('null is refused where a field is not nullable', () => {
  expect(rowOf({ closed_at: epoch.closed_at }).read({ closed_at: null })).toEqual({ closed_at: null });
  expect(rowOf({ ok: nullable(bool) }).read({ ok: null })).toEqual({ ok: null });
  expect(() => rowOf({ closed_at: present(epoch.closed_at) }).read({ closed_at: null })).toThrow(REFUSED);
  expect(() => rowOf({ node_id: epoch.node_id }).read({ node_id: null })).toThrow(REFUSED);
});

test.each([
  ['a field that is missing', rowOf({ n: int4 }), {}],
  ['a text for a number', rowOf({ n: int4 }), { n: '7' }],
  ['a bigint that a number cannot hold', rowOf({ n: int8 }), { n: '9007199254740993' }],
  ['a time of another DateStyle', rowOf({ at: timestamptz }), { at: '24/11/2026 09:00:00 UTC' }],
  ['a list with another item', rowOf({ list: textArray }), { list: ['a', 1] }],
])('%s is refused', (_, row, sent) => {
  expect(() => row.read(sent)).toThrow(REFUSED);
});

test('JSON that does not have its shape is refused', () => {
  expect(() => rowOf({ proof: json(v.object({ v: v.number() })) }).read({ proof: { v: '1' } })).toThrow(
    REFUSED,
  );
});
