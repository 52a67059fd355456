/*
 * JSON schemas of the objects of each version of Kubernetes, made from its OpenAPI as kubeconform reads them: a file for each kind. They refuse fields
 * that the version does not have.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { where } from '../../devtools/localServices/where.ts';

/** For `--schema-location`, below the folder that has the schemas. */
export const SCHEMA_PATH = '{{.NormalizedKubernetesVersion}}/{{.ResourceKind}}{{.KindSuffix}}.json';

interface Definition {
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Definition>>;
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

type Definitions = Readonly<Record<string, Definition>>;

/** The versions whose API is on this machine, the oldest first. */
export const kubernetesVersions = (): string[] =>
  readdirSync(where('kubernetes-api'))
    .map((file) => file.replace(/\.json$/, ''))
    .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));

/** Writes those of these kinds that the version has. */
export function writeSchemas(dir: string, version: string, wanted: ReadonlySet<string>): void {
  const folder = join(dir, `v${version}`);
  mkdirSync(folder, { recursive: true });
  const api = readFileSync(join(where('kubernetes-api'), `${version}.json`), 'utf8');
  const { definitions }: { definitions: Definitions } = JSON.parse(api);
  for (const [name, { 'x-kubernetes-group-version-kind': kinds = [] }] of Object.entries(definitions)) {
    for (const { group, version: of, kind } of kinds) {
      if (!wanted.has(kind)) continue;
      const file = [kind, group.split('.')[0], of].filter(Boolean).join('-').toLowerCase();
      const used = JSON.stringify({ definitions: withUsed(name, definitions, {}) });
      const schema = { allOf: [{ $ref: `#/definitions/${name}` }], ...JSON.parse(used, asJsonSchema) };
      writeFileSync(join(folder, `${file}.json`), JSON.stringify(schema));
    }
  }
}

/** Adds a definition and all that it refers to: kubeconform reads a file again for each kind, and the definitions of all kinds take it long. */
function withUsed(name: string, definitions: Definitions, used: Record<string, Definition>): Definitions {
  const definition = definitions[name];
  if (definition === undefined || name in used) return used;
  used[name] = definition;
  for (const [, other = ''] of JSON.stringify(definition).matchAll(/"#\/definitions\/([^"]+)"/g))
    withUsed(other, definitions, used);
  return used;
}

/** A definition as OpenAPI has it, in terms of JSON Schema. Other values stay as they are. */
function asJsonSchema(key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const definition: Definition = value;
  if (definition.format === 'int-or-string') return { type: ['integer', 'string'] };
  if (key.endsWith('.api.resource.Quantity')) return { type: ['number', 'string'] };
  // A property may be called properties.
  const isObject = typeof definition.type === 'string' && definition.properties !== undefined;
  return isObject ? { ...value, additionalProperties: false } : value;
}
