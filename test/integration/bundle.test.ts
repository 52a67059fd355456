/* The modules that the bundled programs load: whatever they do not need costs every node memory. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bundledFiles } from '../../devtools/image/bundle.ts';
import { ROOT } from '../support/build.ts';

interface Output {
  /** Where something of it may be loaded later, by a path of a source. */
  readonly entryPoint?: string;
  readonly imports: readonly { readonly path: string; readonly kind: string }[];
  readonly inputs: Readonly<Record<string, unknown>>;
}

const { outputs: OUTPUTS } = JSON.parse(readFileSync(`${ROOT}dist/metafile.json`, 'utf8')) as {
  readonly outputs: Readonly<Record<string, Output>>;
};

/** A file of the bundle, and those that it cannot be loaded without. */
function loadedBy(file: string, loaded = new Set<string>()): ReadonlySet<string> {
  if (loaded.has(file)) return loaded;
  loaded.add(file);
  for (const { path, kind } of OUTPUTS[file]?.imports ?? [])
    if (kind === 'import-statement') loadedBy(path, loaded);
  return loaded;
}

/** The packages that a program loads when it starts. */
function packagesOf(file: string): readonly string[] {
  const packages = [...loadedBy(file)]
    .flatMap((output) => Object.keys(OUTPUTS[output]?.inputs ?? {}))
    .map((input) => /.*node_modules\/((@[^/]+\/)?[^/]+)/.exec(input)?.[1])
    .filter((name) => name !== undefined);
  return [...new Set(packages)].sort();
}

describe('the bundle', () => {
  it('never imports node:http, with which Node would load its fetch', () => {
    const programs = bundledFiles().filter((path) => path.endsWith('.js') && !path.startsWith('dist/ui/'));
    const importing = programs.filter((path) =>
      /from\s*"node:http"/.test(readFileSync(`${ROOT}${path}`, 'utf8')),
    );
    expect(importing).toEqual([]);
  });

  it('gives the reader no package but gRPC and what encodes its messages', () => {
    expect(packagesOf('dist/reader.js')).toEqual([
      '@bufbuild/protobuf',
      '@grpc/grpc-js',
      '@js-sdsl/ordered-map',
    ]);
  });

  it.each([
    ['src/agent/agent.ts', 'prom-client'],
    ['src/controller/controller.ts', 'prom-client'],
    ['src/ui/ui.ts', 'prom-client'],
    ['src/analysis/export/command.ts', 'drizzle-orm'],
  ])('gives %s no package that only a setting needs', (source, needed) => {
    const [file = ''] = Object.entries(OUTPUTS).find(([, { entryPoint }]) => entryPoint === source) ?? [];
    const packages = packagesOf(file);
    expect(packages).toContain(needed);
    // prom-client needs the API of OpenTelemetry.
    const ofSettings = /^(zod|hyparquet|@modelcontextprotocol|@opentelemetry\/(?!api$))/;
    expect(packages.filter((name) => ofSettings.test(name))).toEqual([]);
  });
});
