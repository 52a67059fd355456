/*
 * Bundles the program into dist/: the command line, the reader process, and what both share. Bundling cuts an agent's
 * memory by a third. Run by `make build`.
 *
 * A program that is running loads some of its files later: those of a build before are left for an hour.
 */
import { readdir, rm, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { build } from 'esbuild';

const KEEP_MS = 3_600_000;

const { metafile } = await build({
  entryPoints: { cli: 'src/cli.ts', reader: 'src/agent/cri/reader.ts' },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  minify: true,
  keepNames: true,
  metafile: true,
  loader: { '.sql': 'text' },
  chunkNames: 'chunks/[name]-[hash]',
  // CommonJS packages inside an ES module bundle ask for `require`.
  banner: {
    js: "import { createRequire as plegwatchRequire } from 'node:module'; const require = plegwatchRequire(import.meta.url);",
  },
});
const bytes = Object.values(metafile.outputs).reduce((sum, { bytes: n }) => sum + n, 0);
console.log(`dist: ${Object.keys(metafile.outputs).length} files, ${Math.round(bytes / 1024)} KiB`);

for (const name of await readdir('dist', { recursive: true })) {
  const file = join('dist', name);
  const info = await stat(file);
  const isOurs = relative('.', file) in metafile.outputs;
  if (info.isFile() && !isOurs && Date.now() - info.mtimeMs > KEEP_MS) await rm(file);
}
