/*
 * What the tests on a real API server share: the resource installed from its only copy, and waiting for a condition.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';
import type { Applied, KubeClient } from '../../src/controller/kube/client.ts';
import type { Resource } from '../../src/controller/kube/object.ts';

const DEFINITIONS: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
};
const FILE = new URL('../../crds/plegreports.plegwatch.dev.yaml', import.meta.url);

/** Applies the definition and waits until the API server serves it. Returns its conditions, by type. */
export async function installPlegReports(kube: KubeClient): Promise<Map<string, string>> {
  const definition: Applied = parse(readFileSync(FILE, 'utf8'));
  const { name } = await kube.apply(DEFINITIONS, definition).then((applied) => applied.metadata);
  return until(`${name} is established`, async () => {
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

/**
 * Asks until there is an answer that is not undefined. Fails with what was waited for, after a bound that only a hang exceeds:
 * on a busy machine everything may take ten times as long.
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
  withinMs = 240_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  let last: unknown;
  while (performance.now() < deadline) {
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
    } catch (error) {
      last = error;
    }
    await delay(50);
  }
  throw new Error(`not within ${withinMs} ms: ${what}`, { cause: last });
}
