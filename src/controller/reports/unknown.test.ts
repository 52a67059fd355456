/*
 * Reports while no controller can work, with an API server of the test's own.
 */
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import type { AppliedObject } from '../../kube/client.ts';
import { KubeStatusError } from '../../kube/kubeErrors.ts';
import { KubeObjectSchema } from '../../kube/object.ts';
import { withdrawProblems } from '../nodeConditions/unknown.ts';
import { writeUnknown } from './unknown.ts';

const { signal } = new AbortController();
const now = () => new Date('2026-11-20T12:00:00Z');
const NAMES = ['worker-1', 'worker-2', 'worker-3'];

const objectOf = (name: string, type: string) =>
  v.parse(KubeObjectSchema, {
    metadata: { name, uid: `uid-${name}`, resourceVersion: '1' },
    status: {
      conditions: [
        { type, status: 'True', reason: 'Seen', message: '', lastTransitionTime: '2026-11-20T11:00:00Z' },
      ],
    },
  });

/** An API server that answers writes of the second object with an error. */
function serverOf(type: string, error: Error) {
  const written: string[] = [];
  return {
    written,
    list: async () => ({
      items: NAMES.map((name) => objectOf(name, type)),
      continue: '',
      resourceVersion: '1',
    }),
    async applyStatus(_: unknown, { metadata: { name } }: AppliedObject) {
      if (name === NAMES[1]) throw error;
      written.push(name);
      return objectOf(name, type);
    },
  };
}

describe.each([
  ['report', 'Ready', writeUnknown],
  ['Node', 'PLEGListsFailing', withdrawProblems],
])('a %s', (_, type, write) => {
  test.each([404, 409])('that is gone or was changed, %i, is left alone', async (code) => {
    const server = serverOf(type, new KubeStatusError(code, '', 'refused'));
    expect(await write(server, now, signal)).toBe(2);
    expect(server.written).toEqual(['worker-1', 'worker-3']);
  });

  test.each([400, 413, 422])(
    'that the API server refuses, %i, keeps no other from becoming Unknown, and is then an error',
    async (code) => {
      const server = serverOf(type, new KubeStatusError(code, '', 'refused'));
      await expect(write(server, now, signal)).rejects.toThrow('refused');
      expect(server.written).toEqual(['worker-1', 'worker-3']);
    },
  );

  test.each([429, 503])('is not the reason of the error %i, after which nothing is written', async (code) => {
    const server = serverOf(type, new KubeStatusError(code, '', 'busy'));
    await expect(write(server, now, signal)).rejects.toThrow('busy');
    expect(server.written).toEqual(['worker-1']);
  });
});
