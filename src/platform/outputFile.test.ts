import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { FileHandle, open, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { makeFolder, writeOutput } from './outputFile.ts';

/** The calls to the disk, in order, and the errors by which it answers one instead of doing it. */
const calls: string[] = [];
const faults = new Map<string, string>();

vi.mock('node:fs/promises', async (original) => {
  const fs = await original<{ open: typeof open; rename: typeof rename }>();
  return {
    ...fs,
    async open(path: string, flags?: string) {
      const handle = await fs.open(path, flags);
      const sync = handle.sync.bind(handle);
      return Object.assign(handle, { sync: () => called(`sync ${relative(dir, path)}`, sync) }) as FileHandle;
    },
    rename: (from: string, to: string) =>
      called(`rename ${relative(dir, from)} ${relative(dir, to)}`, () => fs.rename(from, to)),
  };
});

async function called(call: string, work: () => Promise<void>): Promise<void> {
  calls.push(call);
  const code = faults.get(call);
  if (code !== undefined) throw Object.assign(new Error(`${code}: on purpose`), { code });
  await work();
}

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'output-'));
  calls.length = 0;
  faults.clear();
});
afterEach(() => rmSync(dir, { recursive: true }));

const write = () => writeOutput('--dir', join(dir, 'a'), ['text']);

test('a file, its name and the names of new folders above it are on the disk when it is written', async () => {
  await makeFolder('--dir', join(dir, 'x', 'y'));
  await writeOutput('--dir', join(dir, 'x', 'y', 'a'), ['text']);
  expect(calls).toEqual(['sync x', 'sync ', 'sync x/y/a.part', 'rename x/y/a.part x/y/a', 'sync x/y']);
  calls.length = 0;
  await makeFolder('--dir', join(dir, 'x', 'y'));
  expect(calls).toEqual([]);
});

test.each(['EINVAL', 'ENOTSUP', 'EPERM', 'EISDIR', 'EBADF'])(
  'a file is written where a folder cannot be synced: %s',
  async (code) => {
    faults.set('sync ', code);
    await write();
    expect(readFileSync(join(dir, 'a'), 'utf8')).toBe('text');
  },
);

test('a disk that fails to keep a name is an error', async () => {
  faults.set('sync ', 'EIO');
  await expect(write()).rejects.toMatchObject({ code: 'EXPORT_UNWRITABLE' });
});

test.each(['ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EPERM', 'EXDEV', 'EINVAL'])(
  'a mount that cannot rename is named as that, and nothing is left there: %s',
  async (code) => {
    faults.set('rename a.part a', code);
    await expect(write()).rejects.toMatchObject({
      code: 'EXPORT_UNWRITABLE',
      cure: expect.stringMatching(/rename.*--dir/),
    });
    expect(readdirSync(dir)).toEqual([]);
  },
);
