/*
 * What is remembered: everything while it matters, nothing for ever, and never more than the cap, whatever a runtime says.
 */
import { expect, test } from 'vitest';
import { CONTAINERD, identityOf, RecognisedItems, seconds } from '../../../test/engine/timeline.ts';
import type { ListAnswer, ReceivedEvent, ShownState } from '../../protocol/observation.ts';
import { EVENT_TYPES, type RecordOf } from '../../protocol/record.ts';
import { millis, mono } from '../../protocol/units.ts';
import { Comparison } from './comparison.ts';
import type { Emission } from './emitter.ts';

/** Ids that are followed, and as many whose events wait for a list to show them. */
const CAP = 100_000;
const MANY = 300_000;
const AN_HOUR = 3600;

/** Keeps only the gaps, and those of a finding's kind that are asked for. */
class Watched {
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
      profile: CONTAINERD,
      mintId: () => {
        this.#minted += 1;
        return String(this.#minted);
      },
    });
  }

  hear(at: number, id: string, how: Partial<ReceivedEvent> = {}): void {
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
      if (each.type === 'gap') this.gaps.push(each);
      if (each.type === 'finding') this.findings.push(each);
    };
    this.comparison.take().emissions.forEach(record);
  }
}

const many = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);

test('a flood of ids does not grow it beyond the cap; what is not followed is counted, and a gap', {
  timeout: 60_000,
}, () => {
  const watched = new Watched();
  watched.comparison.subscribed(1, seconds(0), 0n);
  for (let i = 1; i <= MANY; i += 1) watched.hear(1 + i / MANY, `c${i}`);
  expect(watched.comparison.tracked).toBeLessThanOrEqual(CAP);
  expect(watched.comparison.counters.untracked).toBe(MANY - CAP / 2);
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

test('a gap goes on while lists show what is not followed', () => {
  const watched = new Watched();
  const ids = many('c', CAP / 2 + 1);
  watched.list(0, ids);
  watched.list(5, ids);
  expect(watched.comparison.counters.untracked).toBe(2);
  expect(watched.gaps).toHaveLength(1);
});

test('no time counts as covered while ids are left out', () => {
  const watched = new Watched();
  const covered = () => watched.comparison.counters.covered;
  watched.comparison.subscribed(1, seconds(0), 0n);
  watched.hear(1, 'c1');
  watched.list(2, ['c1']);
  watched.tick(3);
  const before = covered();
  watched.tick(5);
  expect(covered() - before).toBe(seconds(2));
  const tooMany = many('c', CAP / 2 + 1);
  watched.list(6, tooMany);
  watched.tick(7);
  watched.tick(20);
  expect(covered() - before).toBe(seconds(2));
  watched.list(21, ['c1']);
  watched.tick(22);
  expect(covered() - before).toBe(seconds(4));
});

test('what was listed while too many were followed was not created when it is followed at last', () => {
  const watched = new Watched();
  watched.comparison.subscribed(1, seconds(0), 0n);
  for (const id of many('c', CAP / 2)) watched.hear(1, id);
  watched.list(2, ['s1']);
  for (const at of [4, 100]) watched.tick(at);
  watched.list(990, ['s1']);
  watched.tick(1000);
  expect(watched.comparison.tracked).toBe(0);
  watched.list(1001, ['s1', 's2']);
  watched.tick(1100);
  const missed = watched.findings.filter(
    ({ kind: verdict, containerId: id }) => verdict === 'missed' && id?.startsWith('s'),
  );
  expect(missed.map(({ containerId: id, eventType: type }) => `${id} ${type}`)).toEqual([
    's2 CREATED',
    's2 STARTED',
  ]);
});

test.each(['running', 'unknown'] as const)(
  'what no list shows for a quarter of an hour is forgotten, although none is whole; what is %s is not',
  (state) => {
    const watched = new Watched();
    watched.list(0, ['s1', 'c1'], 'running', true);
    for (const at of [5, 500, 901]) watched.list(at, ['s1'], state, false);
    watched.tick(902);
    expect(watched.comparison.tracked).toBe(1);
  },
);

test('what no list shows is remembered for a quarter of an hour after it was last heard of', () => {
  const watched = new Watched();
  watched.comparison.subscribed(1, seconds(0), 0n);
  watched.hear(10, 'c1');
  watched.list(20, []);
  watched.hear(800, 'c1');
  watched.list(805, []);
  watched.tick(1600);
  expect(watched.comparison.tracked).toBe(1);
  watched.tick(1800);
  expect(watched.comparison.tracked).toBe(0);
});

test('so is an event of an id that no list has shown yet, until one does', () => {
  const watched = new Watched();
  watched.comparison.subscribed(1, seconds(0), 0n);
  for (const at of [10, 800]) watched.hear(at, 's1', { object: null });
  watched.tick(1600);
  expect(watched.comparison.tracked).toBe(1);
  watched.tick(1800);
  expect(watched.comparison.tracked).toBe(0);
  watched.hear(1801, 's1', { object: null });
  watched.list(1802, ['s1']);
  expect(watched.comparison.tracked).toBe(1);
});

test('what was running when lists began to fail is not forgotten', () => {
  const watched = new Watched();
  watched.list(0, ['s1', 'c1']);
  watched.tick(AN_HOUR);
  expect(watched.comparison.tracked).toBe(2);
});

test('of one name only the newest are held against each other', () => {
  const watched = new Watched();
  const suffixes = many('x', 20_000);
  const ids = suffixes.map((suffix) => `c1${suffix.replace(/\d/g, (n) => 'abcdefghij'[Number(n)] ?? '')}`);
  watched.list(0, ids);
  watched.list(5, ids);
  expect(watched.findings.filter(({ kind }) => kind === 'duplicate_container')).toHaveLength(4950);
});
