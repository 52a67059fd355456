/*
 * A disk that loses power, for tests of the spool. After a power cut, what was not synced is there in part or not at all:
 *
 *   data of a file      what was synced, then a prefix of what was written after that, or zeros in its place
 *   names in a folder   those that were synced, then the first few of the changes after that, in order
 *
 * A synced file is lost if its name was not synced. While power is off every call fails. A sync may fail: then what it should have written
 * is never written, although later syncs succeed.
 */
import { basename, dirname } from 'node:path';
import type { SpoolFile, SpoolFiles } from '../../src/agent/spool/files.ts';

interface ModelFile {
  readonly is: 'file';
  written: Buffer;
  synced: Buffer;
  mtimeMs: number;
  /** Where data is that a failed sync has dropped: only the page cache has it, and no sync writes it any more. */
  dropped: { readonly from: number; readonly to: number }[];
}
interface ModelFolder {
  readonly is: 'folder';
  readonly names: Map<string, ModelFile | ModelFolder>;
  /** The synced names, and the changes after that. */
  readonly synced: Map<string, ModelFile | ModelFolder>;
  changes: NameChange[];
}
/** The targets of names from now on; null: to nothing. The two changes of a rename happen together. */
type NameChange = readonly { readonly name: string; readonly to: ModelFile | ModelFolder | null }[];

/** A random number in [0, 1). */
type Luck = () => number;

const file = (): ModelFile => ({
  is: 'file',
  written: Buffer.alloc(0),
  synced: Buffer.alloc(0),
  mtimeMs: Date.now(),
  dropped: [],
});
const folder = (): ModelFolder => ({ is: 'folder', names: new Map(), synced: new Map(), changes: [] });

export class ModelDisk implements SpoolFiles {
  /** Called when a file is synced, with its path and its content. */
  onSynced: (path: string, text: string) => void = () => undefined;
  #root: ModelFolder = folder();
  #left = Number.POSITIVE_INFINITY;
  #failingSyncs = 0;
  #syncCode = 'EIO';

  /** Makes the next syncs of files fail: their data stays in the page cache, as if it was written. */
  failSyncs(count: number, code = 'EIO'): void {
    this.#failingSyncs = count;
    this.#syncCode = code;
  }

  /** Cuts power after this many calls. Infinity: never. */
  cutAfter(steps: number): void {
    this.#left = steps;
  }

  get isOff(): boolean {
    return this.#left <= 0;
  }

  /** Power is back: keeps what was synced, and at random some of the rest. */
  comeBack(luck: Luck): void {
    this.#root = survivor(this.#root, luck);
    this.#left = Number.POSITIVE_INFINITY;
  }

  async open(path: string, flags: 'r' | 'w' | 'ax'): Promise<SpoolFile> {
    await this.#step();
    const parent = this.#folder(dirname(path));
    const there = parent.names.get(basename(path));
    if (flags === 'r') return this.#handle(path, there ?? this.#rootAt(path));
    if (there !== undefined && flags === 'ax') throw failure('EEXIST', path);
    // When a file is replaced, the old one stays on the disk until the name is synced.
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
    const { written, mtimeMs } = this.#file(path);
    return { size: written.length, mtimeMs };
  }

  async usage(): Promise<number> {
    await this.#step();
    return 0;
  }

  #handle(path: string, node: ModelFile | ModelFolder): SpoolFile {
    return {
      write: async (text) => {
        await this.#step();
        const bytes = Buffer.from(text, 'utf8');
        if (node.is === 'file') {
          node.written = Buffer.concat([node.written, bytes]);
          node.mtimeMs = Date.now();
        }
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
        if (this.#failingSyncs > 0) {
          this.#failingSyncs -= 1;
          node.dropped.push({ from: node.synced.length, to: node.written.length });
          node.synced = onDisk(node);
          throw failure(this.#syncCode, 'the sync failed');
        }
        node.synced = onDisk(node);
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

  /** Every call lets others run first. Fails at and after the power cut. */
  async #step(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#left -= 1;
    if (this.#left <= 0) throw failure('EIO', 'the power is off');
  }

  #rootAt(path: string): ModelFolder {
    if (path === '/') return this.#root;
    throw failure('ENOENT', path);
  }

  #folder(path: string): ModelFolder {
    let at = this.#root;
    for (const name of path.split('/').filter(Boolean)) {
      const next = at.names.get(name);
      if (next?.is !== 'folder') throw failure('ENOENT', path);
      at = next;
    }
    return at;
  }

  #file(path: string): ModelFile {
    const there = this.#folder(dirname(path)).names.get(basename(path));
    if (there?.is !== 'file') throw failure('ENOENT', path);
    return there;
  }
}

/** The content of a file after a sync: dropped data is zeros. */
function onDisk({ written, dropped }: ModelFile): Buffer {
  const content = Buffer.from(written);
  for (const { from, to } of dropped) content.fill(0, from, to);
  return content;
}

function change(parent: ModelFolder, what: NameChange): void {
  apply(parent.names, what);
  parent.changes.push(what);
}

function apply(names: Map<string, ModelFile | ModelFolder>, what: NameChange): void {
  for (const { name, to } of what) {
    if (to === null) names.delete(name);
    else names.set(name, to);
  }
}

function survivor(old: ModelFolder, luck: Luck): ModelFolder {
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

function remains({ written, synced, mtimeMs }: ModelFile, luck: Luck): ModelFile {
  const since = written.subarray(synced.length);
  const kept = since.subarray(0, Math.floor(luck() * (since.length + 1)));
  // The length may be there before the data is.
  const zeros = luck() < 0.3 ? Buffer.alloc(since.length - kept.length) : Buffer.alloc(0);
  const data = Buffer.concat([synced, kept, zeros]);
  return { is: 'file', written: data, synced: data, mtimeMs, dropped: [] };
}

function failure(code: string, about: string): Error {
  return Object.assign(new Error(`${code}: ${about}`), { code });
}
