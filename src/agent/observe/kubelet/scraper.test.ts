import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { metricsText, plain } from '../../../../test/support/fakeKubelet.ts';
import { KubeletBed } from '../../../../test/support/kubeletBed.ts';
import { until } from '../../../../test/support/waitFor.ts';
import { monoNow } from '../../../platform/clock.ts';
import { millis } from '../../../protocol/units.ts';
import { KubeletScraper } from './scraper.ts';

// TLS, processes of others and two cores.
vi.setConfig({ testTimeout: 300_000 });

const bed = new KubeletBed();

function watching(periodMs: number, minPeriodMs = 20) {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line: string) => lines.push(line) });
  const client = bed.client({ tokenFile: undefined });
  const failures: string[] = [];
  const watch = new KubeletScraper({
    client,
    log,
    onFailure: (reason) => failures.push(reason),
    period: millis(periodMs),
    minPeriod: millis(minPeriodMs),
  });
  const gates: string[] = [];
  watch.onChange(() => gates.push(watch.gate(monoNow()).is));
  const stop = new AbortController();
  const running = watch.run(stop.signal);
  const end = () => {
    stop.abort();
    return running;
  };
  bed.atEnd(end);
  return { watch, gates, lines, failures, end };
}

describe('the scraper', () => {
  test('the kubelet is scraped periodically, and listeners are called after each scrape', async () => {
    const { watch, gates } = watching(30);
    await until(() => gates.length >= 3);
    expect(new Set(gates)).toEqual(new Set(['off']));
    expect(watch.version).toBe('v1.36.3');
    bed.kubelet.answer = plain(metricsText({ gate: 1, successes: 1 }));
    await until(() => gates.at(-1) === 'on');
    expect(watch.connectionSuccesses()).toBe(1);
  });

  test('a requested scrape comes at once, but not before the minimum period', async () => {
    const began = performance.now();
    const { watch, gates } = watching(60_000, 200);
    await until(() => gates.length === 1);
    for (let i = 0; i < 50; i += 1) watch.scrapeSoon();
    await until(() => gates.length === 2);
    expect(performance.now() - began).toBeGreaterThan(195);
    expect(bed.kubelet.requests).toHaveLength(2);
  });

  test('a lost connection makes the gate unknown at once, and the kubelet is scraped again', async () => {
    const { gates } = watching(60_000);
    await until(() => gates.length === 1);
    bed.kubelet.cut();
    await until(() => gates.length === 3);
    expect(gates).toEqual(['off', 'unknown', 'off']);
  });

  test('failures do not end scraping; each is counted, each reason is logged once, and so is the recovery', async () => {
    bed.kubelet.answer = plain('', {}, 403);
    const { gates, lines, failures } = watching(20);
    await until(() => gates.length >= 3);
    expect(failures.length).toBeGreaterThanOrEqual(3);
    expect(new Set(failures)).toEqual(new Set(['Forbidden']));
    expect(new Set(gates)).toEqual(new Set(['unknown']));
    expect(lines.filter((line) => line.includes('Forbidden'))).toHaveLength(1);
    bed.kubelet.answer = plain(metricsText());
    await until(() => gates.at(-1) === 'off');
    expect(lines).toHaveLength(2);
  });

  test('after a failed scrape the kubelet is scraped again long before the period ends', async () => {
    bed.kubelet.answer = plain('', {}, 503);
    const { gates, failures, lines } = watching(3_600_000);
    await until(() => failures.length >= 3);
    bed.kubelet.answer = plain(metricsText());
    await until(() => gates.at(-1) === 'off');
    expect(lines).toHaveLength(2);
  });

  test('a stop ends scraping at once and closes the connection', async () => {
    const { gates, end } = watching(60_000);
    await until(() => gates.length === 1);
    await end();
    await until(() => bed.kubelet.connections === 0);
  });
});
