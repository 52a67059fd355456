import { describe, expect, it } from 'vitest';
import { createQueueProgress } from './queueProgress.ts';

describe('ingest health', () => {
  const minutes = (n: number) => n * 60_000;

  it('a queue with jobs that makes no progress for two minutes while Postgres answers is not alive', () => {
    let clock = 0;
    const progress = createQueueProgress(() => clock);
    progress.observed(true, [1, 0]);
    expect(progress.health().alive).toBe(true);
    clock = minutes(2);
    progress.observed(true, [1, 0]);
    expect(progress.health()).toMatchObject({ alive: false, stalledForMs: minutes(2) });
  });

  it('a queue whose jobs are handled is alive, however many wait', () => {
    let clock = 0;
    const progress = createQueueProgress(() => clock);
    progress.observed(true, [100]);
    clock = minutes(2);
    progress.handled(0);
    progress.observed(true, [1_000]);
    expect(progress.health().alive).toBe(true);
  });

  it('an empty queue is alive, and so is every queue while Postgres is unavailable', () => {
    let clock = 0;
    const progress = createQueueProgress(() => clock);
    progress.observed(true, [0, 5]);
    clock = minutes(2);
    progress.observed(false, [0, 5]);
    expect(progress.health()).toMatchObject({ alive: true, database: false });
  });

  it('ingest has caught up as long as Postgres answers, Redis shows every queue, none is stalled, and few jobs wait', () => {
    let clock = 0;
    const progress = createQueueProgress(() => clock);
    const observeAfter = (seconds: number, database: boolean, depths: (number | null)[]) => {
      clock += seconds * 1_000;
      progress.observed(database, depths);
      return progress.health().caughtUpForMs / 1_000;
    };
    expect(progress.health().caughtUpForMs).toBe(0);
    expect(observeAfter(5, true, [0, 3])).toBe(0);
    expect(observeAfter(20, true, [0, 3])).toBe(20);
    progress.handled(1);
    expect(observeAfter(20, true, [0, 3])).toBe(40);
    const interruptions: [boolean, (number | null)[]][] = [
      [false, [0, 0]],
      [true, []],
      [true, [0, null]],
      [true, [0, 1_000]],
    ];
    for (const [database, depths] of interruptions) {
      expect(observeAfter(5, database, depths)).toBe(0);
      expect(observeAfter(0, true, [0, 0])).toBe(0);
      expect(observeAfter(5, true, [0, 0])).toBe(5);
    }
    // A minute without an observation.
    clock += 60_000;
    expect(progress.health().caughtUpForMs).toBe(0);
    expect(observeAfter(0, true, [0, 0])).toBe(0);
    expect(observeAfter(20, true, [0, 1])).toBe(20);
    // A queue that is not empty and makes no progress.
    expect(observeAfter(20, true, [0, 1])).toBe(0);
  });
});
