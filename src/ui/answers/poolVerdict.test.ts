import { expect, test } from 'vitest';
import { poolVerdict } from './poolVerdict.ts';

const safe = (highPerMillion: number) => ({ verdict: 'safe', reason: 'at most', highPerMillion }) as const;
const unsafe = (reason: string) => ({ verdict: 'unsafe', reason, highPerMillion: null }) as const;
const unknown = (reason: string) => ({ verdict: 'unknown', reason, highPerMillion: null }) as const;

test('a pool whose every node is safe is safe, by the highest rate of its nodes', () => {
  expect(poolVerdict([safe(200), safe(812.4)], 0)).toEqual({
    verdict: 'safe',
    sentence:
      'Safe for Evented PLEG: on each of 2 nodes at most 812 of a million events are missed, with 95 % confidence.',
  });
});

test('one unsafe node makes a pool unsafe, whatever is known of the others', () => {
  const { verdict, sentence } = poolVerdict(
    [safe(1), unsafe('its kubelet fell back once'), unknown('no agent reported')],
    7,
  );
  expect([verdict, sentence]).toEqual([
    'unsafe',
    'Not safe for Evented PLEG: 1 of the 3 nodes that were looked at is unsafe, because its kubelet fell back once.',
  ]);
});

test('reasons that differ in their figures are one, and the commonest is named', () => {
  const missed = (n: number) => unsafe(`at least ${n} of a million events are missed`);
  expect(poolVerdict([unsafe('its kubelet fell back once'), missed(120), missed(130)], 0).sentence).toBe(
    'Not safe for Evented PLEG: 3 of 3 nodes are unsafe, 2 of them because at least 120 of a million events are missed, or about as much.',
  );
});

test('a pool with a node that nobody observed, or that was not looked at, is not known to be safe', () => {
  expect(poolVerdict([safe(1), unknown('no agent reported')], 0)).toEqual({
    verdict: 'unknown',
    sentence:
      'Nobody knows whether it is safe for Evented PLEG: too little is known of 1 of 2 nodes, because no agent reported.',
  });
  expect(poolVerdict([safe(1)], 3).sentence).toBe(
    'Nobody knows whether it is safe for Evented PLEG: too little is known of 3 of 4 nodes, 3 because they were not looked at.',
  );
  expect(poolVerdict([], 0).verdict).toBe('unknown');
});
