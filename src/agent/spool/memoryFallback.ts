/*
 * A disk with a refuge: what is written goes to the disk until the spool flees, and into memory from then on. What lies on
 * either side is read, and removed, where it lies.
 *
 *   on the disk ── flee ──► in memory ── goBack ──► on the disk
 *
 * Files in memory do not outlive the process.
 */
import { join } from 'node:path';
import { type Files, type OpenFile, writeDurably } from './files.ts';
import { MemoryFiles } from './memoryFiles.ts';

const PROBE = 'probe';

export class Refuge implements Files {
  readonly #disk: Files;
  readonly #memory = new MemoryFiles();
  #reason: string | null = null;

  constructor(disk: Files) {
    this.#disk = disk;
  }

  /** Why it is in memory; null while it is on the disk. */
  get reason(): string | null {
    return this.#reason;
  }

  /** What lies in memory. */
  get bytes(): number {
    return this.#memory.bytes;
  }

  flee(reason: string): void {
    this.#reason ??= reason;
  }

  /** Goes back if the disk takes a file; what lies in memory stays there until it is removed. */
  async goBack(dir: string): Promise<boolean> {
    try {
      await writeDurably(this.#disk, dir, PROBE, {});
      await this.#disk.remove(join(dir, PROBE));
    } catch {
      // What was wrong with the disk still is: that is the answer.
      return false;
    }
    this.#reason = null;
    return true;
  }

  /** Whether a file lies in memory. */
  holds(path: string): boolean {
    return this.#memory.has(path);
  }

  open(path: string, flags: 'r' | 'w' | 'ax'): Promise<OpenFile> {
    return (flags === 'r' ? this.#of(path) : this.#side).open(path, flags);
  }

  readText(path: string): Promise<string> {
    return this.#of(path).readText(path);
  }

  makeFolder(path: string): Promise<void> {
    return this.#side.makeFolder(path);
  }

  list(path: string): Promise<string[]> {
    return this.#side.list(path);
  }

  rename(from: string, to: string): Promise<void> {
    return this.#of(from).rename(from, to);
  }

  async remove(path: string): Promise<void> {
    if (this.#memory.has(path)) return this.#memory.remove(path);
    await this.#memory.remove(path);
    await this.#disk.remove(path);
  }

  stat(path: string): Promise<{ readonly size: number; readonly mtimeMs: number }> {
    return this.#of(path).stat(path);
  }

  /** Of the disk, also while it is not written to. */
  full(path: string): Promise<number> {
    return this.#disk.full(path);
  }

  get #side(): Files {
    return this.#reason === null ? this.#disk : this.#memory;
  }

  /** A folder is wherever is written to. */
  #of(path: string): Files {
    if (this.#memory.has(path)) return this.#memory;
    return path.endsWith('.seg') ? this.#disk : this.#side;
  }
}
