/*
 * The models of kubelets and the profiles of containerds say what test/versions/facts.ts says of the versions that `make versions` runs. That file
 * follows their sources and is checked against real ones; this test needs none, so that a wrong fact is found at once.
 */
import { describe, expect, test } from 'vitest';
import type { TriedContainerd, TriedKubelet } from '../../devtools/versions/pairs.ts';
import { profileOf } from '../../src/cri/profiles.ts';
import { fallbackConsequence } from '../../src/protocol/fallback.ts';
import { EVENT_TYPES } from '../../src/protocol/record.ts';
import { described, EVENTED, scrapeAt, taking } from '../support/modeScrapes.ts';
import { consequenceOf, KUBELETS, MODES, RUNTIMES } from '../versions/facts.ts';

describe.each(Object.keys(KUBELETS) as TriedKubelet[])('a kubelet %s', (minor) => {
  const facts = KUBELETS[minor];
  const version = `v${minor}.1`;
  const { on, givenUp } = MODES[facts.design];

  test('uses its stream up to the fourth error, and gives it up with the fifth', () => {
    const errors = [0, 1, 2, 3, 4, 5];
    const scrapes = errors.map((count, i) => scrapeAt(10 * i, { ...EVENTED, version, errors: count }));
    expect(described(taking(...scrapes).changes)).toEqual([
      `Unknown ${on} Connected`,
      ...[null, null, null, null],
      `${on} ${givenUp} StreamBroke`,
    ]);
  });

  test('does to pods of before what its version does once it has given up', () => {
    const mode = { mode: givenUp, reason: 'StreamBroke', kubeletVersion: version };
    expect(fallbackConsequence(mode)).toBe(consequenceOf(facts));
  });
});

test.each(Object.keys(RUNTIMES) as TriedContainerd[])(
  'containerd %s announces every stage, streams lists if its version does, and has a second subscriber only if both receive all',
  (minor) => {
    const facts = RUNTIMES[minor];
    const profile = profileOf({ name: 'containerd', version: `v${minor}.9` });
    expect(profile.subscription).toBe(facts.everySubscriberReceivesAll ? 'safe' : 'steals');
    expect(profile.streamingLists).toBe(facts.hasStreamingLists);
    expect([profile.sandboxEvents, profile.containerEvents]).toEqual([EVENT_TYPES, EVENT_TYPES]);
  },
);
