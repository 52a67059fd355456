import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Mono, mono, type Wall, wall } from '../../../protocol/units.ts';
import { ModeFile } from './modeFile.ts';
import type { ScrapeSummary } from './scrapeSummary.ts';

const WALL = 1.79e15;
const at = (seconds: number): { mono: Mono; wall: Wall } => ({
  mono: mono(seconds * 1e6),
  wall: wall(WALL + seconds * 1e6),
});
const NOW = at(300);

const scrape: ScrapeSummary = {
  started: mono(100e6 - 5_000),
  ended: mono(100e6),
  wall: at(100).wall,
  version: 'v1.36.3',
  gate: true,
  processStart: 1.78e9,
  errors: 5,
  successes: 1,
  streamEnds: null,
  streamEndErrors: null,
  streamSeconds: null,
  relists: 7,
  lists: null,
  discarded: 0,
};
const state = {
  model: 'EventedCache',
  mode: 'Fallback',
  reason: 'StreamBroke',
  since: mono(40e6),
  streamErrors: 5,
  scrapeError: null,
} as const;

let folder: string;
let lines: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plegwatch-mode-'));
  lines = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (dir = folder, boot = 'boot-1', node = 'n1') =>
  ModeFile.open({
    dir,
    node,
    log: pino({}, { write: (line: string) => lines.push(line) }),
    bootId: async () => boot,
  });

async function kept(of: Parameters<ModeFile['save']>[0] = { state, lastScrape: scrape }): Promise<void> {
  const file = await open();
  file.save(of);
  await file.saved();
}

describe('the mode on disk', () => {
  test('the mode loaded is the one saved last, on the same clock', async () => {
    const file = await open();
    for (let errors = 0; errors <= 20; errors += 1) file.save({ state, lastScrape: { ...scrape, errors } });
    await file.saved();
    expect(await (await open()).load(NOW)).toEqual({
      model: 'EventedCache',
      mode: 'Fallback',
      reason: 'StreamBroke',
      since: at(40).wall,
      scrape: { ...scrape, errors: 20 },
      sameBoot: true,
    });
    expect(readdirSync(folder)).toEqual(['mode.json']);
  });

  test('a mode of another boot is converted to the clock of this one by the wall clock', async () => {
    await kept();
    // Two minutes after the scrape; this boot is 10 s old.
    const loaded = await (await open(folder, 'boot-2')).load({ mono: mono(10e6), wall: at(220).wall });
    expect(loaded).toMatchObject({ sameBoot: false, scrape: { ended: -110e6, started: -110e6 - 5_000 } });
  });

  test.each([
    ['of another node', async () => (await open(folder, 'boot-1', 'n2')).load(NOW)],
    ['of the future', async () => (await open()).load(at(50))],
  ])('%s has no mode', async (_which, load) => {
    await kept();
    expect(await load()).toBeNull();
  });

  test('a missing, damaged or implausible file has no mode', async () => {
    expect(await (await open()).load(NOW)).toBeNull();
    await kept();
    const file = join(folder, 'mode.json');
    const whole = readFileSync(file, 'utf8');
    for (const content of [
      whole.slice(0, -9),
      'null',
      '[]',
      whole.replace('Fallback', 'Splendid'),
      whole.replace('"errors":5', '"errors":-5'),
      whole.replace('"v":1', '"v":2'),
    ]) {
      writeFileSync(file, content);
      expect(await (await open()).load(NOW)).toBeNull();
    }
    expect(lines).toEqual([]);
  });

  test('nothing is saved before a kubelet answered', async () => {
    await kept({ state, lastScrape: null });
    expect(readdirSync(folder)).toEqual([]);
  });

  test('a mode that cannot be saved is logged, and nothing else', async () => {
    const file = await open(join(folder, 'missing'));
    file.save({ state, lastScrape: scrape });
    await file.saved();
    expect(lines.join()).toContain('file beside the spool unusable');
  });
});
