import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { mono, wall } from '../../../protocol/units.ts';
import { readMetrics } from './metrics.ts';
import { infer, minorOf, type RunHistory } from './modeInference.ts';
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

const look = (more: Partial<ScrapeSummary> = {}): ScrapeSummary => ({
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

const verdict = (of: Partial<ScrapeSummary>, before: Partial<RunHistory> = {}): string => {
  const { model, mode, reason } = infer(look(of), past(before));
  return `${model} ${mode} ${reason}`;
};

/** As recorded, or constructed, in a file: the only look at a kubelet, ten seconds after its last relist. */
function ofFile(name: string): string {
  const figures = readMetrics(readFileSync(new URL(name, FOLDER), 'utf8'));
  if (figures === null) throw new Error(`${name} is not a kubelet's`);
  const at = wall(((figures.lastSeen ?? 0) + 1) * 1e6);
  const seen = summarize({ ok: true, figures, started: mono(0), ended: mono(0), wall: at });
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
  test('are all here, and each says whether it was recorded', () => {
    const files = readdirSync(FOLDER).filter((name) => name.endsWith('.txt'));
    expect(files.sort()).toEqual(Object.keys(FILES).sort());
    for (const file of files) {
      const [first = ''] = readFileSync(new URL(file, FOLDER), 'utf8').split('\n');
      expect(first).toMatch(file.startsWith('1.36') ? /^# recorded: / : /^# constructed: /);
    }
  });

  test.each(Object.entries(FILES))('%s is %s', (file, expected) => {
    expect(ofFile(file)).toBe(expected);
  });
});

describe('the version', () => {
  test.each([
    ['v1.36.2', 36],
    ['v1.27.3+k3s1', 27],
    ['v1.29.1-gke.100', 29],
    ['1.31.0', 31],
    ['v2.0.1', Number.POSITIVE_INFINITY],
    ['v0.9.1', null],
    ['unknown', null],
    ['', null],
    [null, null],
  ])('%s has the minor one %s', (version, minor) => {
    expect(minorOf(version)).toBe(minor);
  });

  test('that is not told leaves the mode unknown, unless the gate is off', () => {
    expect(verdict({ version: null })).toBe('Unknown Unknown VersionNotReported');
    expect(verdict({ version: null, gate: false })).toBe('GenericOnly Generic GateDisabled');
  });
});

describe('a metric that should be there and is not', () => {
  test('leaves the mode unknown: the gate from 1.26, the connections from 1.27', () => {
    expect(verdict({ gate: null })).toBe('Unknown Unknown GateNotReported');
    expect(verdict({ gate: null, version: 'v1.26.0' })).toBe('Unknown Unknown GateNotReported');
    expect(verdict({ gate: null, version: 'v1.25.9' })).toBe('GenericOnly Generic NoSuchGate');
    expect(verdict({ errors: null })).toBe('EventedCache Unknown CounterNotReported');
    expect(verdict({ successes: null })).toBe('EventedCache Unknown CounterNotReported');
    expect(verdict({ version: 'v1.37.0', errors: null })).toBe('EventedHint Unknown CounterNotReported');
    expect(verdict({ version: 'v1.26.0', relists: null })).toBe('EventedCache Unknown CounterNotReported');
  });

  test('does not hide a fallback that another one proves', () => {
    expect(verdict({ errors: 5, successes: null })).toMatch(/^EventedCache Fallback /);
  });
});

describe('1.27 to 1.36', () => {
  test.each([1, 2, 3, 4])('is evented after %d errors, whatever became of the stream', (errors) => {
    expect(verdict({ errors, successes: 1 })).toBe('EventedCache Evented Connected');
  });

  test('is starting until a stream was opened', () => {
    expect(verdict({ errors: 3, successes: 0 })).toBe('EventedCache Starting NotConnectedYet');
  });

  test('has fallen back with the fifth error, and with more where a version counts on', () => {
    expect(verdict({ errors: 5 })).toBe('EventedCache Fallback StreamBroke');
    expect(verdict({ errors: 6 })).toBe('EventedCache Fallback StreamBroke');
  });

  test('is not believed to be evented while it relists once a second', () => {
    expect(verdict({}, { relistRate: 0.95 })).toBe('EventedCache Unknown RelistRateContradicts');
    expect(verdict({}, { relistRate: 1 / 300 })).toBe('EventedCache Evented Connected');
    // One for each of the errors it may have, in half a minute.
    expect(verdict({ errors: 4 }, { relistRate: 5 / 30 })).toBe('EventedCache Evented Connected');
  });

  test('has fallen back even while its relists hang', () => {
    expect(verdict({ errors: 5 }, { relistRate: 0 })).toBe('EventedCache Fallback StreamBroke');
  });

  const five = { errors: 5, successes: 5 };
  const old = { firstSeenAge: 86_400 };
  const aDayOld = { ...five, wall: wall((START_S + 86_400) * 1e6) };

  test('gave up five streams at once where the runtime has none, as a young kubelet tells', () => {
    expect(verdict(five)).toBe('EventedCache Fallback RuntimeUnsupported');
  });

  test('lost streams that were seen to be open, however many began again', () => {
    expect(verdict(five, { wasConnected: true })).toBe('EventedCache Fallback StreamBroke');
  });

  test('never was evented where it relisted once a second for all its life', () => {
    expect(verdict({ ...aDayOld, relists: 80_000 }, old)).toBe('EventedCache Fallback RuntimeUnsupported');
    expect(verdict({ ...aDayOld, relists: 900 }, old)).toBe('EventedCache Fallback StreamBroke');
    expect(verdict({ ...aDayOld, relists: 40_000 }, old)).toBe('EventedCache Fallback NotSeen');
    expect(verdict({ ...aDayOld, relists: null }, old)).toBe('EventedCache Fallback NotSeen');
  });

  test('tells by how long its streams lived, where it counts that', () => {
    expect(verdict({ ...five, streamSeconds: 0.01 }, old)).toBe('EventedCache Fallback RuntimeUnsupported');
    expect(verdict({ ...five, streamSeconds: 900 })).toBe('EventedCache Fallback StreamBroke');
  });
});

describe('1.26', () => {
  const version = 'v1.26.15';
  const counted = { version, errors: null, successes: null };

  test('is told by how often it relists', () => {
    expect(verdict(counted)).toBe('EventedCache Starting RelistRateNotKnownYet');
    expect(verdict(counted, { relistRate: 0.003 })).toBe('EventedCache Evented RelistsSeldom');
    expect(verdict(counted, { relistRate: 0.97 })).toBe('EventedCache Fallback RelistsOften');
  });

  test('stays in the fallback while its relists hang', () => {
    expect(verdict(counted, { relistRate: 0, gaveUp: true })).toBe('EventedCache Fallback RelistsOften');
  });

  test('tells by the errors of its stream calls, where it counts those', () => {
    expect(verdict({ ...counted, streamEndErrors: 5, streamSeconds: 80 })).toBe(
      'EventedCache Fallback StreamBroke',
    );
  });
});

describe('1.37 and later', () => {
  const at = (version: string, more: Partial<ScrapeSummary>, before: Partial<RunHistory> = {}) =>
    verdict({ version, ...more }, before);

  test('gives hints from its first stream to its fifth error, and relists once a second all the time', () => {
    expect(at('v1.37.0', { errors: 0, successes: 0 })).toBe('EventedHint Starting NotConnectedYet');
    expect(at('v1.37.0', { errors: 4 }, { relistRate: 0.99 })).toBe('EventedHint EventedHint Connected');
    expect(at('v1.37.0', { errors: 5, successes: 0 })).toBe('EventedHint HintDisabled RuntimeDownAtStart');
    expect(at('v1.37.0', { errors: 5, successes: 5 })).toBe('EventedHint HintDisabled RuntimeUnsupported');
  });

  test('was given up for a reason that nobody saw, where the first look came late', () => {
    expect(at('v1.37.0', { errors: 5, successes: 5, relists: 80_000 }, { firstSeenAge: 86_400 })).toBe(
      'EventedHint HintDisabled NotSeen',
    );
  });

  test.each(['v1.38.0', 'v1.40.1', 'v2.1.0'])(
    '%s is never said to be disabled for five errors',
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
