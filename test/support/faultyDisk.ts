/*
 * A disk with faults, for tests of the spool: sectors that cannot be read or are read from another place, bits that are read
 * flipped, and calls that fail.
 */
import { LOCAL_FILES, type SpoolFile, type SpoolFiles } from '../../src/agent/spool/files.ts';

export const SECTOR_BYTES = 4096;

/** A call to the disk: `write`, `datasync` and so on, with the path of its file. */
export interface DiskCall {
  readonly name: keyof SpoolFiles | keyof SpoolFile;
  readonly path: string;
}

interface Misdirection {
  readonly path: string;
  readonly sector: number;
  /** The sector that is read in its place. */
  readonly other: number;
  /** How many reads are wrong. */
  times: number;
}

export class FaultyDisk implements SpoolFiles {
  /** The error code with which a call fails, at once or later; null: it does not. A close fails after it closed the file. */
  faultOf: (call: DiskCall) => string | null | Promise<string | null> = () => null;
  readonly #disk: SpoolFiles;
  readonly #unreadable: { readonly path: string; readonly sector: number }[] = [];
  readonly #misdirected: Misdirection[] = [];
  readonly #flipped: { readonly path: string; readonly bit: number }[] = [];

  constructor(disk: SpoolFiles = LOCAL_FILES) {
    this.#disk = disk;
  }

  /** Makes the sector of a file that contains this byte unreadable. */
  breakSector(path: string, byte: number): void {
    this.#unreadable.push({ path, sector: Math.floor(byte / SECTOR_BYTES) });
  }

  /** This many reads return another sector of the file in place of one. */
  misdirect(path: string, sector: number, other: number, times = Number.POSITIVE_INFINITY): void {
    this.#misdirected.push({ path, sector, other, times });
  }

  /** Reads return this bit of a file flipped. */
  flip(path: string, bit: number): void {
    this.#flipped.push({ path, bit });
  }

  mend(): void {
    this.#unreadable.length = 0;
    this.#misdirected.length = 0;
    this.#flipped.length = 0;
    this.faultOf = () => null;
  }

  async open(path: string, flags: 'r' | 'w' | 'ax'): Promise<SpoolFile> {
    const file = await this.#call('open', path, () => this.#disk.open(path, flags));
    return {
      write: (text) => this.#call('write', path, () => file.write(text)),
      read: (into, offset, length, at) =>
        this.#call('read', path, async () => {
          this.#check(path, at, at + length);
          const { bytesRead } = await file.read(into, offset, length, at);
          const bytes = into.subarray(offset, offset + bytesRead);
          await this.#readElsewhere(file, path, bytes, at);
          this.#readFlipped(path, bytes, at);
          return { bytesRead };
        }),
      datasync: () => this.#call('datasync', path, () => file.datasync()),
      sync: () => this.#call('sync', path, () => file.sync()),
      close: async () => {
        await file.close();
        await this.#call('close', path, async () => undefined);
      },
    };
  }
  readText = (path: string) =>
    this.#call('readText', path, async () => {
      this.#check(path, 0, Number.POSITIVE_INFINITY);
      return this.#disk.readText(path);
    });
  makeFolder = (path: string) => this.#call('makeFolder', path, () => this.#disk.makeFolder(path));
  list = (path: string) => this.#call('list', path, () => this.#disk.list(path));
  rename = (from: string, to: string) => this.#call('rename', from, () => this.#disk.rename(from, to));
  remove = (path: string) => this.#call('remove', path, () => this.#disk.remove(path));
  stat = (path: string) => this.#call('stat', path, () => this.#disk.stat(path));
  usage = (path: string) => this.#call('usage', path, () => this.#disk.usage(path));

  async #call<T>(name: DiskCall['name'], path: string, work: () => Promise<T>): Promise<T> {
    const code = await this.faultOf({ name, path });
    if (code !== null) throw failure(code, `${name} ${path}`);
    return work();
  }

  /** `bytes`: what was read at `at`. */
  async #readElsewhere(file: SpoolFile, path: string, bytes: Buffer, at: number): Promise<void> {
    for (const each of this.#misdirected) {
      const start = each.sector * SECTOR_BYTES;
      const [from, to] = [Math.max(at, start), Math.min(at + bytes.length, start + SECTOR_BYTES)];
      if (each.path !== path || from >= to || each.times <= 0) continue;
      each.times -= 1;
      await file.read(bytes, from - at, to - from, each.other * SECTOR_BYTES + from - start);
    }
  }

  #readFlipped(path: string, bytes: Buffer, at: number): void {
    for (const each of this.#flipped) {
      const place = Math.floor(each.bit / 8) - at;
      const byte = bytes[place];
      if (each.path === path && byte !== undefined) bytes[place] = byte ^ (1 << (each.bit % 8));
    }
  }

  #check(path: string, from: number, to: number): void {
    const isBroken = this.#unreadable.some(
      (each) =>
        each.path === path && each.sector * SECTOR_BYTES < to && (each.sector + 1) * SECTOR_BYTES > from,
    );
    if (isBroken) throw failure('EIO', `read ${path}`);
  }
}

const failure = (code: string, about: string): Error =>
  Object.assign(new Error(`${code}: ${about}`), { code });
