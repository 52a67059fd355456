/*
 * Scrapes of a kubelet whose figures say which mode it is in, and the changes of mode that a tracker takes from them.
 */
import type { Scrape } from '../../src/agent/observe/kubelet/client.ts';
import { readMetrics } from '../../src/agent/observe/kubelet/metrics.ts';
import { type ModeChange, ModeTracker } from '../../src/agent/observe/kubelet/modeTracker.ts';
import type { ScrapeFailure } from '../../src/agent/observe/kubelet/scrapeError.ts';
import { mono, wall } from '../../src/protocol/units.ts';
import { type FakeFigures, metricsText } from './fakeKubelet.ts';

export const START = mono(1_000_000);
/** The wall clock is this at the start of the monotonic one. */
export const WALL = 1.75e15;
export const BORN = 1.75e9 - 100;

export const EVENTED: FakeFigures = { gate: 1, errors: 0, successes: 1, start: BORN };
export const FALLBACK: FakeFigures = { ...EVENTED, errors: 5 };

/** A good scrape that ends at a moment in seconds; `stepped` is what the wall clock was moved by until then. */
export function scrapeAt(
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

export const failed = (seconds: number, reason: ScrapeFailure): Scrape => ({
  ok: false,
  reason,
  message: '',
  ended: mono(seconds * 1e6),
});

export const described = (changes: readonly (ModeChange | null)[]) =>
  changes.map((change) => change && `${change.from} ${change.mode} ${change.reason}`);

export function taking(...scrapes: Scrape[]) {
  const tracker = new ModeTracker(START);
  return { tracker, changes: scrapes.map((scrape) => tracker.take(scrape)) };
}
