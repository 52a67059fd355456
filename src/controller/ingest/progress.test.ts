import { describe, expect, it } from 'vitest';
import { createProgress } from './progress.ts';

describe('progress', () => {
  const minutes = (n: number) => n * 60_000;

  it('is missing when a lane with jobs stands still while Postgres answers', () => {
    let clock = 0;
    const progress = createProgress(() => clock);
    progress.observed(true, [1, 0]);
    expect(progress.health().alive).toBe(true);
    clock = minutes(2);
    progress.observed(true, [1, 0]);
    expect(progress.health()).toMatchObject({ alive: false, stillForMs: minutes(2), depth: 1 });
  });

  it('is there while jobs are handled, however many there are', () => {
    let clock = 0;
    const progress = createProgress(() => clock);
    progress.observed(true, [100]);
    clock = minutes(2);
    progress.moved(0);
    progress.observed(true, [1_000]);
    expect(progress.health().alive).toBe(true);
  });

  it('is not asked of an empty lane, nor while Postgres is away', () => {
    let clock = 0;
    const progress = createProgress(() => clock);
    progress.observed(true, [0, 5]);
    clock = minutes(2);
    progress.observed(false, [0, 5]);
    expect(progress.health()).toMatchObject({ alive: true, database: false });
  });

  it('is caught up for as long as Postgres answers, Redis shows every lane, none stands still, and few jobs wait', () => {
    let clock = 0;
    const progress = createProgress(() => clock);
    const lookAfter = (seconds: number, database: boolean, depths: (number | null)[]) => {
      clock += seconds * 1_000;
      progress.observed(database, depths);
      return progress.health().caughtUpForMs / 1_000;
    };
    expect(progress.health().caughtUpForMs).toBe(0);
    expect(lookAfter(5, true, [0, 3])).toBe(0);
    expect(lookAfter(20, true, [0, 3])).toBe(20);
    progress.moved(1);
    expect(lookAfter(20, true, [0, 3])).toBe(40);
    const breaks: [boolean, (number | null)[]][] = [
      [false, [0, 0]],
      [true, []],
      [true, [0, null]],
      [true, [0, 1_000]],
    ];
    for (const [database, depths] of breaks) {
      expect(lookAfter(5, database, depths)).toBe(0);
      expect(lookAfter(0, true, [0, 0])).toBe(0);
      expect(lookAfter(5, true, [0, 0])).toBe(5);
    }
    // Nobody looked for a while: what was then is not known.
    clock += 60_000;
    expect(progress.health().caughtUpForMs).toBe(0);
    expect(lookAfter(0, true, [0, 0])).toBe(0);
    expect(lookAfter(20, true, [0, 1])).toBe(20);
    // A lane that has something, and does not move.
    expect(lookAfter(20, true, [0, 1])).toBe(0);
  });
});
