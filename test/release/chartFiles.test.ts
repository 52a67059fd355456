/*
 * The files of the chart agree with each other and with the rest of the repository.
 */
import { appendFileSync, cpSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isScalar, parse, parseDocument, visit } from 'yaml';
import { CRD, templateOf } from '../../devtools/crd.ts';
import { CHART, home, ROOT, run, type Values, withHome } from '../support/chart.ts';

withHome();

/** Values whose keys are Kubernetes' own: a comment explains them as one. */
const WHOLE: ReadonlySet<string> = new Set([
  'resources',
  'nodeSelector',
  'updateStrategy',
  'affinity',
  'labels',
  'tolerations',
]);

describe('devtools/referencePages.ts', () => {
  const generate = (root: string, ...args: string[]) =>
    run(process.execPath, [join(root, 'devtools/referencePages.ts'), ...args]);

  test('accepts the present definition of the resource, its template and the pages', async () => {
    expect(await generate(ROOT, '--check')).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  test('rejects an outdated definition or template, and generates a new one', async () => {
    const root = join(home.dir, 'generated');
    for (const part of ['README.md', 'package.json', 'src', 'devtools', 'docs', 'helm', 'crds', 'migrations'])
      cpSync(join(ROOT, part), join(root, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
    const outdated = [CRD, 'helm/plegwatch/templates/crd.yaml'];
    for (const file of outdated) appendFileSync(join(root, file), '# changed\n');
    const stderr = outdated.map((file) => `${file} is stale: run make generate and commit.\n`).join('');
    expect(await generate(root, '--check')).toMatchObject({ code: 1, stderr });
    expect(await generate(root)).toMatchObject({ code: 0 });
    expect(await generate(root, '--check')).toMatchObject({ code: 0 });
  });

  test('makes no template of a definition with what has a meaning in templates', () => {
    expect(() => templateOf('metadata:\n  name: "{{ x }}"\n')).toThrow('{{');
  });
});

test('the chart and the program have the same version', () => {
  const { version, appVersion } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  expect([version, appVersion]).toEqual([manifest.version, manifest.version]);
});

test('values.yaml explains every value in a comment above it', () => {
  const yaml = readFileSync(join(CHART, 'values.yaml'), 'utf8');
  const unexplained: string[] = [];
  visit(parseDocument(yaml), {
    Pair(_, { key }) {
      if (!isScalar(key)) return visit.SKIP;
      const above = yaml.slice(0, key.range?.[0]).split('\n').at(-2) ?? '';
      if (!/^\s*#\s*\S/.test(above)) unexplained.push(String(key.value));
      return WHOLE.has(String(key.value)) ? visit.SKIP : undefined;
    },
  });
  expect(unexplained).toEqual([]);
});

describe('values.schema.json', () => {
  const schema: ValuesSchema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'));

  test('refuses unknown keys in every object, unless a comment says who checks them', () => {
    expect(openObjects(schema, '')).toEqual([]);
  });

  test('has exactly the keys of values.yaml', () => {
    const values: Values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
    const { global, ...properties } = schema.properties ?? {};
    expect(global).toBeDefined();
    expect(keysOf({ ...schema, properties }, values)).toEqual([]);
  });

  test('lets a pool of agents have every key of agent that one DaemonSet can have alone', () => {
    const { agent, agentPools } = schema.properties ?? {};
    const ofAll = ['enabled', 'namespace', 'createNamespace', 'serviceAccount'];
    const shared = Object.keys(agent?.properties ?? {}).filter((key) => !ofAll.includes(key));
    expect(Object.keys(agentPools?.items?.properties ?? {}).sort()).toEqual(
      ['name', 'runtime', ...shared].sort(),
    );
  });

  /** The schema of a group of keys that several values have. Others stand for objects of Kubernetes. */
  function resolved(part: ValuesSchema): ValuesSchema | undefined {
    const ref = (part.$ref ?? part.allOf?.[0]?.$ref)?.replace('#/definitions/', '');
    if (ref === undefined) return part;
    return ['image', 'kubelet', 'spool', 'serviceAccount'].includes(ref)
      ? schema.definitions?.[ref]
      : undefined;
  }

  /** Paths that only one of schema and values has. Skips free maps and optional objects. */
  function keysOf(part: ValuesSchema, values: Values, path = ''): string[] {
    const properties = part.properties ?? {};
    const missing = Object.keys(properties).filter((key) => !(key in values));
    const unknown = Object.keys(values).filter((key) => !(key in properties));
    const nested = Object.entries(properties).flatMap(([key, each]) => {
      const value: unknown = values[key];
      const child = resolved(each);
      if (child === undefined || typeof value !== 'object' || value === null) return [];
      if (Array.isArray(value) || Object.keys(value).length === 0) return [];
      return keysOf(child, { ...value }, `${path}/${key}`);
    });
    return [...missing, ...unknown].map((key) => `${path}/${key}`).concat(nested);
  }
});

interface ValuesSchema {
  readonly $comment?: string;
  readonly $ref?: string;
  readonly allOf?: readonly ValuesSchema[];
  readonly type?: string | readonly string[];
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, ValuesSchema>>;
  readonly definitions?: Readonly<Record<string, ValuesSchema>>;
  readonly items?: ValuesSchema;
}

/** Paths of objects that allow any key without a comment. */
function openObjects(schema: ValuesSchema, path: string): string[] {
  const isObject = [schema.type].flat().includes('object');
  const open = isObject && schema.additionalProperties === undefined && schema.$comment === undefined;
  const parts = Object.entries({
    ...schema.properties,
    ...schema.definitions,
    ...(schema.items ? { '[]': schema.items } : {}),
  });
  return [...(open ? [path] : []), ...parts.flatMap(([name, part]) => openObjects(part, `${path}/${name}`))];
}
