/*
 * The publisher with an API server of the test's own, and its clock.
 */

import * as v from 'valibot';
import { expect, test } from 'vitest';
import { silent } from '../../../test/support/database.ts';
import type { AppliedObject } from '../../kube/client.ts';
import { KubeStatusError } from '../../kube/kubeErrors.ts';
import { type KubeObject, KubeObjectSchema } from '../../kube/object.ts';
import { type KubeNode, nodeOf } from '../../kube/projection.ts';
import { mono, wall } from '../../protocol/units.ts';
import { runnerOf } from '../../store/runner.ts';
import { Publisher } from './publisher.ts';

const { signal } = new AbortController();
const MINUTE_MS = 60_000;

const report = (status: 'True' | 'False' | 'Unknown', reason: string) => [
  { type: 'RelistHealthy', status, reason, message: `${reason}.` },
];
const FAILING = report('False', 'ListsFailing');
const LISTING = report('True', 'Listing');

/** A fleet whose watch shows each write at once, unless it lags. `answer` is called before each write. */
class Fleet {
  readonly nodes = new Map<string, KubeNode>();
  readonly writes: AppliedObject[] = [];
  readonly results: string[] = [];
  ms = 0;
  watchLags = false;
  answer: (object: AppliedObject) => void = () => undefined;
  readonly publisher = new Publisher({
    store: { ...runnerOf(async () => ({ rows: [], rowCount: 0 })), ensureCluster: async () => 1 },
    kube: { applyStatus: async (_, object) => this.#apply(object) },
    nodes: { get: (name) => this.nodes.get(name), names: () => this.nodes.keys(), synced: true },
    cluster: 'prod',
    log: silent,
    onResult: (result) => this.results.push(result),
    clocks: () => ({
      mono: mono(this.ms * 1000),
      wall: wall((Date.parse('2026-11-20T12:00:00Z') + this.ms) * 1000),
    }),
  });

  add(name: string, uid = `uid-${name}`): void {
    this.nodes.set(name, nodeFrom({ metadata: { name, uid } }));
  }

  note(name: string, conditions = FAILING): void {
    this.publisher.note(name, this.nodes.get(name)?.uid ?? '', conditions);
  }

  /** A pass after this many minutes. */
  async pass(minutes = 0): Promise<void> {
    this.ms += minutes * MINUTE_MS;
    await this.publisher.pass(signal);
  }

  statuses(): unknown[] {
    return this.writes.map((object) =>
      nodeFrom(object)
        .published.map(({ status }) => status)
        .join(),
    );
  }

  #apply(object: AppliedObject): KubeObject {
    this.answer(object);
    this.writes.push(object);
    const answer = v.parse(KubeObjectSchema, object);
    if (!this.watchLags) this.nodes.set(object.metadata.name, nodeFrom(object));
    return answer;
  }
}

const nodeFrom = (object: object): KubeNode =>
  nodeOf(v.parse(KubeObjectSchema, object), { reported: [], stored: [] }).node;

test('a condition that lasts for less than a minute is never published', async () => {
  const fleet = new Fleet();
  fleet.add('a');
  for (let flips = 0; flips < 20; flips++) {
    fleet.note('a', flips % 2 === 0 ? FAILING : LISTING);
    await fleet.pass(0.9);
  }
  expect(fleet.writes).toEqual([]);
  fleet.note('a', LISTING);
  await fleet.pass(1);
  await fleet.pass(1);
  expect(fleet.statuses()).toEqual(['False']);
});

test('a Node that flaps for hours gets three writes at once, then one in twenty minutes, and the last is what lasts', async () => {
  const fleet = new Fleet();
  fleet.add('a');
  for (let flips = 0; flips < 60; flips++) {
    fleet.note('a', flips % 2 === 0 ? FAILING : LISTING);
    await fleet.pass(2);
  }
  expect(fleet.writes.length).toBeGreaterThanOrEqual(3);
  expect(fleet.writes.length).toBeLessThanOrEqual(3 + 120 / 20);
  fleet.note('a', FAILING);
  await fleet.pass(20);
  expect(fleet.nodes.get('a')?.published).toMatchObject([{ type: 'PLEGListsFailing', status: 'True' }]);
});

test('a write that failed counts against no limit and is written once the API server is back', async () => {
  const fleet = new Fleet();
  fleet.add('a');
  fleet.note('a');
  fleet.answer = () => {
    throw new KubeStatusError(503, 'ServiceUnavailable', 'etcd is away');
  };
  for (let failed = 0; failed < 20; failed++) await expect(fleet.pass(1)).rejects.toThrow('etcd is away');
  fleet.answer = () => undefined;
  await fleet.pass();
  await fleet.pass(1);
  expect(fleet.results).toEqual(['written']);
});

test('a watch that lags lets nothing be written twice', async () => {
  const fleet = new Fleet();
  fleet.watchLags = true;
  fleet.add('a');
  fleet.note('a');
  await fleet.pass(1);
  await fleet.pass(0.5);
  expect(fleet.results).toEqual(['written']);
});

test('a condition of another manager is left to it, ours are withdrawn, and it is tried again once an hour', async () => {
  const fleet = new Fleet();
  fleet.add('a');
  fleet.note('a');
  fleet.answer = ({ status }) => {
    if (status !== undefined) throw new KubeStatusError(409, 'Conflict', 'conflict with "someone"');
  };
  for (let minutes = 0; minutes < 119; minutes++) await fleet.pass(1);
  expect(fleet.results).toEqual(['conflict', 'conflict']);
  // Without a status: an apply of nothing.
  expect(fleet.writes).toEqual([
    expect.not.objectContaining({ status: expect.anything() }),
    expect.not.objectContaining({ status: expect.anything() }),
  ]);
});

test('the report of an earlier machine says nothing of the one that has its name now', async () => {
  const fleet = new Fleet();
  fleet.add('a', 'uid-1');
  fleet.note('a');
  fleet.add('a', 'uid-2');
  await fleet.pass(1);
  expect(fleet.writes).toEqual([]);
  fleet.note('a');
  await fleet.pass(1);
  expect(fleet.writes).toMatchObject([{ metadata: { name: 'a', uid: 'uid-2' } }]);
});

test('a Node that is gone is forgotten', async () => {
  const fleet = new Fleet();
  fleet.add('a');
  fleet.note('a');
  fleet.answer = () => {
    throw new KubeStatusError(404, 'NotFound', 'nodes "a" not found');
  };
  await fleet.pass(1);
  await fleet.pass(1);
  expect(fleet.results).toEqual(['no_node']);
});

test('problems are written before what is well', async () => {
  const fleet = new Fleet();
  for (const name of ['a', 'b', 'c']) {
    fleet.add(name);
    fleet.note(name, LISTING);
  }
  fleet.add('failing');
  fleet.note('failing');
  await fleet.pass(1);
  expect(fleet.writes[0]?.metadata.name).toBe('failing');
});

test('a fleet gets five writes a second', async () => {
  const fleet = new Fleet();
  for (let n = 0; n < 8; n++) {
    fleet.add(`node-${n}`);
    fleet.note(`node-${n}`);
  }
  const began = performance.now();
  await fleet.pass(1);
  expect(fleet.writes).toHaveLength(8);
  // By the clock of the test, which stands still in a pass, the three that are above the limit wait for 200, 400 and 600 ms.
  expect(performance.now() - began).toBeGreaterThan(1_100);
});

test('verdicts that are withheld leave the Node as it is, however long', async () => {
  const fleet = new Fleet();
  fleet.add('a');
  fleet.note('a');
  await fleet.pass(1);
  fleet.note('a', report('Unknown', 'IngestBehind'));
  await fleet.pass(600);
  expect(fleet.statuses()).toEqual(['True']);
});
