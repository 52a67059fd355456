/*
 * Reads a tar file. Only short names, as in ustar.
 */
export interface TarEntry {
  /** '0' a file, '2' a link, '5' a folder. */
  readonly type: string;
  readonly mode: number;
  readonly data: Buffer;
  readonly target: string;
}

/** By path, without a trailing slash. */
export function readTar(archive: Buffer): Map<string, TarEntry> {
  const entries = new Map<string, TarEntry>();
  const text = (at: number, length: number) => {
    const field = archive.toString('utf8', at, at + length);
    return field.includes('\0') ? field.slice(0, field.indexOf('\0')) : field;
  };
  for (let at = 0; archive[at] !== 0 && at < archive.length; ) {
    const size = Number.parseInt(text(at + 124, 12), 8);
    const data = archive.subarray(at + 512, at + 512 + size);
    const path = text(at, 100).replace(/^\.\//, '').replace(/\/$/, '');
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
