import { describe, expect, it } from 'vitest';
import { MAX_OFFSET, parseRecord } from '../../protocol/record.ts';
import { MAX_ID_LENGTH } from '../../protocol/text.ts';
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
const END = { ...EVENT, exit: { code: 7, reason: 'Error' } };
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
  ...['Completed', 'completed', 'Other', 'OOMKilled', 'seccomp killed'],
  ...[{ code: 255, reason: 'Other' }, { code: null, reason: 'Error' }, { code: 0 }, { reason: 'Error' }],
  ...[{ from: 0 }, { from: 0, to: 1 }, { from: 0, to: 0.5 }, { from: 0, to: 1, x: 0 }, { from: null, to: 1 }],
];

describe.each([
  { name: 'container_event', record: EVENT },
  { name: 'container_event with an exit', record: END },
  { name: 'relist_change', record: CHANGE },
])('a $name', ({ record }) => {
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

  it('is recognised without one of its fields only if that is the exit', () => {
    for (const field of Object.keys(record)) {
      const others = Object.entries(record).filter(([key]) => key !== field);
      expect({ field, frequent: isFrequentRecord(Object.fromEntries(others)) }).toEqual({
        field,
        frequent: field === 'exit',
      });
    }
  });
});

it('an exit with a field of another value, or without one, is recognised exactly if the schema accepts it', () => {
  const exits = ['code', 'reason', 'another'].flatMap((field) => [
    ...VALUES.map((value) => ({ ...END.exit, [field]: value })),
    Object.fromEntries(Object.entries(END.exit).filter(([key]) => key !== field)),
  ]);
  for (const exit of exits) {
    const record = { ...END, exit };
    const parsed = parseRecord(record);
    expect({ exit, frequent: isFrequentRecord(record) }).toEqual({ exit, frequent: parsed.ok });
    if (parsed.ok) expect(parsed.value).toEqual(record);
  }
});

it('no other record is recognised, and nothing that is no record', () => {
  for (const input of [...VALUES, { ...EVENT, type: 'finding_resolved' }]) {
    expect(isFrequentRecord(input)).toBe(false);
  }
});
