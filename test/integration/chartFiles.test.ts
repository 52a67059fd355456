/*
 * The files of the chart agree with each other and with the rest of the repository.
 */
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CHART, home, ROOT, run, type Values } from '../support/chart.ts';

describe('helm/sync-crd.mjs', () => {
  const sync = (script: string, ...args: string[]) => run(process.execPath, [script, ...args]);

  test('accepts the present template of the resource definition', async () => {
    expect(await sync(join(ROOT, 'helm/sync-crd.mjs'), '--check')).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
  });

  test('rejects an outdated template, and generates a new one', async () => {
    const script = join(home.dir, 'helm/sync-crd.mjs');
    const source = 'crds/plegreports.plegwatch.dev.yaml';
    const copy = 'helm/plegwatch/templates/crd.yaml';
    for (const file of ['helm/sync-crd.mjs', source, copy]) {
      mkdirSync(dirname(join(home.dir, file)), { recursive: true });
      cpSync(join(ROOT, file), join(home.dir, file));
    }
    appendFileSync(join(home.dir, source), '# changed\n');
    expect(await sync(script, '--check')).toMatchObject({ code: 1, stderr: expect.stringContaining(copy) });
    expect(await sync(script)).toMatchObject({ code: 0 });
    expect(await sync(script, '--check')).toMatchObject({ code: 0 });
    writeFileSync(join(home.dir, source), 'metadata:\n  name: "{{ x }}"\n');
    expect(await sync(script)).toMatchObject({ code: 1, stderr: expect.stringContaining('{{') });
  });
});

test('the chart and the program have the same version', () => {
  const { version, appVersion } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  expect([version, appVersion]).toEqual([manifest.version, manifest.version]);
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
