import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { mono, wall } from '../../../protocol/units.ts';
import { readMetrics } from './metrics.ts';
import { infer, type RunHistory } from './modeInference.ts';
import { type ScrapeSummary, summarize } from './scrapeSummary.ts';

const START_S = 1_795_199_130;
const FOLDER = new URL('./testdata/', import.meta.url);

const past = (more: Partial<RunHistory> = {}): RunHistory => ({
  relistRate: null,
  wasConnected: false,
  reconnects: false,
  gaveUp: false,
  firstSeenAge: 10,
  ...more,
});

const summary = (more: Partial<ScrapeSummary> = {}): ScrapeSummary => ({
  started: mono(0),
  ended: mono(0),
  wall: wall((START_S + 10) * 1e6),
  version: 'v1.36.2',
  gate: true,
  processStart: START_S,
  errors: 0,
  successes: 1,
  streamEnds: null,
  streamEndErrors: null,
  streamSeconds: null,
  relists: 1,
  lists: 10,
  discarded: 0,
  ...more,
});

const modeOf = (of: Partial<ScrapeSummary>, before: Partial<RunHistory> = {}): string => {
  const { model, mode, reason } = infer(summary(of), past(before));
  return `${model} ${mode} ${reason}`;
};

/** As recorded, or constructed, in a file: the only scrape of a kubelet, ten seconds after its last relist. */
function ofFile(name: string): string {
  const figures = readMetrics(readFileSync(new URL(name, FOLDER), 'utf8'));
  if (figures === null) throw new Error(`${name} is not a kubelet's`);
  const at = wall(((figures.lastSeen ?? 0) + 1) * 1e6);
  const seen = summarize({
    ok: true,
    figures,
    identity: 'Verified',
    started: mono(0),
    ended: mono(0),
    wall: at,
  });
  const age = seen.processStart === null ? null : at / 1e6 - seen.processStart;
  const { model, mode, reason } = infer(seen, past({ firstSeenAge: age }));
  return `${model} ${mode} ${reason}`;
}

const FILES: Readonly<Record<string, string>> = {
  '1.25-generic.txt': 'GenericOnly Generic NoSuchGate',
  '1.26-given-up.txt': 'EventedCache Fallback NeverConnected',
  '1.27-evented.txt': 'EventedCache Evented Connected',
  '1.28-fallback.txt': 'EventedCache Fallback StreamBroke',
  '1.29-unsupported.txt': 'EventedCache Fallback RuntimeUnsupported',
  '1.30-down.txt': 'EventedCache Fallback RuntimeDownAtStart',
  '1.31-starting.txt': 'EventedCache Starting NotConnectedYet',
  '1.32-evented.txt': 'EventedCache Evented Connected',
  '1.33-generic.txt': 'GenericOnly Generic GateDisabled',
  '1.34-fallback.txt': 'EventedCache Fallback StreamBroke',
  '1.35-generic.txt': 'GenericOnly Generic GateDisabled',
  '1.36-evented.txt': 'EventedCache Evented Connected',
  '1.36-fallback.txt': 'EventedCache Fallback StreamBroke',
  '1.36-generic.txt': 'GenericOnly Generic GateDisabled',
  '1.36-unsupported.txt': 'EventedCache Fallback RuntimeUnsupported',
  '1.37-disabled.txt': 'EventedHint HintDisabled StreamBroke',
  '1.37-hint.txt': 'EventedHint EventedHint Connected',
  '1.38-hint.txt': 'EventedHint EventedHint Connected',
  '1.38-unknown.txt': 'EventedHint Unknown RetriesNotKnown',
};

describe('the metrics in testdata', () => {
  test('the folder has exactly the files of the table, and each states whether it was recorded or constructed', () => {
    const files = readdirSync(FOLDER).filter((name) => name.endsWith('.txt'));
    expect(files.sort()).toEqual(Object.keys(FILES).sort());
    for (const file of files) {
      const [first = ''] = readFileSync(new URL(file, FOLDER), 'utf8').split('\n');
      expect(first).toMatch(/^1\.3[67]/.test(file) ? /^# recorded: / : /^# constructed: /);
    }
  });

  test.each(Object.entries(FILES))('the metrics in %s mean %s', (file, expected) => {
    expect(ofFile(file)).toBe(expected);
  });
});

describe('the version', () => {
  test('without a version the mode is unknown, unless the gate is off', () => {
    expect(modeOf({ version: null })).toBe('Unknown Unknown VersionNotReported');
    expect(modeOf({ version: null, gate: false })).toBe('GenericOnly Generic GateDisabled');
  });
});

describe('a missing metric', () => {
  test('the mode is unknown without the gate from 1.26 on, and without the connection counters from 1.27 on', () => {
    expect(modeOf({ gate: null })).toBe('Unknown Unknown GateNotReported');
    expect(modeOf({ gate: null, version: 'v1.26.0' })).toBe('Unknown Unknown GateNotReported');
    expect(modeOf({ gate: null, version: 'v1.25.9' })).toBe('GenericOnly Generic NoSuchGate');
    expect(modeOf({ errors: null })).toBe('EventedCache Unknown CounterNotReported');
    expect(modeOf({ successes: null })).toBe('EventedCache Unknown CounterNotReported');
    expect(modeOf({ version: 'v1.37.0', errors: null })).toBe('EventedHint Unknown CounterNotReported');
    expect(modeOf({ version: 'v1.26.0', relists: null })).toBe('EventedCache Unknown CounterNotReported');
  });

  test('a missing metric does not hide a fallback that another metric proves', () => {
    expect(modeOf({ errors: 5, successes: null })).toMatch(/^EventedCache Fallback /);
  });
});

describe('1.27 to 1.36', () => {
  test.each([1, 2, 3, 4])('1.27 to 1.36 is Evented after %d errors once a stream was opened', (errors) => {
    expect(modeOf({ errors, successes: 1 })).toBe('EventedCache Evented Connected');
  });

  test('1.27 to 1.36 is Starting until a stream was opened', () => {
    expect(modeOf({ errors: 3, successes: 0 })).toBe('EventedCache Starting NotConnectedYet');
  });

  test('1.27 to 1.36 is in Fallback from the fifth error on', () => {
    expect(modeOf({ errors: 5 })).toBe('EventedCache Fallback StreamBroke');
    expect(modeOf({ errors: 6 })).toBe('EventedCache Fallback StreamBroke');
  });

  test('1.27 to 1.36 is not reported as Evented while it relists once a second', () => {
    expect(modeOf({}, { relistRate: 0.95 })).toBe('EventedCache Unknown RelistRateContradicts');
    expect(modeOf({}, { relistRate: 1 / 300 })).toBe('EventedCache Evented Connected');
    // One for each of the errors it may have, in half a minute.
    expect(modeOf({ errors: 4 }, { relistRate: 5 / 30 })).toBe('EventedCache Evented Connected');
  });

  test('1.27 to 1.36 is in Fallback after the fifth error even while its relists hang', () => {
    expect(modeOf({ errors: 5 }, { relistRate: 0 })).toBe('EventedCache Fallback StreamBroke');
  });

  const five = { errors: 5, successes: 5 };
  const old = { firstSeenAge: 86_400 };
  const aDayOld = { ...five, wall: wall((START_S + 86_400) * 1e6) };

  test('a young kubelet with five errors for five streams has a runtime without the stream', () => {
    expect(modeOf(five)).toBe('EventedCache Fallback RuntimeUnsupported');
  });

  test('a fallback after a stream was seen open means that the stream broke', () => {
    expect(modeOf(five, { wasConnected: true })).toBe('EventedCache Fallback StreamBroke');
  });

  test('an old kubelet in Fallback never was Evented if it relisted once a second throughout its run', () => {
    expect(modeOf({ ...aDayOld, relists: 80_000 }, old)).toBe('EventedCache Fallback RuntimeUnsupported');
    expect(modeOf({ ...aDayOld, relists: 900 }, old)).toBe('EventedCache Fallback StreamBroke');
    expect(modeOf({ ...aDayOld, relists: 40_000 }, old)).toBe('EventedCache Fallback NotSeen');
    expect(modeOf({ ...aDayOld, relists: null }, old)).toBe('EventedCache Fallback NotSeen');
  });

  test('the reason for a fallback follows from the duration of the streams if it is reported', () => {
    expect(modeOf({ ...five, streamSeconds: 0.01 }, old)).toBe('EventedCache Fallback RuntimeUnsupported');
    expect(modeOf({ ...five, streamSeconds: 900 })).toBe('EventedCache Fallback StreamBroke');
  });
});

describe('1.26', () => {
  const version = 'v1.26.15';
  const counted = { version, errors: null, successes: null };

  test('the mode of 1.26 follows from its rate of relists', () => {
    expect(modeOf(counted)).toBe('EventedCache Starting RelistRateNotKnownYet');
    expect(modeOf(counted, { relistRate: 0.003 })).toBe('EventedCache Evented RelistsSeldom');
    expect(modeOf(counted, { relistRate: 0.97 })).toBe('EventedCache Fallback RelistsOften');
  });

  test('1.26 stays in Fallback while its relists hang', () => {
    expect(modeOf(counted, { relistRate: 0, gaveUp: true })).toBe('EventedCache Fallback RelistsOften');
  });

  test('1.26 is in Fallback after five failed stream calls if they are counted', () => {
    expect(modeOf({ ...counted, streamEndErrors: 5, streamSeconds: 80 })).toBe(
      'EventedCache Fallback StreamBroke',
    );
  });
});

describe('1.37 and later', () => {
  const at = (version: string, more: Partial<ScrapeSummary>, before: Partial<RunHistory> = {}) =>
    modeOf({ version, ...more }, before);

  test('1.37 gives hints from its first stream to its fifth error, although it relists once a second', () => {
    expect(at('v1.37.0', { errors: 0, successes: 0 })).toBe('EventedHint Starting NotConnectedYet');
    expect(at('v1.37.0', { errors: 4 }, { relistRate: 0.99 })).toBe('EventedHint EventedHint Connected');
    expect(at('v1.37.0', { errors: 5, successes: 0 })).toBe('EventedHint HintDisabled RuntimeDownAtStart');
    expect(at('v1.37.0', { errors: 5, successes: 5 })).toBe('EventedHint HintDisabled RuntimeUnsupported');
  });

  test('1.37 has disabled its hints for an unknown reason (NotSeen) if the first scrape came late', () => {
    expect(at('v1.37.0', { errors: 5, successes: 5, relists: 80_000 }, { firstSeenAge: 86_400 })).toBe(
      'EventedHint HintDisabled NotSeen',
    );
  });

  test.each(['v1.38.0', 'v1.40.1', 'v2.1.0'])(
    '%s is never reported as HintDisabled for five errors',
    (version) => {
      expect(at(version, { errors: 5, successes: 5 })).toBe('EventedHint Unknown RetriesNotKnown');
      expect(at(version, { errors: 5, successes: 0 })).toBe('EventedHint Unknown RetriesNotKnown');
      expect(at(version, { errors: 5, successes: 6 })).toBe('EventedHint EventedHint Connected');
      expect(at(version, { errors: 900, successes: 40 }, { reconnects: true })).toBe(
        'EventedHint EventedHint Connected',
      );
    },
  );
});
