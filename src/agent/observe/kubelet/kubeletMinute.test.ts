import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { KUBELET_RELIST_BOUNDS_MS, parseRecord } from '../../../protocol/record.ts';
import { mono, wall } from '../../../protocol/units.ts';
import type { GoodScrape } from './gate.ts';
import { KubeletMinutes } from './kubeletMinute.ts';
import { readMetrics } from './metrics.ts';

const START_S = 1_700_000_000;

const NO_CALLS = { calls: 0, errors: 0, sum: 0 };

interface ReportedFigures {
  /** Durations of all relists so far, in milliseconds. */
  readonly relists: readonly number[];
  /** Times between them, in seconds. */
  readonly intervals?: readonly number[];
  readonly lists?: readonly number[];
  readonly listErrors?: number;
  readonly statuses?: readonly number[];
  readonly discarded?: number;
  readonly errors?: number;
  readonly start?: number;
  readonly lastSeen?: number;
  /** The gate EventedPLEG is on, in a kubelet of this version. */
  readonly gateOnIn?: string;
  /** Processor time since its start, in seconds. */
  readonly cpu?: number;
  readonly resident?: number;
}

const histogram = (name: string, labels: string, ms: readonly number[]): string[] => {
  const bounds = [...KUBELET_RELIST_BOUNDS_MS, Number.POSITIVE_INFINITY];
  const below = (bound: number) => ms.filter((one) => one <= bound).length;
  const of = (le: string) => `{${labels}le="${le}"}`;
  const only = labels === '' ? '' : `{${labels.slice(0, -1)}}`;
  return [
    ...bounds.map(
      (bound) => `${name}_bucket${of(bound === Infinity ? '+Inf' : String(bound / 1000))} ${below(bound)}`,
    ),
    `${name}_sum${only} ${ms.reduce((sum, one) => sum + one / 1000, 0)}`,
    `${name}_count${only} ${ms.length}`,
  ];
};

function goodScrape(seconds: number, reported: ReportedFigures): GoodScrape {
  const {
    relists,
    intervals = [],
    lists = [],
    discarded = 0,
    errors = 0,
    start = START_S,
    lastSeen,
  } = reported;
  const { listErrors = 0, statuses = [], cpu, resident, gateOnIn } = reported;
  const text = [
    ...histogram('kubelet_pleg_relist_duration_seconds', '', relists),
    ...histogram(
      'kubelet_pleg_relist_interval_seconds',
      '',
      intervals.map((one) => one * 1000),
    ),
    ...histogram('kubelet_runtime_operations_duration_seconds', 'operation_type="list_podsandbox",', lists),
    ...histogram(
      'kubelet_runtime_operations_duration_seconds',
      'operation_type="container_status",',
      statuses,
    ),
    `kubelet_runtime_operations_errors_total{operation_type="list_podsandbox"} ${listErrors}`,
    `kubelet_pleg_discard_events ${discarded}`,
    `kubelet_evented_pleg_connection_error_count ${errors}`,
    ...(lastSeen === undefined ? [] : [`kubelet_pleg_last_seen_seconds ${lastSeen}`]),
    ...(gateOnIn === undefined
      ? []
      : [
          'kubernetes_feature_enabled{name="EventedPLEG",stage="BETA"} 1',
          `kubernetes_build_info{git_version="${gateOnIn}"} 1`,
        ]),
    ...(cpu === undefined ? [] : [`process_cpu_seconds_total ${cpu}`]),
    ...(resident === undefined ? [] : [`process_resident_memory_bytes ${resident}`]),
    `process_start_time_seconds ${start}`,
  ].join('\n');
  const figures = readMetrics(text);
  if (figures === null) throw new Error('not a kubelet');
  const ended = mono(seconds * 1e6);
  return {
    ok: true,
    figures,
    identity: 'Verified',
    started: ended,
    ended,
    wall: wall((START_S + seconds) * 1e6),
  };
}

test('a minute is the increase since the scrape before it', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(0, { relists: [3, 3, 400], intervals: [1], lists: [1, 1], discarded: 2 }));
  const more = {
    relists: [3, 3, 400, 4, 7],
    intervals: [1, 1, 1.5],
    lists: [1, 1, 40],
    discarded: 5,
    errors: 1,
  };
  minutes.add(goodScrape(10, more));
  minutes.add(goodScrape(20, { ...more, relists: [...more.relists, 20_000] }));
  expect(minutes.take()).toEqual({
    scraped: { from: 0, to: 20e6 },
    relists: 3,
    hist: [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    intervals: 2,
    intervalSum: 2_500_000,
    lastSeenAge: null,
    discarded: 3,
    streamErrors: 1,
    listP99: expect.any(Number),
    resident: null,
    calls: expect.any(Object),
  });
});

test('the increase between the last scrape of a minute and the first of the next counts in the next', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(0, { relists: [1] }));
  minutes.take();
  minutes.add(goodScrape(10, { relists: [1, 1, 1] }));
  expect(minutes.take()).toMatchObject({ relists: 2 });
});

test('a minute without a good scrape has no figures', () => {
  const minutes = new KubeletMinutes(mono(0));
  expect(minutes.take()).toBeUndefined();
  minutes.add(goodScrape(0, { relists: [1] }));
  expect(minutes.take()).toMatchObject({ relists: 0 });
  expect(minutes.take()).toBeUndefined();
});

test('relist intervals are those of the mode in which the minute ends', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(0, { relists: [1], intervals: [300] }));
  minutes.add(goodScrape(10, { relists: [1, 1], intervals: [300, 120] }));
  minutes.modeChanged();
  minutes.add(goodScrape(20, { relists: [1, 1, 1, 1], intervals: [300, 120, 1, 1] }));
  expect(minutes.take()).toMatchObject({ relists: 3, intervals: 2, intervalSum: 2_000_000 });
});

test('a kubelet that restarted counts from zero', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(0, { relists: [1, 1, 1], discarded: 9 }));
  minutes.add(goodScrape(10, { relists: [1, 1, 1, 1, 1], discarded: 1, start: START_S + 5 }));
  expect(minutes.take()).toMatchObject({ relists: 5, discarded: 1 });
});

test('the age of the last relist is the highest of the minute; a clock that is behind makes it 0', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(60, { relists: [], lastSeen: START_S + 30 }));
  minutes.add(goodScrape(70, { relists: [], lastSeen: START_S + 69 }));
  expect(minutes.take()).toMatchObject({ lastSeenAge: 30_000_000 });
  minutes.add(goodScrape(80, { relists: [], lastSeen: START_S + 99 }));
  expect(minutes.take()).toMatchObject({ lastSeenAge: 0 });
});

test('a kubelet that has not relisted yet has no age of its last relist', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(10, { relists: [], lastSeen: 0 }));
  expect(minutes.take()).toMatchObject({ lastSeenAge: null });
});

test('with Evented PLEG, a kubelet before 1.37 does not say when it last relisted: no age, though it relists every 300 s', () => {
  const minutes = new KubeletMinutes(mono(0));
  const agesOf = (gateOnIn: string) => {
    // Between its two health checks, and after them.
    minutes.add(goodScrape(300, { relists: [], lastSeen: START_S + 1, gateOnIn }));
    minutes.add(goodScrape(310, { relists: [], lastSeen: START_S + 310, gateOnIn }));
    return minutes.take()?.lastSeenAge;
  };
  expect(['v1.26.0', 'v1.36.2', 'v1.37.0'].map(agesOf)).toEqual([null, null, 299_000_000]);
});

test('the 99th percentile of its lists lies in their bucket, and there is none without a list', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(0, { relists: [] }));
  minutes.add(
    goodScrape(10, {
      relists: [],
      lists: [...Array.from({ length: 90 }, () => 2), ...Array.from({ length: 10 }, () => 70)],
    }),
  );
  const p99 = minutes.take()?.listP99 ?? 0;
  expect(p99).toBeGreaterThan(50_000);
  expect(p99).toBeLessThanOrEqual(100_000);
  minutes.add(goodScrape(20, { relists: [], lists: Array.from({ length: 100 }, () => 2) }));
  minutes.take();
  minutes.add(goodScrape(30, { relists: [], lists: Array.from({ length: 100 }, () => 2) }));
  expect(minutes.take()).toMatchObject({ listP99: null });
});

test('call durations are summed over scrapes, and the longest list took at least its bucket or the mean', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(0, { relists: [1], lists: [1, 9_000] }));
  // There is nothing to count from, so there are no figures.
  expect(minutes.take()?.calls).toBeUndefined();
  minutes.add(goodScrape(10, { relists: [1, 700], lists: [1, 9_000, 300], statuses: [400] }));
  minutes.add(
    goodScrape(20, { relists: [1, 700, 4], lists: [1, 9_000, 300, 2, 2], statuses: [400], listErrors: 1 }),
  );
  expect(minutes.take()?.calls).toEqual({
    from: 0,
    to: 20_000_000,
    relistSum: 704_000,
    sandboxLists: { calls: 3, errors: 1, sum: 304_000 },
    containerLists: NO_CALLS,
    sandboxStatuses: NO_CALLS,
    containerStatuses: { calls: 1, errors: 0, sum: 400_000 },
    longestList: 300_000,
    cpu: null,
  });
  minutes.add(goodScrape(30, { relists: [1, 700, 4], lists: [1, 9_000, 300, 2, 2, 12_000, 2, 2] }));
  expect(minutes.take()?.calls).toMatchObject({
    from: 20_000_000,
    sandboxLists: { calls: 3 },
    longestList: 10_000_000,
  });
});

test('lists and statuses of a real kubelet are counted apart', () => {
  const scrapeOf = (file: string, seconds: number): GoodScrape => {
    const figures = readMetrics(readFileSync(new URL(`testdata/${file}`, import.meta.url), 'utf8'));
    if (figures === null) throw new Error('not a kubelet');
    const at = {
      started: mono(seconds * 1e6),
      ended: mono(seconds * 1e6),
      wall: wall((START_S + seconds) * 1e6),
    };
    return { ok: true, figures, identity: 'Verified', ...at };
  };
  const minutes = new KubeletMinutes(mono(0));
  // Its containerd was killed in between: it asked for sandboxes and got none. Earlier counts are no part of the minute.
  minutes.add(scrapeOf('1.37-hint.txt', 0));
  minutes.add(scrapeOf('1.37-disabled.txt', 30));
  expect(minutes.take()?.calls).toMatchObject({
    sandboxLists: { calls: 33, errors: 33, sum: 5_607 },
    ...{ containerLists: NO_CALLS, sandboxStatuses: NO_CALLS, containerStatuses: NO_CALLS },
  });
  // All of it, beside a kubelet that started before.
  const all = new KubeletMinutes(mono(0));
  all.add(scrapeOf('1.36-generic.txt', 0));
  all.add(scrapeOf('1.37-hint.txt', 30));
  expect(all.take()?.calls).toMatchObject({
    sandboxLists: { calls: 374, errors: 3, sum: 361_720_330 },
    containerLists: { calls: 376, errors: 1, sum: 224_278_965 },
    sandboxStatuses: { calls: 19, errors: 0, sum: 183_391 },
    containerStatuses: { calls: 44, errors: 0, sum: 354_272 },
  });
});

test("the kubelet's processor time is the increase between scrapes, its memory that of the last one", () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(0, { relists: [1], cpu: 100, resident: 7e7 }));
  minutes.add(goodScrape(10, { relists: [1], cpu: 100.25, resident: 8e7 }));
  minutes.add(goodScrape(20, { relists: [1], cpu: 100.5, resident: 9e7 }));
  expect(minutes.take()).toMatchObject({ resident: 9e7, calls: { cpu: 500_000 } });
  // It restarted.
  minutes.add(goodScrape(30, { relists: [1], cpu: 2, start: START_S + 25 }));
  expect(minutes.take()).toMatchObject({ resident: null, calls: { cpu: 2_000_000 } });
});

function recordWith(kubelet: ReturnType<KubeletMinutes['take']>) {
  const times = { t: 0, span: 0, wall: 0, decided: 0, lists: [] };
  const relists = { relists: 0, errors: 0, max: 0, hist: [], sandboxes: 0, containers: 0 };
  const sizes = { exitedSandboxes: 0, exitedContainers: 0, sandboxListBytes: 0, containerListBytes: 0 };
  const events = { expected: 0, matched: 0, unobservable: 0, covered: 0 };
  return { type: 'relist_minute', ...times, ...relists, ...sizes, ...events, kubelet };
}

test('figures too large for a record are clamped', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(0, { relists: [1] }));
  minutes.add(
    goodScrape(10, {
      relists: [1, 1e300],
      lists: [1e300],
      discarded: 1.5,
      errors: 1e18,
      cpu: 1e300,
      resident: 1e300,
    }),
  );
  expect(parseRecord(recordWith(minutes.take()))).toMatchObject({ ok: true });
});

test('a minute fits into its record', () => {
  const minutes = new KubeletMinutes(mono(0));
  minutes.add(goodScrape(0, { relists: [1] }));
  minutes.add(goodScrape(10, { relists: [1, 2.5, 11_000], intervals: [0.3, 0.1], lists: [0.7] }));
  expect(parseRecord(recordWith(minutes.take()))).toMatchObject({ ok: true });
});
