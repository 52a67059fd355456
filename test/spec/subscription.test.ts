/*
 * The subscription as SPEC.md describes it: the real one, with a reader that the test plays, and timers that it turns.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { GateStatus } from '../../src/agent/observe/kubelet/gate.ts';
import type { Frame } from '../../src/agent/observe/stream/frames.ts';
import type { ReaderEvents } from '../../src/agent/observe/stream/readerProcess.ts';
import { Subscription, type SubscriptionState } from '../../src/agent/observe/stream/subscription.ts';
import { monoNow } from '../../src/platform/clock.ts';
import { millis } from '../../src/protocol/units.ts';
import { drive } from './specification.ts';

const SAFE = '2.1.9';
const STEALS = '1.7.24';
const REFUSED = new Set<SubscriptionState | null>(['Unsafe', 'Unsupported', 'Disabled']);

interface Reader extends ReaderEvents {
  isSubscribing: boolean;
  isKilled: boolean;
}

class Bed {
  readonly subscription: Subscription;
  #reader: Reader | null = null;
  #gate: 'on' | 'off' = 'off';
  #kubeletSuccesses = 1;
  #review: () => void = () => undefined;
  #lastState: SubscriptionState | null = null;
  #lastReason = '';
  #isOpen = false;
  #isStopped = false;

  constructor(setting: 'always' | 'never' = 'always') {
    const nothing = () => undefined;
    this.subscription = new Subscription(
      '/nowhere',
      setting,
      {
        identified: nothing,
        opened: () => {
          this.#isOpen = true;
        },
        event: nothing,
        drained: nothing,
        overflow: nothing,
        eventWithoutStatus: nothing,
        malformed: nothing,
        ended: nothing,
        state: (state, reason) => {
          this.#lastState = state;
          this.#lastReason = reason;
        },
      },
      {
        kubelet: {
          gate: (): GateStatus => ({ is: this.#gate, readAt: monoNow() }),
          connectionSuccesses: () => this.#kubeletSuccesses,
          hasGivenUp: () => false,
          scrapeSoon: nothing,
          onChange: (listener) => {
            this.#review = listener;
          },
        },
        kubeletWait: millis(3_600_000),
        startReader: (_socket, events) => {
          const reader = { ...events, isSubscribing: false, isKilled: false };
          this.#reader = reader;
          this.#isOpen = false;
          return {
            subscribe: () => {
              reader.isSubscribing = true;
            },
            kill: () => {
              reader.isKilled = true;
            },
            lastHeartbeat: monoNow,
            pid: 0,
          };
        },
      },
    );
  }

  async start(): Promise<this> {
    this.subscription.start();
    await vi.advanceTimersByTimeAsync(0);
    return this;
  }

  get state(): string {
    const reader = this.#reader;
    if (this.#isStopped) return 'stopped';
    if (this.#lastState === 'Off') return 'off';
    if (reader === null) return REFUSED.has(this.#lastState) ? 'refused' : 'waiting';
    if (reader.isKilled) return 'leaving';
    if (this.#isOpen) return 'open';
    if (reader.isSubscribing) return 'opening';
    return this.#lastReason.startsWith('waiting for the kubelet') ? 'kubelet first' : 'identifying';
  }

  frame(frame: Frame): void {
    this.#reader?.frame(frame);
  }

  /** The runtime answers with this version. */
  named(version: string): void {
    this.frame({ is: 'version', at: monoNow(), name: 'containerd', version });
  }

  opened(): void {
    this.frame({ is: 'opened', at: monoNow(), wallNs: 0n });
  }

  /** The kubelet's gate, as a scrape shows it. */
  setGate(gate: 'on' | 'off'): void {
    this.#gate = gate;
    this.#review();
  }

  async kubeletSubscribes(): Promise<void> {
    this.#kubeletSuccesses += 1;
    await vi.advanceTimersByTimeAsync(250);
  }

  gone(code?: string): void {
    const reader = this.#reader;
    if (code !== undefined) this.frame({ is: 'ended', at: monoNow(), code, message: '' });
    this.#reader = null;
    reader?.gone(null);
  }

  async stop(): Promise<void> {
    const stopping = this.subscription.stop();
    this.gone();
    await stopping;
    this.#isStopped = true;
  }
}

let beds: Bed[] = [];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  beds = [];
});
afterEach(async () => {
  for (const bed of beds) await bed.stop();
  vi.useRealTimers();
});

async function identifying(): Promise<Bed> {
  const bed = await new Bed().start();
  beds.push(bed);
  return bed;
}

async function opening(): Promise<Bed> {
  const bed = await identifying();
  bed.named(STEALS);
  return bed;
}

async function open(): Promise<Bed> {
  const bed = await opening();
  bed.opened();
  return bed;
}

async function leaving(): Promise<Bed> {
  const bed = await open();
  bed.setGate('on');
  return bed;
}

async function waiting(): Promise<Bed> {
  const bed = await open();
  bed.gone('UNAVAILABLE');
  return bed;
}

/** A session was lost that the kubelet's stream may have been lost with. */
async function lost(): Promise<Bed> {
  const bed = await waiting();
  await retry(bed);
  return bed;
}

const retry = (_bed: Bed) => vi.advanceTimersByTimeAsync(600_000);

drive('The subscription', {
  states: {
    off: async () => {
      const bed = await new Bed('never').start();
      beds.push(bed);
      return bed;
    },
    waiting,
    refused: async () => {
      const bed = await identifying();
      bed.setGate('on');
      bed.named(STEALS);
      bed.gone();
      return bed;
    },
    identifying,
    'kubelet first': async () => {
      const bed = await lost();
      bed.setGate('on');
      bed.named(SAFE);
      return bed;
    },
    opening,
    open,
    leaving,
    stopped: async () => {
      const bed = await open();
      await bed.stop();
      return bed;
    },
  },
  events: {
    'retry due': retry,
    'named and allowed': (bed) => bed.named(bed.state === 'kubelet first' ? SAFE : STEALS),
    'named and refused': (bed) => {
      if (bed.state === 'identifying') bed.setGate('on');
      bed.named(bed.state === 'kubelet first' ? SAFE : STEALS);
    },
    renamed: (bed) => bed.named('2.3.0'),
    opened: (bed) => bed.opened(),
    gone: (bed) => bed.gone('UNAVAILABLE'),
    'gone without a stream': (bed) => bed.gone('UNIMPLEMENTED'),
    'policy refuses': (bed) => bed.setGate('on'),
    'policy allows': async (bed) => {
      bed.setGate('off');
      await vi.advanceTimersByTimeAsync(1);
    },
    'kubelet subscribed': (bed) => bed.kubeletSubscribes(),
    'another runtime answers': async (bed) => {
      bed.subscription.runtimeReplaced();
      await vi.advanceTimersByTimeAsync(1);
    },
    stop: (bed) => bed.stop(),
  },
  stateOf: (bed) => bed.state,
});

test('a subscription to a safe runtime that was lost waits for the kubelet while the gate is on', async () => {
  const bed = await lost();
  bed.setGate('on');
  bed.named(SAFE);
  expect(bed.state).toBe('kubelet first');
});

test('a session of a runtime that was replaced is retried at the usual pace', async () => {
  const bed = await open();
  bed.named('1.7.25');
  expect(bed.state).toBe('leaving');
  bed.gone();
  expect(bed.state).toBe('waiting');
});

test('a policy that refuses and allows again while a retry waits makes it come no earlier', async () => {
  const bed = await waiting();
  bed.setGate('on');
  bed.setGate('off');
  await vi.advanceTimersByTimeAsync(1);
  expect(bed.state).toBe('waiting');
});
