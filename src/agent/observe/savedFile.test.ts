import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wall } from '../../protocol/units.ts';
import { SavedFile } from './savedFile.ts';
import { SavedPaceSchema } from './stream/subscribePolicy.ts';

let folder: string;
let lines: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plegwatch-pace-'));
  lines = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const log = pino({}, { write: (line: string) => lines.push(line) });
const fileIn = (dir: string) => new SavedFile(join(dir, 'stream.json'), SavedPaceSchema, log);

describe('the pace on disk', () => {
  test('the pace loaded is the one saved last', async () => {
    const file = fileIn(folder);
    for (let attempts = 1; attempts <= 20; attempts += 1) file.save({ attempts, subscribed: wall(7) });
    await file.saved();
    expect(await fileIn(folder).load()).toEqual({ attempts: 20, subscribed: 7 });
    expect(readdirSync(folder)).toEqual(['stream.json']);
  });

  test('a missing or damaged file has no pace', async () => {
    expect(await fileIn(folder).load()).toBeNull();
    writeFileSync(join(folder, 'stream.json'), '{"attempts":');
    expect(await fileIn(folder).load()).toBeNull();
  });

  test('a pace that cannot be saved is logged, and nothing else', async () => {
    const file = fileIn(join(folder, 'missing'));
    file.save({ attempts: 1, subscribed: null });
    await file.saved();
    expect(lines.join()).toContain('file beside the spool unusable');
  });
});
