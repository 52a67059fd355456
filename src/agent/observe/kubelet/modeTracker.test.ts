import { describe, expect, test } from 'vitest';
import type { FakeFigures } from '../../../../test/support/fakeKubelet.ts';
import {
  BORN,
  described,
  EVENTED,
  FALLBACK,
  failed,
  START,
  scrapeAt,
  taking,
  WALL,
} from '../../../../test/support/modeScrapes.ts';
import { parseRecord } from '../../../protocol/record.ts';
import { mono } from '../../../protocol/units.ts';
import { type ModeChange, ModeTracker } from './modeTracker.ts';
import type { ScrapeFailure } from './scrapeError.ts';

describe('a change of mode', () => {
  test('a change lies between the two scrapes around it, and has the figures of both', () => {
    const { changes } = taking(scrapeAt(10), scrapeAt(20), scrapeAt(30, { ...FALLBACK, relists: 19 }));
    expect(described(changes)).toEqual(['Unknown Evented Connected', null, 'Evented Fallback StreamBroke']);
    const change = changes[2];
    expect(change).toMatchObject({
      model: 'EventedCache',
      notBefore: 20e6 - 20_000,
      at: 30e6,
      proof: {
        v: 1,
        before: { at: new Date(WALL / 1000 + 20_000).toISOString(), errors: 0, successes: 1, relists: 10 },
        after: { errors: 5, successes: 1, gate: true, process_start: BORN, version: 'v1.36.3', relists: 19 },
        kubelet_restarted: null,
        relists_per_second: 0.9,
      },
    });
    const { model, mode, reason, from, notBefore, at, proof } = change ?? ({} as ModeChange);
    const record = { type: 'mode_change', t: at, notBefore, model, from, to: mode, reason, proof };
    expect(parseRecord(record)).toMatchObject({ ok: true });
  });

  test('a change shown by the first scrape is no older than the kubelet', () => {
    const { changes } = taking(scrapeAt(10, FALLBACK));
    expect(changes[0]).toMatchObject({ notBefore: 10e6 - 110e6, at: 10e6, proof: { before: null } });
  });

  test('a change is reported once, and the mode keeps its start and reason', () => {
    const { tracker, changes } = taking(
      scrapeAt(10),
      scrapeAt(20, FALLBACK),
      scrapeAt(30, FALLBACK),
      scrapeAt(40, FALLBACK),
    );
    expect(described(changes).slice(2)).toEqual([null, null]);
    expect(tracker.state).toMatchObject({
      mode: 'Fallback',
      reason: 'StreamBroke',
      since: 20e6,
      streamErrors: 5,
    });
  });

  test('a change has the rate of relists before it', () => {
    const { changes } = taking(
      scrapeAt(0, { ...EVENTED, relists: 10 }),
      scrapeAt(31, { ...EVENTED, relists: 11 }),
      scrapeAt(41, { ...FALLBACK, relists: 20 }),
    );
    expect(changes[2]?.proof).toMatchObject({ relists_per_second: 0.9 });
  });
});

describe('a failed scrape', () => {
  test('a failed scrape does not end the mode', () => {
    const { tracker, changes } = taking(
      scrapeAt(10),
      failed(20, 'Timeout'),
      failed(30, 'Unauthorized'),
      scrapeAt(40),
    );
    expect(described(changes)).toEqual(['Unknown Evented Connected', null, null, null]);
    expect(tracker.state).toMatchObject({ mode: 'Evented', reason: 'Connected', since: 10e6 });
  });

  test('a failed scrape is the reason while the mode is unknown', () => {
    const { tracker } = taking(failed(10, 'Unreachable'));
    expect(tracker.state).toMatchObject({ mode: 'Unknown', reason: 'Unreachable', since: START });
    tracker.take(failed(20, 'Forbidden'));
    expect(tracker.state.reason).toBe('Forbidden');
  });

  test('the reason of an unknown mode is that of the last scrape', () => {
    const unversioned = { ...EVENTED, version: '' };
    const { tracker, changes } = taking(
      scrapeAt(10, unversioned),
      failed(20, 'Timeout'),
      scrapeAt(30, unversioned),
    );
    expect(described(changes)).toEqual([null, null, null]);
    expect(tracker.state).toMatchObject({ mode: 'Unknown', reason: 'VersionNotReported', since: START });
  });

  test('failed scrapes neither hide a change nor narrow its bounds', () => {
    const { changes } = taking(scrapeAt(10), failed(20, 'Timeout'), scrapeAt(30, FALLBACK));
    expect(changes[2]).toMatchObject({ mode: 'Fallback', notBefore: 10e6 - 20_000, at: 30e6 });
  });
});

describe('a mode that no scrape confirms', () => {
  /** Fails every ten seconds up to a moment, as the scraper does. */
  function failing(tracker: ModeTracker, from: number, to: number, reason: ScrapeFailure = 'Tls') {
    const changes: (ModeChange | null)[] = [];
    for (let seconds = from; seconds <= to; seconds += 10) {
      changes.push(tracker.expire(mono(seconds * 1e6)), tracker.take(failed(seconds, reason)));
    }
    return changes.filter((change) => change !== null);
  }

  test('a mode lasts for two minutes without a good scrape, and is Unknown from its last good scrape on after that', () => {
    const { tracker } = taking(scrapeAt(10), scrapeAt(20));
    expect(failing(tracker, 30, 140)).toEqual([]);
    expect(tracker.state).toMatchObject({ mode: 'Evented', scrapeError: null });
    const changes = failing(tracker, 150, 400);
    expect(described(changes)).toEqual(['Evented Unknown NotObserved']);
    expect(changes[0]).toMatchObject({
      model: 'Unknown',
      notBefore: 20e6,
      at: 20e6,
      proof: { v: 1, before: { errors: 0, successes: 1 }, after: null },
    });
    expect(tracker.state).toEqual({
      model: 'Unknown',
      mode: 'Unknown',
      reason: 'NotObserved',
      since: 20e6,
      streamErrors: null,
      scrapeError: 'Tls',
    });
  });

  test('a mode that was never seen is NotObserved after two minutes, and that is no change', () => {
    const tracker = new ModeTracker(START);
    expect(failing(tracker, 10, 120)).toEqual([]);
    expect(tracker.state).toMatchObject({ reason: 'Tls', scrapeError: 'Tls' });
    expect(failing(tracker, 130, 200, 'Forbidden')).toEqual([]);
    expect(tracker.state).toMatchObject({ reason: 'NotObserved', since: START, scrapeError: 'Forbidden' });
  });

  test('a mode that is seen again after two minutes is a change from Unknown, even if it is the same', () => {
    const { tracker } = taking(scrapeAt(10), scrapeAt(20));
    expect(tracker.expire(mono(200e6))).toMatchObject({ mode: 'Unknown', at: 20e6 });
    expect(tracker.take(scrapeAt(200))).toMatchObject({
      from: 'Unknown',
      mode: 'Evented',
      notBefore: 20e6 - 20_000,
      at: 200e6,
    });
    expect(tracker.state).toMatchObject({ mode: 'Evented', since: 200e6, scrapeError: null });
  });

  test('a fallback that nobody observed is explained by the scrape before it', () => {
    const { tracker } = taking(scrapeAt(10), scrapeAt(20));
    tracker.expire(mono(400e6));
    const change = tracker.take(scrapeAt(400, FALLBACK));
    expect(described([change])).toEqual(['Unknown Fallback StreamBroke']);
    expect(change?.proof).toMatchObject({ before: { errors: 0 }, after: { errors: 5 } });
  });
});

describe('how often the kubelet relists', () => {
  const at = (seconds: number, relists: number, more: FakeFigures = EVENTED) =>
    scrapeAt(seconds, { ...more, relists });

  test('the rate of relists counts only after half a minute', () => {
    const { changes } = taking(at(0, 10), at(20, 30), at(29, 39), at(30, 40), at(40, 50));
    expect(described(changes)).toEqual([
      'Unknown Evented Connected',
      null,
      null,
      'Evented Unknown RelistRateContradicts',
      null,
    ]);
  });

  test('the rate of relists is that of the last minute, not of the whole run', () => {
    const quick = [0, 10, 20, 30].map((seconds) => at(seconds, 10 + seconds));
    const slow = [40, 50, 60, 70, 80, 90, 100].map((seconds) => at(seconds, 40));
    const { tracker } = taking(...quick, ...slow);
    expect(tracker.state.mode).toBe('Evented');
  });

  test('a kubelet 1.26 stays in Fallback while its lists hang', () => {
    const old: FakeFigures = { gate: 1, start: BORN, version: 'v1.26.9' };
    const { changes } = taking(
      ...[0, 10, 20, 30, 40].map((seconds) => at(seconds, 10 + seconds, old)),
      ...[80, 120, 160].map((seconds) => at(seconds, 50, old)),
    );
    expect(described(changes.filter((change) => change !== null))).toEqual([
      'Unknown Starting RelistRateNotKnownYet',
      'Starting Fallback RelistsOften',
    ]);
  });
});

describe('a runtime without the stream', () => {
  test('a runtime whose streams all end at once is unsupported, even if a scrape falls between the attempts', () => {
    const young = { start: 1.75e9 + 5 };
    const { changes } = taking(
      scrapeAt(10, { ...EVENTED, ...young, errors: 3, successes: 3 }),
      scrapeAt(11, { ...FALLBACK, ...young, successes: 5 }),
    );
    expect(described(changes)[1]).toBe('Evented Fallback RuntimeUnsupported');
  });

  test('a runtime with a stream that was open at a scrape is not unsupported', () => {
    const young = { start: 1.75e9 + 5 };
    const { changes } = taking(
      scrapeAt(10, { ...EVENTED, ...young }),
      scrapeAt(20, { ...FALLBACK, ...young, successes: 5 }),
    );
    expect(described(changes)[1]).toBe('Evented Fallback StreamBroke');
  });
});

describe('after 1.37', () => {
  test('after 1.37 a stream that reopens before the fifth error does not prove that the kubelet retries after the fifth', () => {
    const later = { ...EVENTED, version: 'v1.39.0' };
    const { changes } = taking(
      scrapeAt(10, later),
      scrapeAt(20, { ...later, errors: 1, successes: 2 }),
      scrapeAt(30, { ...later, errors: 5, successes: 2 }),
    );
    expect(described(changes)[2]).toBe('EventedHint Unknown RetriesNotKnown');
  });

  test('after 1.37 a stream that reopens after five errors proves that the kubelet keeps trying', () => {
    const later = { ...EVENTED, version: 'v1.39.0' };
    const { changes } = taking(
      scrapeAt(10, later),
      scrapeAt(20, { ...later, errors: 7, successes: 1 }),
      scrapeAt(30, { ...later, errors: 8, successes: 2 }),
      scrapeAt(40, { ...later, errors: 30, successes: 2 }),
    );
    expect(described(changes).slice(1)).toEqual([
      'EventedHint Unknown RetriesNotKnown',
      'Unknown EventedHint Connected',
      null,
    ]);
  });
});
