/*
 * Packs a tree as a tar file in the ustar format. The same tree gives the same bytes: sorted, owned by root, dated 1970.
 */
import { foldersOf, modeOf, type Tree } from './tree.ts';

const BLOCK = 512;

export function packTar(tree: Tree): Buffer {
  const parts: Buffer[] = [];
  const paths = [...tree.keys(), ...foldersOf(tree)].sort();
  for (const path of paths) {
    const entry = tree.get(path);
    if (entry === undefined) {
      parts.push(header(`${path}/`, '5', 0o755, 0));
    } else if (entry.type === 'link') {
      parts.push(header(path, '2', 0o777, 0, entry.target));
    } else {
      parts.push(header(path, '0', modeOf(entry), entry.data.length), entry.data, padding(entry.data.length));
    }
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

const padding = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);

function header(path: string, type: string, mode: number, size: number, target = ''): Buffer {
  if (Buffer.byteLength(path) > 100 || Buffer.byteLength(target) > 100)
    throw new Error(`too long for a tar file: ${path}`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number, at: number) =>
    block.write(`${value.toString(8).padStart(digits, '0')}\0`, at, 'latin1');
  block.write(path, 0);
  octal(mode, 7, 100);
  octal(0, 7, 108);
  octal(0, 7, 116);
  octal(size, 11, 124);
  octal(0, 11, 136);
  block.write(`${' '.repeat(8)}${type}`, 148, 'latin1');
  block.write(target, 157);
  block.write('ustar\0' + '00', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}
