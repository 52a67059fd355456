import { describe, expect, it } from 'vitest';
import { SenderTurns } from './senderTurns.ts';

/** Ids of this many inputs of a sender. */
const of = (sender: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${sender}.${n}`);
/** An id of each of so many senders that nobody knows. */
const crowd = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${name}${n}.0`);

describe('turns of senders', () => {
  it('no more inputs are chosen than asked for, and each of them once', () => {
    const turns = new SenderTurns();
    const ids = [...of('a', 3), ...of('b', 2)];
    expect(turns.choose(ids, 4)).toHaveLength(4);
    expect(turns.choose(ids, 0)).toEqual([]);
    expect(turns.choose([], 4)).toEqual([]);
    expect(turns.choose(ids, 9).sort()).toEqual(ids);
  });

  it('each sender has one turn before any has a second, however many inputs one of them has', () => {
    const ids = [...of('flood', 1_000), ...of('a', 2), ...of('b', 1)];
    expect(new SenderTurns().choose(ids, 6)).toEqual(['flood.0', 'a.0', 'b.0', 'flood.1', 'a.1', 'flood.2']);
  });

  it('a sender that had no turn is first the next time', () => {
    const turns = new SenderTurns();
    const ids = [...of('a', 9), ...of('b', 9), ...of('c', 9)];
    expect(turns.choose(ids, 2)).toEqual(['a.0', 'b.0']);
    expect(turns.choose(ids, 2)).toEqual(['c.0', 'a.0']);
    expect(turns.choose(ids, 2)).toEqual(['b.0', 'c.0']);
  });

  it('a known sender is before every sender that came later, however many they are and wherever its input is found', () => {
    const turns = new SenderTurns();
    turns.choose(['known.0'], 1);
    for (const name of ['x', 'y', 'z'])
      expect(turns.choose([...crowd(name, 1_000), 'known.1'], 2)[0]).toBe('known.1');
  });

  it('a new sender waits for one turn of each sender that came before it, and no longer', () => {
    const turns = new SenderTurns();
    const flood = crowd('x', 100);
    turns.choose(flood, 100);
    const waits = [...flood, 'new.0'];
    const first = Array.from({ length: 101 }, () => turns.choose(waits, 1)[0]);
    expect(first.indexOf('new.0')).toBe(100);
  });

  it('ids without a dot all have one sender', () => {
    expect(new SenderTurns().choose(['x', 'y', 'a.0', ''], 2)).toEqual(['x', 'a.0']);
  });

  it('beyond 10,000 senders, those of which nothing waits are forgotten', () => {
    const turns = new SenderTurns();
    turns.choose(['known.0'], 1);
    turns.choose(crowd('x', 9_999), 1);
    expect(turns.choose(['new.0', 'known.1'], 1)).toEqual(['known.1']);
    turns.choose(crowd('y', 10_001), 1);
    expect(turns.choose(['newer.0', 'known.2'], 1)).toEqual(['newer.0']);
  });
});
