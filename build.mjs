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

/**
 * prom-client's default metrics time the event loop by waking up a hundred times a second: on an idle node the largest
 * part of what an agent would cost. Those of the garbage collector are told of each collection, by an object made for it.
 * Those of each part of the heap, and of what is open, are more lines than all of ours, and each scrape is made of all lines.
 * There is no switch for one of them, so these are left out of the bundle.
 */
const COSTLY =
  /prom-client\/lib\/metrics\/(eventLoopLag|gc|heapSpacesSizeAndUsed|process(Handles|Requests|Resources))\.js$/;
const withoutCostlyMetrics = {
  name: 'without-costly-metrics',
  setup({ onLoad }) {
    onLoad({ filter: COSTLY }, () => ({
      contents: 'module.exports = () => undefined; module.exports.metricNames = [];',
    }));
  },
};

/**
 * Of BullMQ an agent needs what adds a job. As CommonJS it would come whole, with its Postgres backend and the driver of
 * that; as modules without side effects, which its package does not say that they are, only what is used comes.
 */
const onlyUsedOfBullmq = {
  name: 'only-used-of-bullmq',
  setup({ onResolve, resolve }) {
    const modules = join(import.meta.dirname, 'node_modules/bullmq/dist/esm/');
    onResolve({ filter: /^bullmq$/ }, () => ({ path: join(modules, 'index.js'), sideEffects: false }));
    onResolve({ filter: /^\./ }, async ({ path, importer, resolveDir, kind, pluginData }) => {
      if (pluginData === onlyUsedOfBullmq || !importer.startsWith(modules)) return undefined;
      const found = await resolve(path, { importer, resolveDir, kind, pluginData: onlyUsedOfBullmq });
      return { path: found.path, errors: found.errors, sideEffects: false };
    });
  },
};

const { metafile } = await build({
  entryPoints: { cli: 'src/cli.ts', reader: 'src/agent/observe/stream/reader.ts' },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  // Names stay as they are, for stack traces and for libraries that look at them. Shortening them and keeping the old ones
  // beside (keepNames) costs a call for every function that is made.
  minifyWhitespace: true,
  minifySyntax: true,
  plugins: [withoutCostlyMetrics, onlyUsedOfBullmq],
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
