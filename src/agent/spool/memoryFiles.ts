/*
 * Files in memory, gone when the process ends. Folders are only prefixes of file names, so every folder exists.
 */
import type { SpoolFile, SpoolFiles } from './files.ts';

interface MemoryFile {
  buffer: Buffer;
  length: number;
  mtimeMs: number;
}

const INITIAL_BYTES = 4_096;

export class MemoryFiles implements SpoolFiles {
  readonly #files = new Map<string, MemoryFile>();

  has(path: string): boolean {
    return this.#files.has(path);
  }

  get bytes(): number {
    return [...this.#files.values()].reduce((sum, { length }) => sum + length, 0);
  }

  async open(path: string, flags: 'r' | 'w' | 'ax'): Promise<SpoolFile> {
    const existing = this.#files.get(path);
    if (flags === 'r') return handleOf(existing ?? empty());
    if (flags === 'ax' && existing !== undefined) throw failure('EEXIST', path);
    const created = empty();
    this.#files.set(path, created);
    return handleOf(created);
  }

  async readText(path: string): Promise<string> {
    const { buffer, length } = this.#file(path);
    return buffer.toString('utf8', 0, length);
  }

  async makeFolder(): Promise<void> {}

  async list(path: string): Promise<string[]> {
    const names = [...this.#files.keys()]
      .filter((each) => each.startsWith(`${path}/`))
      .map((each) => each.slice(path.length + 1).split('/')[0] ?? '');
    return [...new Set(names)];
  }

  async rename(from: string, to: string): Promise<void> {
    this.#files.set(to, this.#file(from));
    this.#files.delete(from);
  }

  async remove(path: string): Promise<void> {
    for (const each of this.#files.keys()) {
      if (each === path || each.startsWith(`${path}/`)) this.#files.delete(each);
    }
  }

  async stat(path: string): Promise<{ size: number; mtimeMs: number }> {
    const { length, mtimeMs } = this.#file(path);
    return { size: length, mtimeMs };
  }

  async usage(): Promise<number> {
    return 0;
  }

  #file(path: string): MemoryFile {
    const file = this.#files.get(path);
    if (file === undefined) throw failure('ENOENT', path);
    return file;
  }
}

const empty = (): MemoryFile => ({ buffer: Buffer.alloc(0), length: 0, mtimeMs: Date.now() });

function handleOf(file: MemoryFile): SpoolFile {
  return {
    async write(text) {
      const bytes = Buffer.from(text, 'utf8');
      const end = file.length + bytes.length;
      if (end > file.buffer.length) {
        const grown = Buffer.alloc(Math.max(INITIAL_BYTES, end, 2 * file.buffer.length));
        file.buffer.copy(grown, 0, 0, file.length);
        file.buffer = grown;
      }
      bytes.copy(file.buffer, file.length);
      file.length = end;
      file.mtimeMs = Date.now();
      return { bytesWritten: bytes.length };
    },
    async read(into, offset, length, at) {
      return { bytesRead: file.buffer.copy(into, offset, at, Math.min(file.length, at + length)) };
    },
    async datasync() {},
    async sync() {},
    async close() {},
  };
}

const failure = (code: string, about: string): Error =>
  Object.assign(new Error(`${code}: ${about}`), { code });
