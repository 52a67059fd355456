/*
 * The status of a report, held against the schema of the resource.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ago, build, hang, miss, state } from '../../../test/support/evidenceRow.ts';

test('a status can have every field of the resource definition, and no others', () => {
  const file = new URL('../../../crds/plegreports.plegwatch.dev.yaml', import.meta.url);
  const { openAPIV3Schema } = parse(readFileSync(file, 'utf8')).spec.versions[0].schema;
  const change = {
    at: '2026-11-20T11:00:00Z',
    from_mode: 'Evented',
    to_mode: 'Fallback',
    reason: 'StreamBroke',
  };
  const status = build({
    missed_events: [{ ...miss(1), lag_ms: 12.4 }],
    mode_history: [change],
    list_hang: hang,
    kubelet_stream_errors: 5,
    kubelet_relist_period_ms: 1001.4,
    state: { ...state, stream_reason: 'x', stream_error: 'y' },
  });
  const defined = new Set(schemaPaths(openAPIV3Schema.properties.status, ''));
  const silent = build({ last_seen: ago(600) });
  const filled = new Set([...valuePaths(status, ''), ...valuePaths(silent, '')]);
  expect([...filled].filter((path) => !defined.has(path))).toEqual([]);
  expect(schemaLeaves(openAPIV3Schema.properties.status, '').filter((path) => !filled.has(path))).toEqual([]);
  expect(Object.keys(openAPIV3Schema.properties.status.properties).sort()).toEqual(
    Object.keys(status).sort(),
  );
});

interface OpenApiSchema {
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly items?: OpenApiSchema;
}

function schemaPaths(schema: OpenApiSchema, path: string): string[] {
  const fields = Object.entries(schema.properties ?? schema.items?.properties ?? {});
  return [path, ...fields.flatMap(([name, inner]) => schemaPaths(inner, `${path}.${name}`))];
}

function schemaLeaves(schema: OpenApiSchema, path: string): string[] {
  const fields = Object.entries(schema.properties ?? schema.items?.properties ?? {});
  return fields.length === 0
    ? [path]
    : fields.flatMap(([name, inner]) => schemaLeaves(inner, `${path}.${name}`));
}

function valuePaths(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => valuePaths(item, path));
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, inner]) => valuePaths(inner, `${path}.${name}`));
}
