/*
 * The mode of a kubelet as SPEC.md describes it, by the real tracker and the metrics of a kubelet.
 */
import { ModeTracker } from '../../src/agent/observe/kubelet/modeTracker.ts';
import { mono } from '../../src/protocol/units.ts';
import type { FakeFigures } from '../support/fakeKubelet.ts';
import { BORN, EVENTED, FALLBACK, failed, scrapeAt } from '../support/modeScrapes.ts';
import { drive } from './specification.ts';

const HINTS: FakeFigures = { ...EVENTED, version: 'v1.37.2' };
const FIGURES = {
  generic: { ...EVENTED, gate: 0 },
  starting: { ...EVENTED, successes: 0 },
  evented: EVENTED,
  fallback: FALLBACK,
  hint: HINTS,
  hintDisabled: { ...FALLBACK, version: 'v1.37.2' },
  noVersion: { ...EVENTED, version: '' },
} satisfies Record<string, FakeFigures>;

/** An agent that scrapes a kubelet every ten seconds. */
class Agent {
  tracker = new ModeTracker(mono(0));
  #seconds = 0;

  scrapes(figures: FakeFigures): this {
    this.#seconds += 10;
    // A kubelet whose figures are those of another mode was restarted.
    this.tracker.take(scrapeAt(this.#seconds, { ...figures, start: BORN + this.#seconds }));
    return this;
  }

  fails(): void {
    this.#seconds += 10;
    this.tracker.take(failed(this.#seconds, 'Timeout'));
  }

  pauses(): void {
    this.#seconds += 121;
    this.tracker.expire(mono(this.#seconds * 1e6));
  }
}

const shown = (figures: FakeFigures) => () => new Agent().scrapes(figures);
const scrapes = (figures: FakeFigures) => (agent: Agent) => agent.scrapes(figures);

drive('The mode that an agent reports', {
  states: {
    Unknown: () => new Agent(),
    Generic: shown(FIGURES.generic),
    Starting: shown(FIGURES.starting),
    Evented: shown(FIGURES.evented),
    Fallback: shown(FIGURES.fallback),
    EventedHint: shown(FIGURES.hint),
    HintDisabled: shown(FIGURES.hintDisabled),
  },
  events: {
    'gate off': scrapes(FIGURES.generic),
    'no stream opened yet': scrapes(FIGURES.starting),
    'stream opened (1.27 to 1.36)': scrapes(FIGURES.evented),
    'fifth error (1.27 to 1.36)': scrapes(FIGURES.fallback),
    'stream opened (1.37)': scrapes(FIGURES.hint),
    'fifth error (1.37)': scrapes(FIGURES.hintDisabled),
    'figure missing': scrapes(FIGURES.noVersion),
    'failed scrape': (agent) => agent.fails(),
    'two minutes without a good scrape': (agent) => agent.pauses(),
    'agent restarts': (agent) => {
      agent.tracker = new ModeTracker(mono(0));
    },
  },
  stateOf: ({ tracker }) => tracker.state.mode,
});
