/*
 * One agent per node: the lock of a spool.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { readAll, SpoolBed, spoolOptions, upTo, write } from '../../../test/support/spoolBed.ts';
import { passes, until } from '../../../test/support/waitFor.ts';
import { createLogger } from '../../platform/log.ts';
import { openSpool } from './openSpool.ts';

const bed = new SpoolBed();

describe('one agent per node', () => {
  const holder = `
    import { DatabaseSync } from 'node:sqlite';
    const database = new DatabaseSync(process.argv[1]);
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    process.stdout.write('held');
    setInterval(() => {}, 1000);
  `;

  test('an agent waits for a spool that another process has locked, until that process is killed', async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', holder, join(bed.dir, 'lock')], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(child.stdout, 'data');
    const warned = vi.fn();
    const log = Object.assign(createLogger('fatal', 'test'), { warn: warned });
    const opening = bed.open({ log });
    await until(() => warned.mock.calls.length === 1);
    expect(readdirSync(join(bed.dir, 'epochs'))).toEqual([]);
    child.kill('SIGKILL');
    expect((await opening).epochs).toHaveLength(1);
    expect(warned).toHaveBeenCalledTimes(1);
  });

  test('an agent whose lock file is deleted leaves the spool to the one that locks the next file', async () => {
    const first = await bed.open();
    await write(first, 1, 3);
    rmSync(join(bed.dir, 'lock'));
    const second = await bed.open();
    await second.startHeartbeat(() => second.start);
    const { incarnation } = second.current.meta;
    await first.startHeartbeat(() => first.start);
    expect(first.full.aborted).toBe(true);
    expect(first.error).toContain('lock');
    expect(second.full.aborted).toBe(false);
    first.current.declareLost({ from: 1, to: 3, cause: 'spool_unreadable' });
    await bed.close(first);
    expect(existsSync(join(first.current.dir, 'lost.json'))).toBe(false);
    const heartbeat = JSON.parse(readFileSync(join(bed.dir, 'heartbeat.json'), 'utf8'));
    expect(heartbeat).toMatchObject({ incarnation });
  });

  test('an agent whose folder is replaced leaves the new one to whoever locks it', async () => {
    const spool = await bed.open();
    await write(spool, 1, 3);
    rmSync(bed.dir, { recursive: true });
    mkdirSync(bed.dir);
    await spool.startHeartbeat(() => spool.start);
    expect(spool.full.aborted).toBe(true);
    await bed.close(spool);
    const next = await bed.open();
    await write(next, 1, 3);
    expect(next.error).toBeNull();
    expect(await readAll(next.current)).toEqual(upTo(3));
  });

  test('the lock file that a dead agent left does not keep the next one waiting', async () => {
    const warned = vi.fn();
    const log = Object.assign(createLogger('fatal', 'test'), { warn: warned });
    writeFileSync(join(bed.dir, 'lock'), '');
    expect((await bed.open({ log })).epochs).toHaveLength(1);
    expect(warned).not.toHaveBeenCalled();
  });

  test.skipIf(process.getuid?.() !== 0)(
    'an agent waits for a spool that another one has under another path',
    async () => {
      const other = mkdtempSync(join(tmpdir(), 'plegwatch-bind-'));
      execFileSync('mount', ['--bind', bed.dir, other]);
      try {
        const first = await bed.open();
        const warned = vi.fn();
        const log = Object.assign(createLogger('fatal', 'test'), { warn: warned });
        const opening = bed.open({ dir: other, log });
        await passes(() => expect(warned).toHaveBeenCalledTimes(1));
        await bed.close(first);
        await bed.close(await opening);
      } finally {
        execFileSync('umount', [other]);
        rmSync(other, { recursive: true });
      }
    },
  );

  test('waiting for the lock ends when the agent is stopped', async () => {
    await bed.open();
    const stop = new AbortController();
    const second = openSpool(spoolOptions(bed.dir), stop.signal);
    stop.abort(new Error('enough'));
    await expect(second).rejects.toThrow();
  });

  test('a spool folder that cannot be created is reported with its cure', async () => {
    writeFileSync(join(bed.dir, 'file'), '');
    await expect(bed.open({ dir: join(bed.dir, 'file') })).rejects.toMatchObject({
      code: 'SPOOL_UNUSABLE',
      cure: expect.stringContaining('--spool-dir'),
    });
  });
});
