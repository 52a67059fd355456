/*
 * Bundles the program into dist/: the command line, the reader process, what both share, and the page of `plegwatch ui`.
 * Bundling cuts an agent's memory by a third. The licenses of the packages in it lie beside it. Run by `make build`.
 *
 * A program that is running loads some of its files later: those of a build before are left for an hour.
 */
import { spawnSync } from 'node:child_process';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { bundledPackages, NOTICES } from './devtools/image/bundle.ts';
import { notices } from './devtools/image/notices.ts';

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
 * To `import` a module of Node is to read all that it exports, and node:http exports WebSocket, with which Node loads its whole fetch:
 * more than a megabyte that no program of ours needs. What is taken from the module itself is read only where it is used.
 */
const withoutFetch = {
  name: 'without-fetch',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:http$/ }, ({ path }) => ({ path, namespace: 'node-module' }));
    onLoad({ filter: /./, namespace: 'node-module' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

/**
 * The MCP SDK has a copy of Ajv in its files, without Ajv's license. It validates the answers to forms that a server lets a client show, and
 * `plegwatch mcp` has no form.
 */
const withoutAjv = {
  name: 'without-ajv',
  setup({ onLoad }) {
    onLoad({ filter: /@modelcontextprotocol\/server\/dist\/shimsNode\.mjs$/ }, () => ({
      contents: `export { default as process } from 'node:process';
        export class DefaultJsonSchemaValidator { getValidator() { throw new Error('left out of the bundle'); } }`,
    }));
  },
};

/** What `plegwatch_build_info` says. */
function commitOfBuild() {
  const git = spawnSync('git', ['rev-parse', '--short=12', 'HEAD'], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
  });
  return git.status === 0 ? git.stdout.trim() : 'unknown';
}

/** Of the script, compressed: it is read through port-forwards and slow lines. */
const MAX_PAGE_KIB = 150;

/** The page of `plegwatch ui`: three files, which its server knows by name. */
async function buildPage() {
  const { metafile } = await build({
    entryPoints: ['main.tsx', 'index.html', 'page.css'].map((name) => ({
      in: `src/ui/page/${name}`,
      out: name === 'index.html' ? 'index' : 'page',
    })),
    outdir: 'dist/ui',
    bundle: true,
    platform: 'browser',
    format: 'esm',
    target: ['chrome111', 'firefox115', 'safari16.4'],
    minify: true,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.html': 'copy' },
    metafile: true,
  });
  const kib = gzipSync(await readFile('dist/ui/page.js')).length / 1024;
  console.log(`dist/ui/page.js: ${kib.toFixed(1)} KiB compressed`);
  if (kib > MAX_PAGE_KIB) throw new Error(`dist/ui/page.js has more than ${MAX_PAGE_KIB} KiB compressed`);
  return metafile;
}

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
  plugins: [withoutCostlyMetrics, withoutFetch, withoutAjv],
  define: { PLEGWATCH_COMMIT: JSON.stringify(commitOfBuild()) },
  metafile: true,
  external: [
    // `debug` uses it if it is there. It is there only beside the tools for development, whose advisories nobody looks at.
    'supports-color',
    // gRPC loads it only for services about its own state, which no program of ours offers.
    '@grpc/proto-loader',
  ],
  loader: { '.sql': 'text', '.md': 'text' },
  chunkNames: 'chunks/[name]-[hash]',
  // CommonJS packages inside an ES module bundle ask for `require`.
  banner: {
    js: "import { createRequire as plegwatchRequire } from 'node:module'; const require = plegwatchRequire(import.meta.url);",
  },
});
const page = await buildPage();
Object.assign(metafile.inputs, page.inputs);
Object.assign(metafile.outputs, page.outputs);
// Which packages are in the bundles, and which files are of this build.
await writeFile('dist/metafile.json', JSON.stringify(metafile));
await writeFile(NOTICES, notices(bundledPackages()));
const bytes = Object.values(metafile.outputs).reduce((sum, { bytes: n }) => sum + n, 0);
console.log(`dist: ${Object.keys(metafile.outputs).length} files, ${Math.round(bytes / 1024)} KiB`);

for (const name of await readdir('dist/chunks')) {
  const file = join('dist/chunks', name);
  const isOurs = file in metafile.outputs;
  if (!isOurs && Date.now() - (await stat(file)).mtimeMs > KEEP_MS) await rm(file);
}
