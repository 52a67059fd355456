import { describe, expect, it } from 'vitest';
import { MAX_ID_LENGTH, MAX_OFFSET, parseRecord } from '../../protocol/record.ts';
import { isFrequentRecord } from './frequentRecords.ts';

const EVENT = {
  type: 'container_event',
  t: 5,
  containerId: 'a'.repeat(64),
  eventType: 2,
  createdNs: '1790000000123456789',
  isSandbox: false,
  replayed: false,
  hasSandboxStatus: true,
};
const CHANGE = {
  type: 'relist_change',
  t: 5,
  containerId: 'a'.repeat(64),
  isSandbox: true,
  window: { from: 4, to: 5 },
  oldState: 'running',
  newState: 'exited',
};
const VALUES = [
  ...[undefined, null, true, false, [], {}, () => 0, 0n, Symbol.iterator],
  ...[0, -0, 1, -1, 0.5, 255, 256, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 2 ** 60],
  ...[MAX_OFFSET, -MAX_OFFSET, MAX_OFFSET + 1, -MAX_OFFSET - 1],
  ...['', '0', '-0', '+1', '-', '1\n', '1e3', '9'.repeat(19), '9'.repeat(20), `-${'9'.repeat(19)}`],
  ...['a', 'a\0', 'a'.repeat(MAX_ID_LENGTH), 'a'.repeat(MAX_ID_LENGTH + 1), new String('a')],
  ...['running', 'Running', 'non-existent', 'container_event', 'relist_change', 'finding'],
  ...[{ from: 0 }, { from: 0, to: 1 }, { from: 0, to: 0.5 }, { from: 0, to: 1, x: 0 }, { from: null, to: 1 }],
];

describe.each([{ record: EVENT }, { record: CHANGE }])('a $record.type', ({ record }) => {
  it('is recognised without the schema, which accepts it unchanged', () => {
    expect(isFrequentRecord(record)).toBe(true);
    expect(parseRecord(record)).toEqual({ ok: true, value: record });
  });

  it('is recognised with a field of another value exactly if the schema accepts it', () => {
    for (const field of [...Object.keys(record), 'another']) {
      for (const value of VALUES) {
        const changed = { ...record, [field]: value };
        const parsed = parseRecord(changed);
        expect({ field, value, frequent: isFrequentRecord(changed) }).toEqual({
          field,
          value,
          frequent: parsed.ok,
        });
        if (parsed.ok) expect(parsed.value).toEqual(changed);
      }
    }
  });

  it('is not recognised without one of its fields', () => {
    for (const field of Object.keys(record)) {
      const others = Object.entries(record).filter(([key]) => key !== field);
      expect({ field, frequent: isFrequentRecord(Object.fromEntries(others)) }).toEqual({
        field,
        frequent: false,
      });
    }
  });
});

it('no other record is recognised, and nothing that is no record', () => {
  for (const input of [...VALUES, { ...EVENT, type: 'finding_resolved' }]) {
    expect(isFrequentRecord(input)).toBe(false);
  }
});
