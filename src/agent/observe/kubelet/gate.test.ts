import { describe, expect, test } from 'vitest';
import { type FakeFigures, metricsText } from '../../../../test/support/fakeKubelet.ts';
import { millis, mono, wall } from '../../../protocol/units.ts';
import type { Scrape } from './client.ts';
import { FeatureGate } from './gate.ts';
import { type KubeletFigures, readMetrics } from './metrics.ts';

const WALL = 1.75e15;

/** A good scrape at a moment in seconds; `stepped` is what the wall clock was moved by until then. */
function goodScrape(
  seconds: number,
  figures: FakeFigures = {},
  stepped = 0,
  text = metricsText(figures),
): Scrape {
  const read = readMetrics(text);
  if (read === null) throw new Error('not a kubelet');
  return good(seconds, read, stepped);
}

function good(seconds: number, figures: KubeletFigures, stepped = 0): Scrape {
  const ended = mono(seconds * 1e6);
  return {
    ok: true,
    figures,
    identity: 'Verified',
    started: ended,
    ended,
    wall: wall(WALL + (seconds + stepped) * 1e6),
  };
}

const FAILED: Scrape = { ok: false, reason: 'Timeout', message: '', ended: mono(0) };

/** The known state of the gate after scrapes, at the moment of the last good one. */
function known(...scrapes: Scrape[]): string {
  const gate = new FeatureGate();
  let at = mono(0);
  for (const scrape of scrapes) {
    gate.take(scrape);
    if (scrape.ok) at = scrape.ended;
  }
  const answer = gate.status(at);
  return answer.is === 'unknown' ? answer.why : answer.is;
}

const RESTARTED = 'the kubelet was restarted';

describe('the gate', () => {
  test('the gate is unknown before the first scrape', () => {
    expect(new FeatureGate().status(mono(0))).toMatchObject({ is: 'unknown', before: null });
  });

  test('the gate is known from the start of the scrape that showed it', () => {
    const gate = new FeatureGate();
    gate.take(goodScrape(3));
    expect(gate.status(mono(4e6))).toEqual({ is: 'off', readAt: 3e6 });
    gate.take(goodScrape(13, { gate: 1 }));
    expect(gate.status(mono(14e6))).toEqual({ is: 'on', readAt: 13e6 });
  });

  test('the gate is unknown after a failed scrape, and known again after a good one', () => {
    expect(known(goodScrape(0), FAILED)).toContain('Timeout');
    expect(known(goodScrape(0), FAILED, goodScrape(20))).toBe('off');
  });

  test('the gate is unknown if the kubelet does not report it, or not its start time', () => {
    expect(
      known(goodScrape(0, {}, 0, 'kubelet_pleg_discard_events 0\nprocess_start_time_seconds 5')),
    ).toContain('the gate');
    const timeless = metricsText().replace(/process_start_time_seconds.*/, '');
    expect(known(goodScrape(0, {}, 0, timeless))).toContain('start time');
  });

  test('the gate is unknown when the last scrape is too old', () => {
    const gate = new FeatureGate();
    gate.take(goodScrape(0, { gate: 1 }));
    expect(gate.status(mono(millis(25_000)))).toMatchObject({ is: 'on' });
    expect(gate.status(mono(millis(25_001)))).toMatchObject({ is: 'unknown', before: 'on' });
  });

  test('the gate is unknown while the connection is lost, and its last state is kept', () => {
    const gate = new FeatureGate();
    gate.take(goodScrape(0, { gate: 1 }));
    gate.connectionLost();
    gate.take(FAILED);
    expect(gate.status(mono(1))).toMatchObject({ is: 'unknown', before: 'on' });
  });
});

describe('another kubelet run', () => {
  test('the scrape that shows another run proves nothing, the next one does', () => {
    const restarted = goodScrape(10, { start: 1.7e9 + 500 });
    expect(known(goodScrape(0), restarted)).toBe(RESTARTED);
    expect(known(goodScrape(0), restarted, goodScrape(20, { start: 1.7e9 + 500 }))).toBe('off');
  });

  test('another run is detected after failed scrapes too', () => {
    expect(known(goodScrape(0), FAILED, FAILED, goodScrape(30, { start: 1.7e9 + 20 }))).toBe(RESTARTED);
  });

  test.each([
    [1.9, 0, 'off'],
    [-1.9, 0, 'off'],
    [2.1, 0, RESTARTED],
    [-2.1, 0, RESTARTED],
    // The start time is made from the time of the boot, which moves with the wall clock.
    [3600, 3600, 'off'],
    [-3600, -3600, 'off'],
    [3603, 3600, RESTARTED],
    [0, 3600, 'off'],
  ])(
    'with a start time moved by %d s and a clock stepped by %d s the gate is %s',
    (moved, step, expected) => {
      expect(known(goodScrape(0), goodScrape(10, { start: 1.7e9 + moved }, step))).toBe(expected);
    },
  );

  test.each(['errors', 'successes', 'relists'] as const)(
    'a lower counter of %s means another run',
    (counter) => {
      expect(known(goodScrape(0, { [counter]: 9 }), goodScrape(10, { [counter]: 8 }))).toBe(RESTARTED);
      expect(known(goodScrape(0, { [counter]: 8 }), goodScrape(10, { [counter]: 9 }))).toBe('off');
    },
  );

  test('a counter that disappears means another run, a new one does not', () => {
    const without = metricsText().replace(/kubelet_runtime_operations_total\{operation_type="list_pod.*/, '');
    expect(known(goodScrape(0), goodScrape(10, {}, 0, without))).toBe(RESTARTED);
    expect(known(goodScrape(0, {}, 0, without), goodScrape(10))).toBe('off');
  });

  test('each other run is noticed, and its gate is known from its second scrape on', () => {
    const gate = new FeatureGate();
    const scrapes = [
      goodScrape(0),
      goodScrape(10, { start: 1 }),
      goodScrape(20, { start: 1 }),
      goodScrape(30),
    ];
    const seen = scrapes.map((scrape) => {
      gate.take(scrape);
      const status = gate.status(scrape.ended);
      return status.is === 'unknown' ? status.why : status.is;
    });
    expect(seen).toEqual(['off', RESTARTED, 'off', RESTARTED]);
  });
});
