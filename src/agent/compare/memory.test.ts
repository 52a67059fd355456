/*
 * Memory: everything is remembered while it matters, nothing for ever, and never more than the limit, whatever a runtime sends.
 */
import { expect, test } from 'vitest';
import { CONTAINERD, identityOf, RecognisedItems, seconds } from '../../../test/engine/timeline.ts';
import type { ListAnswer, ReceivedEvent, ShownState } from '../../protocol/observation.ts';
import { EVENT_TYPES, type RecordOf } from '../../protocol/record.ts';
import { millis, mono } from '../../protocol/units.ts';
import { Comparison } from './comparison.ts';
import type { Emission } from './emitter.ts';

/** Ids that are tracked, and as many whose events wait for a list to show them. */
const MAX_IDS = 100_000;
const MANY = 300_000;
const AN_HOUR = 3600;

/** A comparison of which only gaps of the stream and findings are kept. */
class WatchedComparison {
  readonly comparison: Comparison;
  readonly gaps: RecordOf<'gap'>[] = [];
  readonly findings: RecordOf<'finding'>[] = [];
  readonly #sandboxes = new RecognisedItems();
  readonly #containers = new RecognisedItems();
  #minted = 0;

  constructor() {
    this.comparison = new Comparison({
      epochStart: mono(0),
      overdueAfter: millis(2_000),
      missedAfter: millis(30_000),
      lateAfter: millis(1_000),
      kubeletLateAfter: millis(10_000),
      profile: CONTAINERD,
      mintId: () => {
        this.#minted += 1;
        return String(this.#minted);
      },
    });
  }

  receive(at: number, id: string, how: Partial<ReceivedEvent> = {}): void {
    this.comparison.received({
      session: 1,
      received: seconds(at),
      id,
      type: EVENT_TYPES.indexOf('CREATED'),
      createdNs: BigInt(Math.round(at * 1e9)),
      hasSandboxStatus: true,
      object: identityOf(id),
      times: null,
      others: [],
      ...how,
    });
    this.collect();
  }

  list(at: number, ids: readonly string[], state: ShownState = 'running', whole = true): void {
    const answer = (known: RecognisedItems, start: number, isSandbox: boolean): ListAnswer => {
      const items = ids
        .map((id) => ({ object: identityOf(id), state }))
        .filter(({ object }) => object.isSandbox === isSandbox);
      return { start: seconds(start), end: seconds(start + 0.01), whole, items: known.of(items) };
    };
    this.comparison.relisted({
      sandboxes: answer(this.#sandboxes, at, true),
      containers: answer(this.#containers, at + 0.01, false),
    });
    this.collect();
  }

  tick(at: number): void {
    this.comparison.drained(1, seconds(at));
    this.comparison.tick(seconds(at), Math.round(at * 1e6));
    this.collect();
  }

  collect(): void {
    const record = ({ record: each }: Emission) => {
      if (each.type === 'gap' && each.scope === 'stream') this.gaps.push(each);
      if (each.type === 'finding') this.findings.push(each);
    };
    this.comparison.take().emissions.forEach(record);
  }
}

const many = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);

test('a flood of ids cannot grow the memory beyond the limit; untracked ids are counted and reported as a gap', () => {
  const watched = new WatchedComparison();
  watched.comparison.subscribed(1, seconds(0), 0n);
  for (let i = 1; i <= MANY; i += 1) watched.receive(1 + i / MANY, `c${i}`);
  expect(watched.comparison.tracked).toBeLessThanOrEqual(MAX_IDS);
  expect(watched.comparison.counters.untracked).toBe(MANY - MAX_IDS / 2);
  expect(watched.gaps).toMatchObject([{ scope: 'stream', cause: 'too_many_ids', to: null }]);

  watched.list(3, []);
  const [begun] = watched.gaps;
  expect(watched.gaps).toMatchObject([
    { to: null },
    { gapId: begun?.gapId, from: begun?.from, to: 3_020_000 },
  ]);
  watched.tick(AN_HOUR);
  expect(watched.comparison.tracked).toBe(0);
});

test('a gap of untracked ids continues while lists show untracked ids', () => {
  const watched = new WatchedComparison();
  const ids = many('c', MAX_IDS / 2 + 1);
  watched.list(0, ids);
  watched.list(5, ids);
  expect(watched.comparison.counters.untracked).toBe(2);
  expect(watched.gaps).toHaveLength(1);
});

test('no time is covered while ids are left out', () => {
  const watched = new WatchedComparison();
  const covered = () => watched.comparison.counters.covered;
  watched.comparison.subscribed(1, seconds(0), 0n);
  watched.receive(1, 'c1');
  watched.list(2, ['c1']);
  watched.tick(3);
  const before = covered();
  watched.tick(5);
  expect(covered() - before).toBe(seconds(2));
  const tooMany = many('c', MAX_IDS / 2 + 1);
  watched.list(6, tooMany);
  watched.tick(7);
  watched.tick(20);
  expect(covered() - before).toBe(seconds(2));
  watched.list(21, ['c1']);
  watched.tick(22);
  expect(covered() - before).toBe(seconds(4));
});

test('an id that was listed while untracked has not been created when it is tracked at last', () => {
  const watched = new WatchedComparison();
  watched.comparison.subscribed(1, seconds(0), 0n);
  for (const id of many('c', MAX_IDS / 2)) watched.receive(1, id);
  watched.list(2, ['s1']);
  for (const at of [4, 100]) watched.tick(at);
  watched.list(990, ['s1']);
  watched.tick(1000);
  expect(watched.comparison.tracked).toBe(0);
  watched.list(1001, ['s1', 's2']);
  watched.tick(1100);
  const missed = watched.findings.filter(
    ({ kind, containerId }) => kind === 'missed' && containerId?.startsWith('s'),
  );
  expect(missed.map(({ containerId, eventType }) => `${containerId} ${eventType}`)).toEqual([
    's2 CREATED',
    's2 STARTED',
  ]);
});

test.each(['running', 'unknown'] as const)(
  'an id that no list shows for 15 minutes is forgotten even if no list is whole; one listed as %s is not',
  (state) => {
    const watched = new WatchedComparison();
    watched.list(0, ['s1', 'c1'], 'running', true);
    for (const at of [5, 500, 906]) watched.list(at, ['s1'], state, false);
    watched.tick(907);
    expect(watched.comparison.tracked).toBe(1);
  },
);

test('an id that no list shows is remembered for 15 minutes after its last event', () => {
  const watched = new WatchedComparison();
  watched.comparison.subscribed(1, seconds(0), 0n);
  watched.receive(10, 'c1');
  watched.list(20, []);
  watched.receive(800, 'c1');
  watched.list(805, []);
  watched.tick(1600);
  expect(watched.comparison.tracked).toBe(1);
  watched.tick(1800);
  expect(watched.comparison.tracked).toBe(0);
});

test('an event of an unlisted id is remembered for 15 minutes, or until a list shows the id', () => {
  const watched = new WatchedComparison();
  watched.comparison.subscribed(1, seconds(0), 0n);
  for (const at of [10, 800]) watched.receive(at, 's1', { object: null });
  watched.tick(1600);
  expect(watched.comparison.tracked).toBe(1);
  watched.tick(1800);
  expect(watched.comparison.tracked).toBe(0);
  watched.receive(1801, 's1', { object: null });
  watched.list(1802, ['s1']);
  expect(watched.comparison.tracked).toBe(1);
});

test('a container that was running when lists began to fail is not forgotten', () => {
  const watched = new WatchedComparison();
  watched.list(0, ['s1', 'c1']);
  watched.tick(AN_HOUR);
  expect(watched.comparison.tracked).toBe(2);
});

test('only the newest containers of one name are compared with each other', () => {
  const watched = new WatchedComparison();
  const suffixes = many('x', 20_000);
  const ids = suffixes.map((suffix) => `c1${suffix.replace(/\d/g, (n) => 'abcdefghij'[Number(n)] ?? '')}`);
  watched.list(0, ids);
  watched.list(5, ids);
  expect(watched.findings.filter(({ kind }) => kind === 'duplicate_container')).toHaveLength(4950);
});
