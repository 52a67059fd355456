import { expect, test } from 'vitest';
import { identityOf } from '../../../test/engine/timeline.ts';
import { mono } from '../../protocol/units.ts';
import { DuplicateContainers } from './duplicateContainers.ts';
import { Emitter } from './emitter.ts';
import { REMEMBERED_FOR, TrackedContainers } from './trackedContainers.ts';

const newEmitter = () => new Emitter(mono(0), () => '');

test('a forgotten container is removed from the duplicates of others', () => {
  const containers = new TrackedContainers(newEmitter());
  const add = (id: string) => containers.add({ ...identityOf(id), podUid: 'u', container: 'app' }, mono(0));
  const one = add('c1')?.container;
  add('c2');
  const duplicates = new DuplicateContainers(newEmitter(), containers);
  expect(duplicates.find(() => ({ before: mono(1), now: mono(2) }))).toHaveLength(1);
  expect([...(one?.duplicates ?? [])]).toEqual(['c2']);
  containers.forget(mono(REMEMBERED_FOR + 1), (container) => container === one);
  expect(containers.size).toBe(1);
  expect([...(one?.duplicates ?? [])]).toEqual([]);
});

test('the identity version changes when a container comes, is known better, or is forgotten', () => {
  const containers = new TrackedContainers(newEmitter());
  const versions = [containers.identityVersion];
  const added = containers.add({ ...identityOf('c1'), podUid: '' }, mono(0));
  versions.push(containers.identityVersion);
  if (added !== undefined) containers.identify(added.container, identityOf('c1'));
  versions.push(containers.identityVersion);
  containers.forget(mono(REMEMBERED_FOR + 1), () => false);
  versions.push(containers.identityVersion);
  expect(new Set(versions).size).toBe(versions.length);
});
