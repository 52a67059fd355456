/*
 * Reads a tar file. Only short names, as in ustar, and no two entries of one name: readers differ in which of them they take.
 */
export interface TarEntry {
  /** '0' a file, '2' a link, '5' a folder. */
  readonly type: string;
  readonly mode: number;
  readonly data: Buffer;
  readonly target: string;
}

/** By path, without a trailing slash. Throws if it is none. */
export function readTar(archive: Buffer): Map<string, TarEntry> {
  const entries = new Map<string, TarEntry>();
  const text = (at: number, length: number) => {
    const field = archive.toString('utf8', at, at + length);
    return field.includes('\0') ? field.slice(0, field.indexOf('\0')) : field;
  };
  for (let at = 0; archive[at] !== 0 && at < archive.length; ) {
    const size = sizeOf(text(at + 124, 12));
    const data = archive.subarray(at + 512, at + 512 + size);
    const path = text(at, 100).replace(/^\.\//, '').replace(/\/$/, '');
    if (entries.has(path)) throw new Error(`two entries are called ${path}`);
    if (data.length !== size) throw new Error(`${path} is cut off`);
    entries.set(path, {
      type: text(at + 156, 1),
      // Some writers repeat the type here.
      mode: Number.parseInt(text(at + 100, 8), 8) & 0o7777,
      data,
      target: text(at + 157, 100),
    });
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return entries;
}

function sizeOf(octal: string): number {
  if (!/^[0-7]+ *$/.test(octal)) throw new Error('not a tar file');
  return Number.parseInt(octal, 8);
}
