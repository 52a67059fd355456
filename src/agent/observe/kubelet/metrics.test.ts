import { describe, expect, test } from 'vitest';
import { randomFor } from '../../../../devtools/simulator/random.ts';
import { metricsText } from '../../../../test/support/fakeKubelet.ts';
import { runsOf } from '../../../../test/support/runs.ts';
import { samplesOf } from './exposition.ts';
import { readMetrics } from './metrics.ts';

/** The least that is a kubelet's answer, and some lines more. */
const kubelet = (...lines: string[]) => readMetrics(['kubelet_pleg_discard_events 0', ...lines].join('\n'));
const gate = (...lines: string[]) => kubelet(...lines)?.eventedPleg;
const EVENTED = 'kubernetes_feature_enabled{name="EventedPLEG",stage="ALPHA"}';

describe("a kubelet's answer", () => {
  test('the figures that are needed are read from an answer', () => {
    expect(readMetrics(metricsText({ gate: 1, errors: 5, successes: 3 }))).toEqual({
      eventedPleg: true,
      connectionErrors: 5,
      connectionSuccesses: 3,
      discardedEvents: 0,
      lastSeen: 1_700_000_100,
      processStart: 1.7e9,
      cpu: undefined,
      residentBytes: undefined,
      version: 'v1.36.3',
      relistDuration: {
        count: 10,
        sum: 0.25,
        buckets: [
          { le: 0.005, count: 9 },
          { le: Infinity, count: 10 },
        ],
      },
      relistInterval: { count: 10, sum: 10.5, buckets: [{ le: Infinity, count: 10 }] },
      operations: {
        list_podsandbox: { total: 20, errors: 1, duration: undefined },
        list_containers: {
          total: undefined,
          errors: undefined,
          duration: {
            count: 8,
            sum: 0.5,
            buckets: [
              { le: 0.005, count: 7 },
              { le: Infinity, count: 8 },
            ],
          },
        },
        podsandbox_status: { total: undefined, errors: undefined, duration: undefined },
        container_status: { total: undefined, errors: undefined, duration: undefined },
        get_container_events: { total: undefined, errors: undefined, duration: undefined },
      },
    });
  });

  test('its processor time and its memory are read', () => {
    expect(kubelet('process_cpu_seconds_total 12.5', 'process_resident_memory_bytes 1.2e+08')).toMatchObject({
      cpu: 12.5,
      residentBytes: 1.2e8,
    });
  });

  test('a figure that is absent is undefined, not 0', () => {
    const figures = kubelet();
    expect(figures).toMatchObject({
      eventedPleg: undefined,
      connectionErrors: undefined,
      processStart: undefined,
    });
    expect(figures?.relistDuration).toBeUndefined();
    expect(figures?.version).toBeUndefined();
  });

  test.each([
    '',
    '<html>Log in</html>',
    '{"kind":"Status"}',
    // An API server lists the kubelet's gates too, with their defaults.
    `${EVENTED} 0\nprocess_start_time_seconds 1.7e9\napiserver_request_total 7`,
    'kubelet_pleg_discard_events',
    '# kubelet_pleg_discard_events 0',
    '\0\0\0',
  ])('an answer without a figure of PLEG is refused: %j', (text) => {
    expect(readMetrics(text)).toBeNull();
  });

  test('counters are read with and without the suffix of OpenMetrics', () => {
    expect(kubelet('kubelet_evented_pleg_connection_error_count_total 4')?.connectionErrors).toBe(4);
    expect(kubelet('kubelet_evented_pleg_connection_error_count 4')?.connectionErrors).toBe(4);
    expect(kubelet('kubelet_evented_pleg_connection_success_count_total 2')?.connectionSuccesses).toBe(2);
  });

  test('a figure that is reported with contradicting values is undefined', () => {
    expect(kubelet('kubelet_pleg_discard_events 1')?.discardedEvents).toBeUndefined();
    expect(kubelet('kubelet_pleg_discard_events 0')?.discardedEvents).toBe(0);
  });

  test.each(['-1', 'NaN', '+Inf', 'x', '', '1e999'])('the value %j is ignored', (value) => {
    expect(kubelet(`process_start_time_seconds ${value}`)?.processStart).toBeUndefined();
  });

  test('the version has a bounded length', () => {
    const version = kubelet(`kubernetes_build_info{git_version="${'v'.repeat(5000)}"} 1`)?.version;
    expect(version).toHaveLength(512);
  });
});

describe('the gate', () => {
  test('the gate is read whatever its stage and the order of its labels', () => {
    expect(gate(`${EVENTED} 0`)).toBe(false);
    expect(gate(`${EVENTED} 1`)).toBe(true);
    expect(gate('kubernetes_feature_enabled{stage="",name="EventedPLEG"} 0')).toBe(false);
    expect(
      gate('kubernetes_feature_enabled { name = "EventedPLEG" , stage="BETA", } 1.0 1700000000000'),
    ).toBe(true);
  });

  test('the gate is on if any of its lines is on', () => {
    const beta = 'kubernetes_feature_enabled{name="EventedPLEG",stage="BETA"}';
    expect(gate(`${EVENTED} 0`, `${beta} 1`)).toBe(true);
    expect(gate(`${EVENTED} 0`, `${beta} 0`)).toBe(false);
  });

  test.each([
    [`${EVENTED} 2`],
    [`${EVENTED} NaN`],
    [`${EVENTED} off`],
    [`${EVENTED}`],
    ['kubernetes_feature_enabled{name="EventedPLEG"', `${EVENTED} 0`],
    ['kubernetes_feature_enabled{name="EventedPLEG",name="Other"} 1', `${EVENTED} 0`],
    ['kubernetes_feature_enabled 0'],
    ['kubernetes_feature_enabled{name="EventedPLEG2"} 0'],
  ])('the gate is unknown with %j %j', (...lines) => {
    expect(gate(...lines)).toBeUndefined();
  });

  test('broken lines of other features do not affect the gate', () => {
    expect(gate('kubernetes_feature_enabled{name="Other"} x', `${EVENTED} 0`)).toBe(false);
  });
});

describe('a histogram', () => {
  const relist = (...buckets: string[]) =>
    kubelet(
      ...buckets.map((bucket) => `kubelet_pleg_relist_duration_seconds_bucket${bucket}`),
      'kubelet_pleg_relist_duration_seconds_sum 1',
      'kubelet_pleg_relist_duration_seconds_count 3',
    )?.relistDuration;

  test('the buckets of a histogram are sorted', () => {
    const found = relist('{le="+Inf"} 3', '{le="1"} 2', '{le="0.5"} 1');
    expect(found?.buckets.map(({ le }) => le)).toEqual([0.5, 1, Number.POSITIVE_INFINITY]);
  });

  test.each([
    [],
    ['{le="1"} 3'],
    ['{le="+Inf"} 4'],
    ['{le="1"} 4', '{le="+Inf"} 3'],
    ['{le="1"} 2', '{le="1"} 1', '{le="+Inf"} 3'],
    ['{le="x"} 1', '{le="+Inf"} 3'],
    ['{le=""} 1', '{le="+Inf"} 3'],
    ['{le="1"} NaN', '{le="+Inf"} 3'],
    ['{} 1', '{le="+Inf"} 3'],
  ])('an incomplete histogram is ignored: %j %j %j', (...buckets) => {
    expect(relist(...buckets)).toBeUndefined();
  });

  test('a histogram has a bounded number of buckets', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => `{le="${i}"} 3`);
    expect(relist(...many, '{le="+Inf"} 3')).toBeUndefined();
  });
});

describe('the text format', () => {
  const read = (line: string) =>
    [...samplesOf(line, () => true)].map(({ labels, value }) => [[...labels], value]);

  test('escapes in labels are decoded', () => {
    expect(read(String.raw`m{a="b\"c\\d\ne,}"} 1`)).toEqual([[[['a', 'b"c\\d\ne,}']], 1]]);
  });

  test('timestamps, exemplars, tabs and other line endings are accepted', () => {
    expect(read('m 1 1700000000000')).toEqual([[[], 1]]);
    expect(read('m{a="b"} 1 # {trace="x"} 0.5 1.7e9')).toEqual([[[['a', 'b']], 1]]);
    expect(read('\tm\t1\r')).toEqual([[[], 1]]);
    expect(read('m{a="b"}1')).toEqual([[[['a', 'b']], 1]]);
    expect(read('m{} -Inf')).toEqual([[[], Number.NEGATIVE_INFINITY]]);
  });

  test.each([
    'm',
    'm{',
    'm{a="b" 1',
    'm{a=b} 1',
    'm 0x10',
    'm 1_000',
    'm 1 2 3',
    'm{a="b"}',
    'm{a="x",a="y"} 1',
  ])('the line %j has no value', (line) => {
    expect(read(line).map(([, value]) => value)).toEqual([null]);
  });

  test('a line that is too long is skipped', () => {
    expect(read(`m{a="${'x'.repeat(70_000)}"} 1`).map(([, value]) => value)).toEqual([null]);
  });

  test('comments and lines without a name are skipped', () => {
    expect(read('# m 1\n\n{a="b"} 1\n"m" 1\n7 1')).toEqual([]);
  });
});

describe('damaged answers', () => {
  const whole = metricsText({ gate: 1, errors: 2, successes: 3 });
  const PIECES = [
    '\n',
    '"',
    '{',
    '}',
    ' ',
    '\\',
    '#',
    'EventedPLEG',
    '1e9',
    'NaN',
    '\0',
    '\ud800',
    '_total',
    EVENTED,
  ];

  const random = randomFor('damaged answers');
  const below = (n: number) => Math.floor(random.between(0, n));

  function damaged(): string {
    let text = whole;
    for (let edits = 1 + below(4); edits > 0; edits -= 1) {
      const at = below(text.length);
      const piece = PIECES[below(PIECES.length)] ?? '';
      text = text.slice(0, at) + piece + text.slice(at + below(40));
    }
    return text;
  }

  test('damaged answers are read without an exception and without an invalid figure', () => {
    let read = 0;
    const runs = runsOf(20_000);
    for (let i = 0; i < runs; i += 1) {
      const text = damaged();
      const figures = readMetrics(text);
      if (figures === null) continue;
      read += 1;
      // Damage never switches the gate off: only an explicit line does that.
      if (figures.eventedPleg === false) expect(text).toMatch(/EventedPLEG[^\n]*\}[ \t]*[+-]?[0.]/);
      const values = [figures.connectionErrors, figures.processStart, figures.relistDuration?.sum];
      expect(values.every((value) => value === undefined || (Number.isFinite(value) && value >= 0))).toBe(
        true,
      );
    }
    expect(read).toBeGreaterThan(runs / 2);
  });
});
