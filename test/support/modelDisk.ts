/*
 * A disk that loses power, for tests of the spool: what was not synced is there after that in part, or not at all.
 *
 *   data    of a file: what was synced, and then a beginning of what was written since, or zeros in its place
 *   names   of a folder: what was synced, and then the first few of the changes since, in their order
 *
 * A file that was synced is lost all the same where its name was not. After the cut every call fails.
 */
import { basename, dirname } from 'node:path';
import type { SpoolFile, SpoolFiles } from '../../src/agent/spool/files.ts';

interface File {
  readonly is: 'file';
  written: Buffer;
  synced: Buffer;
}
interface Folder {
  readonly is: 'folder';
  readonly names: Map<string, File | Folder>;
  /** The names as they are on the disk, and what has changed since. */
  readonly synced: Map<string, File | Folder>;
  changes: Change[];
}
/** What a name stands for from now on; null: for nothing. A rename is two of them, and they happen together. */
type Change = readonly { readonly name: string; readonly to: File | Folder | null }[];

/** Chance: a number in [0, 1). */
export type Luck = () => number;

const file = (): File => ({ is: 'file', written: Buffer.alloc(0), synced: Buffer.alloc(0) });
const folder = (): Folder => ({ is: 'folder', names: new Map(), synced: new Map(), changes: [] });

export class ModelDisk implements SpoolFiles {
  /** Told when a file is synced: its path and what it holds. */
  onSynced: (path: string, text: string) => void = () => undefined;
  #root: Folder = folder();
  #left = Number.POSITIVE_INFINITY;

  /** Power is cut at so many steps from now; Infinity: never. */
  cutAfter(steps: number): void {
    this.#left = steps;
  }

  get isOff(): boolean {
    return this.#left <= 0;
  }

  /** Power is back: what is left is what the disk had, and luck. */
  comeBack(luck: Luck): void {
    this.#root = survivor(this.#root, luck);
    this.#left = Number.POSITIVE_INFINITY;
  }

  async open(path: string, flags: 'r' | 'w' | 'ax'): Promise<SpoolFile> {
    await this.#step();
    const parent = this.#folder(dirname(path));
    const there = parent.names.get(basename(path));
    if (flags === 'r') return this.#handle(path, there ?? this.#root_(path));
    if (there !== undefined && flags === 'ax') throw failure('EEXIST', path);
    // A file that is written anew under the same name: the old one stays on the disk until the name is synced.
    const made = file();
    change(parent, [{ name: basename(path), to: made }]);
    return this.#handle(path, made);
  }

  async readText(path: string): Promise<string> {
    await this.#step();
    return this.#file(path).written.toString('utf8');
  }

  async makeFolder(path: string): Promise<void> {
    await this.#step();
    let at = this.#root;
    for (const name of path.split('/').filter(Boolean)) {
      if (!at.names.has(name)) change(at, [{ name, to: folder() }]);
      const next = at.names.get(name);
      if (next?.is !== 'folder') throw failure('ENOTDIR', path);
      at = next;
    }
  }

  async list(path: string): Promise<string[]> {
    await this.#step();
    return [...this.#folder(path).names.keys()];
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#step();
    const parent = this.#folder(dirname(from));
    if (dirname(to) !== dirname(from)) throw new Error('only within one folder');
    change(parent, [
      { name: basename(from), to: null },
      { name: basename(to), to: this.#file(from) },
    ]);
  }

  async remove(path: string): Promise<void> {
    await this.#step();
    const parent = this.#folder(dirname(path));
    if (parent.names.has(basename(path))) change(parent, [{ name: basename(path), to: null }]);
  }

  async stat(path: string): Promise<{ size: number; mtimeMs: number }> {
    await this.#step();
    return { size: this.#file(path).written.length, mtimeMs: 0 };
  }

  async usage(): Promise<number> {
    await this.#step();
    return 0;
  }

  #handle(path: string, node: File | Folder): SpoolFile {
    return {
      write: async (text) => {
        await this.#step();
        const bytes = Buffer.from(text, 'utf8');
        if (node.is === 'file') node.written = Buffer.concat([node.written, bytes]);
        return { bytesWritten: bytes.length };
      },
      read: async (into, offset, length, at) => {
        await this.#step();
        const bytesRead = node.is === 'file' ? node.written.copy(into, offset, at, at + length) : 0;
        return { bytesRead };
      },
      datasync: async () => {
        await this.#step();
        if (node.is !== 'file') return;
        node.synced = node.written;
        this.onSynced(path, node.written.toString('utf8'));
      },
      sync: async () => {
        await this.#step();
        if (node.is !== 'folder') return;
        for (const each of node.changes) apply(node.synced, each);
        node.changes = [];
      },
      close: async () => undefined,
    };
  }

  /** Every call gives way to others, and is the one at which power is cut, or comes too late. */
  async #step(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#left -= 1;
    if (this.#left <= 0) throw failure('EIO', 'the power is off');
  }

  #root_(path: string): Folder {
    if (path === '/') return this.#root;
    throw failure('ENOENT', path);
  }

  #folder(path: string): Folder {
    let at = this.#root;
    for (const name of path.split('/').filter(Boolean)) {
      const next = at.names.get(name);
      if (next?.is !== 'folder') throw failure('ENOENT', path);
      at = next;
    }
    return at;
  }

  #file(path: string): File {
    const there = this.#folder(dirname(path)).names.get(basename(path));
    if (there?.is !== 'file') throw failure('ENOENT', path);
    return there;
  }
}

function change(parent: Folder, what: Change): void {
  apply(parent.names, what);
  parent.changes.push(what);
}

function apply(names: Map<string, File | Folder>, what: Change): void {
  for (const { name, to } of what) {
    if (to === null) names.delete(name);
    else names.set(name, to);
  }
}

function survivor(old: Folder, luck: Luck): Folder {
  const names = new Map(old.synced);
  for (const each of old.changes.slice(0, Math.floor(luck() * (old.changes.length + 1)))) apply(names, each);
  const left = folder();
  for (const [name, node] of names) {
    const there = node.is === 'folder' ? survivor(node, luck) : remains(node, luck);
    left.names.set(name, there);
    left.synced.set(name, there);
  }
  return left;
}

function remains({ written, synced }: File, luck: Luck): File {
  const since = written.subarray(synced.length);
  const kept = since.subarray(0, Math.floor(luck() * (since.length + 1)));
  // The length may be there before the data is.
  const zeros = luck() < 0.3 ? Buffer.alloc(since.length - kept.length) : Buffer.alloc(0);
  const data = Buffer.concat([synced, kept, zeros]);
  return { is: 'file', written: data, synced: data };
}

function failure(code: string, about: string): Error {
  return Object.assign(new Error(`${code}: ${about}`), { code });
}
