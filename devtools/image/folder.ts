/*
 * Writes the layers as folders, for the Dockerfile: FOLDER/base with this Node, and with the libraries of this Debian, and
 * FOLDER/app.
 *
 *   node devtools/image/folder.ts FOLDER
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { appLayer, baseLayer } from './layers.ts';
import { type Tree, writeTree } from './tree.ts';

const [, , folder] = process.argv;
if (folder === undefined) throw new Error('usage: node devtools/image/folder.ts FOLDER');

const trees: Readonly<Record<string, Tree>> = {
  base: baseLayer({ node: dirname(dirname(process.execPath)), debian: '/' }),
  app: appLayer(),
};
for (const [name, tree] of Object.entries(trees)) {
  mkdirSync(join(folder, name), { recursive: true });
  await writeTree(tree, join(folder, name));
}
