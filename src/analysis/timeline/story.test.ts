import { expect, test } from 'vitest';
import type { TimelineEntry } from './entry.ts';
import { Story } from './story.ts';

const NIGHT = Date.parse('2026-11-21T22:00:00Z');

const entry = (minute: number, more: Partial<TimelineEntry>): TimelineEntry => ({
  at: new Date(NIGHT + minute * 60_000).toISOString(),
  ...{
    until: null,
    kind: 'event',
    what: 'STARTED',
    pod: 'shop/cart-1',
    container: 'app',
    container_id: 'abc',
  },
  ...{ detail: null, epoch: null, seq: null },
  ...more,
});

function linesOf(entries: readonly TimelineEntry[], { limit = 1_000, every = false } = {}): string[] {
  const story = new Story(limit, every);
  for (const each of entries) story.add(each);
  return story.lines.map(({ at, text }) => `${at.slice(11, 16)} ${text()}`);
}

const pod = (minute: number) => [
  entry(minute, { pod: `shop/cart-${minute}` }),
  entry(minute, { kind: 'change', what: 'non-existent -> running', pod: `shop/cart-${minute}` }),
];

test('a quiet night is one line with the number of events, changes and pods', () => {
  const night = Array.from({ length: 480 }, (_, minute) => pod(minute)).flat();
  expect(linesOf(night)).toEqual(['22:00 480 events and 480 changes of 480 pods, until 05:59:00']);
});

test('events and changes before and after a turning point are lines of their own', () => {
  const fallback = entry(2, {
    kind: 'mode',
    what: 'Evented -> Fallback',
    detail: 'StreamBroke, slower',
    pod: null,
  });
  expect(linesOf([...pod(1), fallback, ...pod(3)])).toEqual([
    '22:01 1 event and 1 change of pod shop/cart-1, until 22:01:00',
    "22:02 the kubelet's PLEG: Evented -> Fallback (StreamBroke, it relists every second)",
    '22:03 1 event and 1 change of pod shop/cart-3, until 22:03:00',
  ]);
});

test('a finding does not end the line of the events around it', () => {
  const missed = entry(2, { kind: 'finding', what: 'missed STOPPED', detail: 'sequence' });
  expect(linesOf([...pod(1), missed, ...pod(3)])).toEqual([
    '22:01 2 events and 2 changes of pods shop/cart-1, shop/cart-3, until 22:03:00',
    '22:02 missed STOPPED: shop/cart-1 app (sequence)',
  ]);
});

test('a cause of a gap that needs it is explained, and any other text stays as it came', () => {
  const gap = (minute: number, detail: string) =>
    entry(minute, { kind: 'gap', what: 'stream', detail, pod: null, container: null, container_id: null });
  const lines = linesOf([gap(1, 'unsafe'), gap(30, 'constructor')]);
  expect(lines[0]).toContain('(unsafe: with this runtime a subscriber could harm the node)');
  expect(lines[1]).toContain('(constructor)');
});

test('a stream that breaks every minute all night makes a handful of lines, which say how often', () => {
  const night = Array.from({ length: 480 }, (_, minute) => [
    ...pod(minute),
    entry(minute, { kind: 'session', what: 'ended', detail: `UNAVAILABLE: EOF ${minute}`, pod: null }),
    entry(minute, {
      kind: 'gap',
      what: 'stream',
      detail: `broken, ${minute}`,
      pod: null,
      until: entry(minute + 1, {}).at,
    }),
    entry(minute, { kind: 'session', what: 'opened', detail: `first event ${minute}`, pod: null }),
  ]).flat();
  const lines = linesOf(night);
  expect(lines.length).toBeLessThan(20);
  for (const name of ['ends of a subscription', 'gaps (stream)', 'subscriptions']) {
    expect(lines).toContainEqual(expect.stringContaining(` … and 477 more ${name} until `));
  }
  expect(lines).toContainEqual(expect.stringMatching(/events and \d+ changes of \d+ pods, until 05:59:00$/));
});

test('the first finding of a kind that accuses nobody is shown, whatever its event', () => {
  const unobservable = (minute: number, type: string) =>
    entry(minute, { kind: 'finding', what: `unobservable ${type}` });
  const lines = linesOf([unobservable(1, 'STARTED'), unobservable(2, 'STOPPED'), unobservable(3, 'DELETED')]);
  expect(lines).toEqual([
    '22:01 unobservable STARTED (it cannot be known whether it was sent): shop/cart-1 app',
    '22:02 … and 2 more unobservable until 22:03:00, pod shop/cart-1',
  ]);
});

test('the same after a quarter of an hour without it is shown again', () => {
  const missed = (minute: number) =>
    entry(minute, { kind: 'finding', what: 'missed STOPPED', pod: `shop/cart-${minute}` });
  const lines = linesOf([...[1, 2, 3, 4, 5].map(missed), missed(60)]);
  expect(lines).toHaveLength(5);
  expect(lines[3]).toBe('22:04 … and 2 more missed STOPPED until 22:05:00, pods shop/cart-4, shop/cart-5');
  expect(lines[4]).toMatch(/^23:00 missed STOPPED/);
});

test('with --every each entry is a line', () => {
  expect(linesOf([...pod(1), ...pod(2)], { every: true })).toEqual([
    '22:01 STARTED received: shop/cart-1 app',
    '22:01 a list showed non-existent -> running: shop/cart-1 app',
    '22:02 STARTED received: shop/cart-2 app',
    '22:02 a list showed non-existent -> running: shop/cart-2 app',
  ]);
});

test('a limit keeps the first lines, and counts the entries that are left out and from when on', () => {
  const story = new Story(2, true);
  for (const each of [...pod(1), ...pod(2), ...pod(3)]) story.add(each);
  expect(story.lines).toHaveLength(2);
  expect(story.cut).toEqual({ entries: 4, from: '2026-11-21T22:02:00.000Z' });
});
