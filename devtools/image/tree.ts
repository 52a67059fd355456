/*
 * Files and links by their path in the image.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface FileEntry {
  readonly type: 'file';
  readonly data: Buffer;
  readonly executable: boolean;
}

export type Entry = FileEntry | { readonly type: 'link'; readonly target: string };

/** By path, without a leading slash. Folders are implied. */
export type Tree = ReadonlyMap<string, Entry>;

export const file = (data: Buffer | string, executable = false): FileEntry => ({
  type: 'file',
  data: Buffer.from(data),
  executable,
});
export const link = (target: string): Entry => ({ type: 'link', target });

/** Writes the tree as a folder. Its modes do not depend on the umask: they are those of the image. */
export function writeTree(tree: Tree, root: string): void {
  for (const [path, entry] of tree) {
    const at = join(root, path);
    mkdirSync(dirname(at), { recursive: true });
    if (entry.type === 'link') symlinkSync(entry.target, at);
    else writeFileSync(at, entry.data, { mode: entry.executable ? 0o755 : 0o644 });
  }
  execFileSync('chmod', ['-R', 'u=rwX,go=rX', root]);
}
