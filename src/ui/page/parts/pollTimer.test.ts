import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startPolling } from './pollTimer.ts';

const EVERY_MS = 10_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

class Page extends EventTarget {
  hidden = false;

  turn(how: 'hidden' | 'shown'): void {
    this.hidden = how === 'hidden';
    this.dispatchEvent(new Event('visibilitychange'));
  }
}

/** Requests that are answered when the test says so. */
function polling({ page = new Page(), repeats = true }: { page?: Page; repeats?: boolean } = {}) {
  const requests: ((wait: number | null) => void)[] = [];
  const ask = () => new Promise<number | null>((resolve) => requests.push(resolve));
  const end = startPolling({ ask, repeats, page });
  const answered = async (wait: number | null) => {
    requests.at(-1)?.(wait);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { page, requests, answered, end };
}

test('a page asks at once, and again some time after each answer', async () => {
  const { requests, answered } = polling();
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  expect(requests).toHaveLength(1);
  await answered(EVERY_MS);
  await vi.advanceTimersByTimeAsync(EVERY_MS - 1);
  expect(requests).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(requests).toHaveLength(2);
});

test('a page that is shown again while a request is under way sends no second one', async () => {
  const { page, requests, answered } = polling();
  page.turn('hidden');
  page.turn('shown');
  expect(requests).toHaveLength(1);
  await answered(EVERY_MS);
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  expect(requests).toHaveLength(2);
});

test('a page that nobody sees asks for nothing, and asks at once when it is shown', async () => {
  const { page, requests, answered } = polling();
  await answered(EVERY_MS);
  page.turn('hidden');
  await vi.advanceTimersByTimeAsync(10 * EVERY_MS);
  expect(requests).toHaveLength(1);
  page.turn('shown');
  expect(requests).toHaveLength(2);
});

test('a request that is made once is made when a page that was opened unseen is shown, and not again after its answer', async () => {
  const page = new Page();
  page.hidden = true;
  const { requests, answered } = polling({ page, repeats: false });
  expect(requests).toHaveLength(0);
  page.turn('shown');
  expect(requests).toHaveLength(1);
  await answered(null);
  page.turn('hidden');
  page.turn('shown');
  expect(requests).toHaveLength(1);
});

test('a page that was refused asks again when it is shown again', async () => {
  const { page, requests, answered } = polling();
  await answered(null);
  page.turn('hidden');
  page.turn('shown');
  expect(requests).toHaveLength(2);
});

test('a timer that was ended asks no more, even if an answer comes later', async () => {
  const { page, requests, answered, end } = polling();
  end();
  await answered(EVERY_MS);
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  page.turn('shown');
  expect(requests).toHaveLength(1);
});
