/*
 * Files and links in memory, by their path in the image. All belong to root and are as old as 1970, so that equal contents
 * make an equal layer, whoever packs them and when.
 */
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
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

/** Mode of a file. */
export const modeOf = ({ executable }: { readonly executable: boolean }): number =>
  executable ? 0o755 : 0o644;

/** Every folder above a file, the outer ones first. */
export function foldersOf(tree: Tree): string[] {
  const folders = new Set<string>();
  for (const path of tree.keys()) {
    for (let dir = dirname(path); dir !== '.'; dir = dirname(dir)) folders.add(dir);
  }
  return [...folders].sort();
}

/** Writes the tree below an existing folder. */
export async function writeTree(tree: Tree, root: string): Promise<void> {
  for (const folder of foldersOf(tree)) await mkdir(join(root, folder), { recursive: true, mode: 0o755 });
  for (const [path, entry] of tree) {
    const at = join(root, path);
    if (entry.type === 'link') {
      await symlink(entry.target, at);
    } else {
      await writeFile(at, entry.data);
      await chmod(at, modeOf(entry));
    }
  }
}
