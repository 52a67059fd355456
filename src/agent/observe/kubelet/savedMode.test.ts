/*
 * The mode that an agent saved, and what the next agent makes of it.
 */
import { describe, expect, test } from 'vitest';
import { described, FALLBACK, failed, START, scrapeAt, WALL } from '../../../../test/support/modeScrapes.ts';
import { mono, wall } from '../../../protocol/units.ts';
import { ModeTracker, type SavedMode } from './modeTracker.ts';
import { summarize } from './scrapeSummary.ts';

describe('an agent with a saved mode', () => {
  const saved = (sameBoot: boolean): SavedMode => ({
    model: 'EventedCache',
    mode: 'Evented',
    reason: 'Connected',
    scrape: summarize(scrapeAt(10)),
    since: wall(WALL + 5e6),
    sameBoot,
  });

  test('the mode is unknown until the first good scrape, whatever the previous agent saved', () => {
    const tracker = new ModeTracker(START, saved(true));
    expect(tracker.state).toMatchObject({ mode: 'Unknown', reason: 'NotScrapedYet', since: START });
    tracker.expire(mono(20e6));
    expect(tracker.take(failed(20, 'Tls'))).toBeNull();
    expect(tracker.state).toMatchObject({
      model: 'Unknown',
      mode: 'Unknown',
      reason: 'Tls',
      streamErrors: null,
    });
    expect(tracker.expire(mono(300e6))).toBeNull();
    expect(tracker.state).toMatchObject({ mode: 'Unknown', reason: 'NotObserved' });
  });

  test('an unchanged mode is no change for the next agent if it scrapes within two minutes of the last scrape', () => {
    const tracker = new ModeTracker(START, saved(true));
    expect(tracker.take(scrapeAt(130))).toBeNull();
    expect(tracker.state).toMatchObject({ mode: 'Evented', since: 5e6 });
  });

  test('a mode that the next agent sees after two minutes is a change from Unknown', () => {
    const tracker = new ModeTracker(START, saved(true));
    tracker.expire(mono(131e6));
    expect(described([tracker.take(scrapeAt(131))])).toEqual(['Unknown Evented Connected']);
    expect(tracker.state).toMatchObject({ mode: 'Evented', since: 131e6 });
  });

  test('a change while no agent ran starts at the last scrape of the previous agent', () => {
    const tracker = new ModeTracker(START, saved(true));
    expect(tracker.take(scrapeAt(130, FALLBACK))).toMatchObject({
      from: 'Evented',
      mode: 'Fallback',
      reason: 'StreamBroke',
      notBefore: 10e6 - 20_000,
      at: 130e6,
    });
  });

  test('a change while no agent ran for long has the same bounds and reason, and is from Unknown', () => {
    const tracker = new ModeTracker(START, saved(true));
    expect(tracker.take(scrapeAt(300, FALLBACK))).toMatchObject({
      from: 'Unknown',
      mode: 'Fallback',
      reason: 'StreamBroke',
      notBefore: 10e6 - 20_000,
      at: 300e6,
    });
  });

  test('a reboot of the machine is a restart of the kubelet', () => {
    const tracker = new ModeTracker(START, saved(false));
    expect(tracker.take(scrapeAt(300, { ...FALLBACK, successes: 0 }))).toMatchObject({
      reason: 'RuntimeDownAtStart',
      proof: { kubelet_restarted: 'machine' },
    });
  });
});
