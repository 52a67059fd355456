/*
 * A small tmpfs, which only root can mount: it can be filled to its last byte.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../devtools/localServices/process.ts';
import { messageOf } from '../../src/platform/errors.ts';

const SIZE = '16m';
const BLOCK = Buffer.alloc(256 * 1024, 1);

export class LimitedDisk {
  readonly dir: string;

  private constructor(dir: string) {
    this.dir = dir;
  }

  /** Why this machine cannot mount one; null if it can. */
  static async whyNot(): Promise<string | null> {
    if (process.getuid?.() !== 0) return 'only root can mount a tmpfs';
    const dir = join(process.env['TMPDIR'] ?? '/tmp', `plegwatch-disk-${process.pid}`);
    try {
      const disk = await mounted(dir);
      await disk.remove();
      return null;
    } catch (error) {
      return messageOf(error);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  }

  /** Mounts one; null if this machine cannot. */
  static async make(dir: string): Promise<LimitedDisk | null> {
    return (await LimitedDisk.whyNot()) === null ? mounted(dir) : null;
  }

  /** Writes until the disk is full. */
  fill(): void {
    const block = (size: number, at: number) =>
      writeFileSync(join(this.dir, `ballast-${size}-${at}`), BLOCK.subarray(0, size));
    for (const size of [BLOCK.length, 4096]) {
      try {
        for (let at = 0; ; at += 1) block(size, at);
      } catch (error) {
        if (Reflect.get(Object(error), 'code') !== 'ENOSPC') throw error;
      }
    }
  }

  async free(): Promise<void> {
    await run('/bin/sh', ['-c', 'rm -f "$0"/ballast-*', this.dir]);
  }

  async remove(): Promise<void> {
    await run('umount', [this.dir]);
  }

  /** Unmounts one that was left behind. */
  static async sweep(dir: string): Promise<void> {
    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
    if (mounts.some((line) => line.split(' ')[1] === dir)) await run('umount', [dir]);
  }

  static of(dir: string): LimitedDisk {
    return new LimitedDisk(dir);
  }
}

async function mounted(dir: string): Promise<LimitedDisk> {
  mkdirSync(dir, { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'plegwatch-torture', dir]);
  return LimitedDisk.of(dir);
}
