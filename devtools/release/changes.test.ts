import { expect, test } from 'vitest';
import { changesOf } from './changes.ts';

const CHANGELOG = `# Changelog

## Unreleased

- not yet

## 0.2.0

Migrate first.

- **Agent**: reads \`this\`,
  and that
- fixes it

## 0.1.0

The first one.
`;

test('the changes of a version are the list below its heading, as plain text', () => {
  expect(changesOf(CHANGELOG, '0.2.0')).toEqual(['Agent: reads this, and that', 'fixes it']);
});

test('a version without a heading has the changes that are not released', () => {
  expect(changesOf(CHANGELOG, '0.3.0')).toEqual(['not yet']);
});

test('a version without changes is refused', () => {
  expect(() => changesOf(CHANGELOG, '0.1.0')).toThrow('no list of changes of 0.1.0');
});
