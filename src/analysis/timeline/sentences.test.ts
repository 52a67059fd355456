import { expect, test } from 'vitest';
import type { TimelineEntry } from './entry.ts';
import { sentenceOf } from './sentences.ts';

const finding = (what: string, detail: string): TimelineEntry => ({
  ...{ at: '2026-11-20T10:00:00.000000Z', until: null, kind: 'finding', what, detail },
  ...{ pod: 'shop/cart', container: 'app', container_id: 'ab12', epoch: null, seq: null },
});

test('a resolved miss is called overdue', () => {
  const missed = 'sequence, found 2026-11-20 10:00:35+00';
  expect(sentenceOf(finding('missed STOPPED', missed))).toMatch(/^missed STOPPED: shop\/cart app/);
  const resolved = `${missed}, resolved 2026-11-20 10:01:00+00`;
  expect(sentenceOf(finding('missed STOPPED', resolved))).toMatch(/^overdue STOPPED: shop\/cart app/);
});

test('a start that failed is not said to be something that the runtime never announces', () => {
  expect(sentenceOf(finding('unannounced STOPPED', 'failed_start, found'))).toContain(
    '(this runtime does not announce a start that failed)',
  );
  expect(sentenceOf(finding('unannounced CREATED', 'never_sent, found'))).toContain(
    '(this runtime never announces it)',
  );
});
