/*
 * Random histories of a kubelet: streams that open and end, restarts, upgrades, a gate that is toggled, scrapes that fail or
 * pause, a wall clock that steps. The reported modes are always consistent, and confirmed by scrapes.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { metricsText } from '../../../../test/support/fakeKubelet.ts';
import { runsOf } from '../../../../test/support/runs.ts';
import { type Mode, parseRecord } from '../../../protocol/record.ts';
import { type Mono, mono, shift, wall } from '../../../protocol/units.ts';
import type { Scrape } from './client.ts';
import { readMetrics } from './metrics.ts';
import { CONFIRMED_FOR, type ModeChange, ModeTracker } from './modeTracker.ts';

const START = mono(5e6);
const WALL = 1.75e15;
/** Errors in one kubelet run. */
const GIVES_UP_AFTER = 5;
const PAUSE = 180e6;

type Step =
  | { readonly does: 'open' | 'break' | 'break_down' | 'fail' | 'scrape' | 'pause' }
  | { readonly does: 'restart'; readonly gate: boolean; readonly minor: number; readonly counts: boolean }
  | { readonly does: 'step_clock'; readonly seconds: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ does: fc.constantFrom('open', 'break', 'break_down', 'fail', 'scrape') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('pause' as const) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant('restart' as const),
      gate: fc.boolean(),
      minor: fc.integer({ min: 24, max: 39 }),
      counts: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant('step_clock' as const),
      seconds: fc.integer({ min: -5_000, max: 5_000 }),
    }),
  },
);

/** A kubelet as it is, which nobody but the history knows. */
class Kubelet {
  run = 0;
  gate = true;
  minor = 36;
  counts = true;
  errors = 0;
  successes = 0;
  #relists = 0;
  #born = 0;

  #restart({ gate, minor, counts }: Extract<Step, { does: 'restart' }>, at: Mono): void {
    Object.assign(this, { gate, minor, counts, errors: 0, successes: 0 });
    this.run += 1;
    this.#relists = 0;
    this.#born = at;
  }

  does(one: Step, at: Mono): void {
    if (one.does === 'restart') this.#restart(one, at);
    if (!this.tries) return;
    if (one.does === 'open') this.successes += 1;
    if (one.does === 'break') this.errors += 1;
    // The runtime is away for longer than the errors last.
    if (one.does === 'break_down') this.errors = Math.max(this.errors + 1, GIVES_UP_AFTER);
  }

  /** Its stream loop ends with the fifth error up to 1.37, and never after. */
  get tries(): boolean {
    return this.gate && (this.minor > 37 || this.errors < GIVES_UP_AFTER);
  }

  get gaveUp(): boolean {
    return this.gate && this.minor >= 26 && this.minor <= 37 && this.errors >= GIVES_UP_AFTER;
  }

  scrape(at: Mono, stepped: number): Scrape {
    this.#relists += this.tries && this.minor <= 36 ? 0 : 10;
    const start = (WALL + this.#born) / 1e6 + stepped;
    const { errors, successes, minor } = this;
    const all = { gate: this.gate ? 1 : 0, start, errors, successes, version: `v1.${minor}.1` } as const;
    const text = metricsText({ ...all, relists: 1 + this.#relists });
    const reported =
      this.counts && minor >= 27 ? text : text.replaceAll(/^kubelet_evented_pleg_connection.*\n/gm, '');
    const figures = readMetrics(reported);
    if (figures === null) throw new Error('not a kubelet');
    return {
      ok: true,
      figures,
      identity: 'Verified',
      started: shift(at, -1000),
      ended: at,
      wall: wall(WALL + at + stepped * 1e6),
    };
  }
}

interface KubeletReport {
  readonly change: ModeChange;
  readonly run: number;
  readonly gaveUp: boolean;
  readonly now: Mono;
}

function play(steps: readonly Step[]) {
  const tracker = new ModeTracker(START);
  const kubelet = new Kubelet();
  const reports: KubeletReport[] = [];
  const good: Mono[] = [];
  const claims: { readonly mode: Mode; readonly unconfirmedFor: number }[] = [];
  let now = START;
  let stepped = 0;
  for (const one of steps) {
    // No scrape for longer than a mode is known.
    now = shift(now, one.does === 'pause' ? PAUSE : 10e6);
    kubelet.does(one, now);
    if (one.does === 'step_clock') stepped += one.seconds;
    now = shift(now, 1e6);
    const failed: Scrape = { ok: false, reason: 'Timeout', message: '', ended: now };
    const scrape = one.does === 'fail' ? failed : kubelet.scrape(now, stepped);
    const expired = tracker.expire(now);
    const change = tracker.take(scrape);
    if (scrape.ok) good.push(now);
    const changes = [expired, change].filter((each) => each !== null);
    reports.push(...changes.map((each) => ({ change: each, run: kubelet.run, gaveUp: kubelet.gaveUp, now })));
    claims.push({ mode: tracker.state.mode, unconfirmedFor: now - (good.at(-1) ?? START) });
  }
  return { reports, good, claims, tracker, kubelet };
}

const hasGivenUp = ({ mode }: ModeChange): boolean => mode === 'Fallback' || mode === 'HintDisabled';
const isNotObserved = ({ change }: Pick<KubeletReport, 'change'>): boolean => change.reason === 'NotObserved';

test('a mode is claimed for two minutes after a good scrape, and ends at that scrape afterwards', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { reports, good, claims } = play(steps);
      for (const { mode, unconfirmedFor } of claims)
        if (mode !== 'Unknown') expect(unconfirmedFor).toBeLessThanOrEqual(CONFIRMED_FOR);
      for (const { change, now } of reports.filter(isNotObserved)) {
        const last = good.filter((at) => at < now).at(-1);
        expect(change).toMatchObject({ mode: 'Unknown', at: last, notBefore: last });
        expect(now - change.at).toBeGreaterThan(CONFIRMED_FOR);
      }
    }),
    { numRuns: runsOf(1_000) },
  );
});

test('the reported modes are consistent, whatever a kubelet does', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { reports, good, tracker } = play(steps);
      reports.forEach(({ change, run, gaveUp }, i) => {
        const before = reports[i - 1];
        // One change follows on the other, between two good scrapes.
        expect(change.from).toBe(before?.change.mode ?? 'Unknown');
        expect(change.notBefore).toBeLessThanOrEqual(change.at);
        expect(good).toContain(change.at);
        if (before !== undefined) expect(change.notBefore).toBeGreaterThan(before.change.at - 2_000);
        // Given up is reported exactly while the kubelet has given up, and ends with its run.
        const isGivenUp = hasGivenUp(change);
        if (isGivenUp) expect(gaveUp).toBe(true);
        const seen = reports.slice(0, i).findLast((report) => !isNotObserved(report));
        const hadGivenUp = seen !== undefined && seen.run === run && hasGivenUp(seen.change);
        if (hadGivenUp && !isGivenUp && !isNotObserved({ change }))
          throw new Error(`left ${seen.change.mode} for ${change.mode} in one kubelet run`);
        const { model, mode, reason, from, notBefore, at, proof } = change;
        const record = { type: 'mode_change', t: at, notBefore, model, from, to: mode, reason, proof };
        expect(parseRecord(record)).toMatchObject({ ok: true });
      });
      expect(tracker.state.mode).toBe(reports.at(-1)?.change.mode ?? 'Unknown');
    }),
    { numRuns: runsOf(2_000) },
  );
});

test('a kubelet that gave up is known at the next good scrape, from 1.27 to 1.37', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { tracker, kubelet } = play([...steps, { does: 'scrape' }]);
      if (!kubelet.gaveUp || !kubelet.counts || kubelet.minor < 27) return;
      expect(tracker.state.mode).toBe(kubelet.minor === 37 ? 'HintDisabled' : 'Fallback');
    }),
    { numRuns: runsOf(2_000) },
  );
});
