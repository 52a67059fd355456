import { describe, expect, test } from 'vitest';
import { type FakeFigures, metricsText } from '../../../../test/support/fakeKubelet.ts';
import { parseRecord } from '../../../protocol/record.ts';
import { mono, wall } from '../../../protocol/units.ts';
import type { Scrape } from './client.ts';
import { readMetrics } from './metrics.ts';
import { type ModeChange, ModeTracker, type SavedMode } from './modeTracker.ts';
import type { ScrapeFailure } from './scrapeError.ts';
import { summarize } from './scrapeSummary.ts';

const START = mono(1_000_000);
/** The wall clock is this at the start of the monotonic one. */
const WALL = 1.75e15;
const BORN = 1.75e9 - 100;

const EVENTED: FakeFigures = { gate: 1, errors: 0, successes: 1, start: BORN };
const FALLBACK: FakeFigures = { ...EVENTED, errors: 5 };

/** A good scrape that ends at a moment in seconds; `stepped` is what the wall clock was moved by until then. */
function scrapeAt(
  seconds: number,
  figures: FakeFigures = EVENTED,
  stepped = 0,
): Extract<Scrape, { ok: true }> {
  const read = readMetrics(metricsText(figures));
  if (read === null) throw new Error('not a kubelet');
  const ended = mono(seconds * 1e6);
  const at = wall(WALL + (seconds + stepped) * 1e6);
  return { ok: true, figures: read, identity: 'Verified', started: mono(ended - 20_000), ended, wall: at };
}

const failed = (seconds: number, reason: ScrapeFailure): Scrape => ({
  ok: false,
  reason,
  message: '',
  ended: mono(seconds * 1e6),
});

const described = (changes: readonly (ModeChange | null)[]) =>
  changes.map((change) => change && `${change.from} ${change.mode} ${change.reason}`);

function taking(...scrapes: Scrape[]) {
  const tracker = new ModeTracker(START);
  return { tracker, changes: scrapes.map((scrape) => tracker.take(scrape)) };
}

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

describe('a restart of the kubelet', () => {
  const later = { start: BORN + 500 };

  test('a restart ends a fallback and is the reason', () => {
    const { changes } = taking(scrapeAt(10), scrapeAt(20, FALLBACK), scrapeAt(30, { ...EVENTED, ...later }));
    expect(described(changes)[2]).toBe('Fallback Evented KubeletRestarted');
    expect(changes[2]?.proof).toMatchObject({ kubelet_restarted: 'start_time', relists_per_second: null });
  });

  test('a counter that fell shows a restart too', () => {
    const { changes } = taking(scrapeAt(10, FALLBACK), scrapeAt(20, EVENTED));
    expect(described(changes)[1]).toBe('Fallback Evented KubeletRestarted');
    expect(changes[1]?.proof).toMatchObject({ kubelet_restarted: 'counter_fell' });
  });

  test('a step of the wall clock, which moves the start time, is no restart', () => {
    const stepped = (seconds: number, figures: FakeFigures) =>
      scrapeAt(seconds, { ...figures, start: BORN + 3600 }, 3600);
    const { changes } = taking(scrapeAt(10), stepped(20, EVENTED), stepped(30, FALLBACK));
    expect(described(changes)).toEqual(['Unknown Evented Connected', null, 'Evented Fallback StreamBroke']);
    expect(changes[2]?.proof).toMatchObject({ kubelet_restarted: null });
  });

  test('a restart into the same good mode is no change', () => {
    const { changes } = taking(scrapeAt(10), scrapeAt(20, { ...EVENTED, ...later }));
    expect(changes[1]).toBeNull();
  });

  test('a restart into the same good mode takes the reason of the new run', () => {
    const { tracker } = taking(scrapeAt(10, FALLBACK), scrapeAt(20, { ...EVENTED, ...later }));
    expect(tracker.state.reason).toBe('KubeletRestarted');
    tracker.take(scrapeAt(30, { ...EVENTED, start: BORN + 900 }));
    expect(tracker.state).toMatchObject({ reason: 'Connected', since: 20e6 });
  });

  test('a restart into a fallback again is another change', () => {
    const down = { ...FALLBACK, ...later, successes: 0 };
    const { changes } = taking(scrapeAt(10), scrapeAt(20, FALLBACK), scrapeAt(30, down), scrapeAt(40, down));
    expect(described(changes).slice(2)).toEqual(['Fallback Fallback RuntimeDownAtStart', null]);
  });

  test('a restart with the gate off is Generic; with the gate on again, GateEnabled is the reason', () => {
    const off = { gate: 0, start: BORN + 500 } as const;
    const { changes } = taking(
      scrapeAt(10),
      scrapeAt(20, off),
      scrapeAt(30, { ...EVENTED, start: BORN + 900 }),
    );
    expect(described(changes).slice(1)).toEqual([
      'Evented Generic GateDisabled',
      'Generic Evented GateEnabled',
    ]);
  });

  test('a restart with another version follows the rules of that version', () => {
    const upgraded = { ...FALLBACK, start: BORN + 500, version: 'v1.37.0' };
    const { changes } = taking(
      scrapeAt(10),
      scrapeAt(20, { ...EVENTED, ...later, version: 'v1.37.0' }),
      scrapeAt(30, upgraded),
    );
    expect(described(changes).slice(1)).toEqual([
      'Evented EventedHint KubeletRestarted',
      'EventedHint HintDisabled StreamBroke',
    ]);
  });

  test('a restart resets the rate of relists', () => {
    const generic = (relists: number): FakeFigures => ({ gate: 0, start: BORN, relists });
    const { tracker } = taking(
      scrapeAt(0, generic(10)),
      scrapeAt(40, generic(50)),
      scrapeAt(50, { ...EVENTED, start: BORN + 50, relists: 4 }),
    );
    expect(tracker.state).toMatchObject({ mode: 'Evented' });
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
