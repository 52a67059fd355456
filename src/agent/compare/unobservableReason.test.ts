import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { UNOBSERVABLE_CAUSES } from './unobservableReason.ts';

const page = readFileSync(new URL('../../../docs/explanation/missed-events.md', import.meta.url), 'utf8');

test('docs/explanation/missed-events.md says of each cause of an unobservable finding what it means', () => {
  const [, section = ''] = /^## Why an event is unobservable\n(.*?)(?=^## |(?![\s\S]))/ms.exec(page) ?? [];
  const entries = [...section.matchAll(/^- ((?:`\w+`(?:, )?)+): (.*)$/gm)];
  const documented = entries.flatMap(([, causes = '']) =>
    [...causes.matchAll(/`(\w+)`/g)].map(([, cause]) => cause),
  );
  expect(documented.toSorted()).toEqual(UNOBSERVABLE_CAUSES.toSorted());
  for (const [entry, , meaning = ''] of entries) expect(meaning.split(' ').length, entry).toBeGreaterThan(4);
});
