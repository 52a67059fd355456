/*
 * The common ground of the tests on a real API server: the resource installed from its only copy, and waiting for a condition.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { AppliedObject, KubeClient } from '../../src/kube/client.ts';
import type { Resource } from '../../src/kube/object.ts';
import { waitFor } from './waitFor.ts';

export const DEFINITIONS: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
};
const FILE = new URL('../../crds/plegreports.plegwatch.dev.yaml', import.meta.url);

/** Applies the definition and waits until the API server serves it. Returns its conditions, by type. */
export async function installPlegReports(kube: KubeClient): Promise<Map<string, string>> {
  const definition: AppliedObject = parse(readFileSync(FILE, 'utf8'));
  const { name } = await kube.apply(DEFINITIONS, definition).then((applied) => applied.metadata);
  return waitFor(`${name} is established`, async () => {
    const conditions = conditionsOf(await kube.get(DEFINITIONS, name));
    return conditions.get('Established') === 'True' ? conditions : undefined;
  });
}

/** The conditions of an object: status by type. */
export function conditionsOf(object: unknown): Map<string, string> {
  const status: unknown = Reflect.get(Object(object), 'status');
  const list: unknown = Reflect.get(Object(status), 'conditions');
  if (!Array.isArray(list)) return new Map();
  return new Map(list.map((condition) => [String(condition.type), String(condition.status)]));
}
