/*
 * The memory fallback: files are written to the disk until it is engaged, and to memory while it is. A file is read and
 * removed where it is.
 *
 *   on disk ── engage ──► in memory ── disengage ──► on disk
 *
 * Files in memory are gone when the process ends.
 */
import { join } from 'node:path';
import { type SpoolFile, type SpoolFiles, writeDurably } from './files.ts';
import { MemoryFiles } from './memoryFiles.ts';

/** The name of a file that is written to find out whether the disk works. */
const TEST_FILE = 'probe';

export class MemoryFallback implements SpoolFiles {
  readonly #disk: SpoolFiles;
  readonly #memory = new MemoryFiles();
  #reason: string | null = null;

  constructor(disk: SpoolFiles) {
    this.#disk = disk;
  }

  get isEngaged(): boolean {
    return this.#reason !== null;
  }

  /** Why it is engaged; null while it is not. */
  get reason(): string | null {
    return this.#reason;
  }

  get bytes(): number {
    return this.#memory.bytes;
  }

  engage(reason: string): void {
    this.#reason ??= reason;
  }

  /** Writes to the disk again, if it accepts a file. Files in memory stay there. Returns whether the disk is used again. */
  async disengage(dir: string): Promise<boolean> {
    try {
      await writeDurably(this.#disk, dir, TEST_FILE, {});
      await this.#disk.remove(join(dir, TEST_FILE));
    } catch {
      // The disk still fails: the return value says so.
      return false;
    }
    this.#reason = null;
    return true;
  }

  holds(path: string): boolean {
    return this.#memory.has(path);
  }

  open(path: string, flags: 'r' | 'w' | 'ax'): Promise<SpoolFile> {
    return (flags === 'r' ? this.#sideOf(path) : this.#writeSide).open(path, flags);
  }

  readText(path: string): Promise<string> {
    return this.#sideOf(path).readText(path);
  }

  makeFolder(path: string): Promise<void> {
    return this.#writeSide.makeFolder(path);
  }

  list(path: string): Promise<string[]> {
    return this.#writeSide.list(path);
  }

  rename(from: string, to: string): Promise<void> {
    return this.#sideOf(from).rename(from, to);
  }

  async remove(path: string): Promise<void> {
    if (this.#memory.has(path)) return this.#memory.remove(path);
    await this.#memory.remove(path);
    await this.#disk.remove(path);
  }

  stat(path: string): Promise<{ readonly size: number; readonly mtimeMs: number }> {
    return this.#sideOf(path).stat(path);
  }

  /** The usage of the disk, whether it is written to or not. */
  usage(path: string): Promise<number> {
    return this.#disk.usage(path);
  }

  get #writeSide(): SpoolFiles {
    return this.#reason === null ? this.#disk : this.#memory;
  }

  /** Where a file is. A folder, like a file that does not exist, counts as where files are written. */
  #sideOf(path: string): SpoolFiles {
    if (this.#memory.has(path)) return this.#memory;
    return path.endsWith('.seg') ? this.#disk : this.#writeSide;
  }
}
