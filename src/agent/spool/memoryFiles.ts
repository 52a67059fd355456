/*
 * Files in memory: what the spool writes to where it may not, or cannot, use the disk. Nothing of them outlives the process.
 *
 * Folders are only the beginnings of names: any of them is there.
 */
import type { Files, OpenFile } from './files.ts';

interface Kept {
  buffer: Buffer;
  length: number;
  mtimeMs: number;
}

const FIRST_BYTES = 4_096;

export class MemoryFiles implements Files {
  readonly #kept = new Map<string, Kept>();

  has(path: string): boolean {
    return this.#kept.has(path);
  }

  get bytes(): number {
    return [...this.#kept.values()].reduce((sum, { length }) => sum + length, 0);
  }

  async open(path: string, flags: 'r' | 'w' | 'ax'): Promise<OpenFile> {
    const there = this.#kept.get(path);
    if (flags === 'r') return handle(there ?? empty());
    if (flags === 'ax' && there !== undefined) throw failure('EEXIST', path);
    const made = empty();
    this.#kept.set(path, made);
    return handle(made);
  }

  async readText(path: string): Promise<string> {
    const { buffer, length } = this.#file(path);
    return buffer.toString('utf8', 0, length);
  }

  async makeFolder(): Promise<void> {}

  async list(path: string): Promise<string[]> {
    const names = [...this.#kept.keys()]
      .filter((each) => each.startsWith(`${path}/`))
      .map((each) => each.slice(path.length + 1).split('/')[0] ?? '');
    return [...new Set(names)];
  }

  async rename(from: string, to: string): Promise<void> {
    this.#kept.set(to, this.#file(from));
    this.#kept.delete(from);
  }

  async remove(path: string): Promise<void> {
    for (const each of this.#kept.keys()) {
      if (each === path || each.startsWith(`${path}/`)) this.#kept.delete(each);
    }
  }

  async stat(path: string): Promise<{ size: number; mtimeMs: number }> {
    const { length, mtimeMs } = this.#file(path);
    return { size: length, mtimeMs };
  }

  async full(): Promise<number> {
    return 0;
  }

  #file(path: string): Kept {
    const there = this.#kept.get(path);
    if (there === undefined) throw failure('ENOENT', path);
    return there;
  }
}

const empty = (): Kept => ({ buffer: Buffer.alloc(0), length: 0, mtimeMs: Date.now() });

function handle(kept: Kept): OpenFile {
  return {
    async write(text) {
      const bytes = Buffer.from(text, 'utf8');
      const end = kept.length + bytes.length;
      if (end > kept.buffer.length) {
        const grown = Buffer.alloc(Math.max(FIRST_BYTES, end, 2 * kept.buffer.length));
        kept.buffer.copy(grown, 0, 0, kept.length);
        kept.buffer = grown;
      }
      bytes.copy(kept.buffer, kept.length);
      kept.length = end;
      kept.mtimeMs = Date.now();
      return { bytesWritten: bytes.length };
    },
    async read(into, offset, length, at) {
      return { bytesRead: kept.buffer.copy(into, offset, at, Math.min(kept.length, at + length)) };
    },
    async datasync() {},
    async sync() {},
    async close() {},
  };
}

const failure = (code: string, about: string): Error =>
  Object.assign(new Error(`${code}: ${about}`), { code });
