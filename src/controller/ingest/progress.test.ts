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
});
