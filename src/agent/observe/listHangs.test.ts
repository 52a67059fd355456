/*
 * When a list hangs, with a clock that the test moves: two ticks a second.
 */
import { expect, test } from 'vitest';
import { type Mono, millis, mono, shift } from '../../protocol/units.ts';
import { ListHangs } from './listHangs.ts';
import type { RunningList } from './relister.ts';

const TICK_MS = 500;

class Relists {
  now: Mono = mono(1_000_000_000);
  readonly hangs = new ListHangs();
  #running: RunningList | null = null;

  constructor() {
    this.hangs.tick(null, this.now);
  }

  begin(call: RunningList['call']): Mono {
    this.#running = { call, since: this.now };
    return this.now;
  }

  /** The call is under way, or none is. */
  pass(ms: number, every = TICK_MS): void {
    for (let passed = 0; passed < ms; passed += every) {
      this.now = shift(this.now, millis(every));
      this.hangs.tick(this.#running, this.now);
    }
  }

  fail(code: string): void {
    this.#running = null;
    this.hangs.failed({ at: this.now, code });
  }
}

test('a list hangs once it has been under way for five seconds, and for as long as it is not answered', () => {
  const relists = new Relists();
  const from = relists.begin('ListContainers');
  relists.pass(4_500);
  expect(relists.hangs.hang).toBeNull();
  relists.pass(500);
  const { hang } = relists.hangs;
  expect(hang).toEqual({ call: 'ListContainers', from, to: null, waited: 5_000_000 });
  relists.pass(60_000);
  expect(hang).toMatchObject({ to: null, waited: 65_000_000 });
  relists.hangs.answered(relists.now);
  expect(relists.hangs.hang).toBeNull();
  expect(hang).toMatchObject({ to: relists.now, waited: 65_000_000 });
});

test('quick lists never hang, however many there are', () => {
  const relists = new Relists();
  for (let i = 0; i < 20; i += 1) {
    relists.begin('ListContainers');
    relists.pass(1_000);
    relists.hangs.answered(relists.now);
  }
  expect(relists.hangs.hang).toBeNull();
});

test('time in which this process is held up is not waited for', () => {
  const relists = new Relists();
  relists.begin('ListContainers');
  relists.pass(60_000, 60_000);
  expect(relists.hangs.hang).toBeNull();
  relists.pass(4_000);
  expect(relists.hangs.hang).toMatchObject({ waited: 5_000_000 });
});

test('the same hang goes on after a deadline if the next relist cannot be answered either', () => {
  const relists = new Relists();
  const from = relists.begin('ListContainers');
  relists.pass(120_000);
  relists.fail('DEADLINE_EXCEEDED');
  relists.pass(60_000);
  relists.begin('ListPodSandbox');
  relists.pass(500);
  relists.begin('ListContainers');
  relists.pass(10_000);
  expect(relists.hangs.hang).toEqual({ call: 'ListContainers', from, to: null, waited: 130_000_000 });
});

test('any other failure ends the hang', () => {
  const relists = new Relists();
  relists.begin('ListContainers');
  relists.pass(10_000);
  const { hang } = relists.hangs;
  relists.fail('UNAVAILABLE');
  expect(relists.hangs.hang).toBeNull();
  expect(hang?.to).toBe(relists.now);
});

test('each of the two calls has its own hang', () => {
  const relists = new Relists();
  relists.begin('ListPodSandbox');
  relists.pass(10_000);
  const sandboxes = relists.hangs.hang;
  relists.begin('ListContainers');
  relists.pass(500);
  expect(sandboxes).toMatchObject({ call: 'ListPodSandbox', to: relists.now });
  expect(relists.hangs.hang).toBeNull();
  relists.pass(10_000);
  expect(relists.hangs.hang).toMatchObject({ call: 'ListContainers' });
  // Now the sandboxes cannot be listed any more.
  const containers = relists.hangs.hang;
  relists.fail('DEADLINE_EXCEEDED');
  relists.begin('ListPodSandbox');
  relists.pass(5_000);
  expect(containers?.to).toBe(relists.now);
  expect(relists.hangs.hang).toMatchObject({ call: 'ListPodSandbox' });
});
