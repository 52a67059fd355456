import { describe, expect, it } from 'vitest';
import { EVENT_TYPES, type RecordOf } from '../../src/protocol/record.ts';
import { churnPlan } from './churnPlan.ts';

const SECONDS = 20;
const LINGER_US = 250_000;

/** Times as they are in the plan, in microseconds. */
const clock = { t: (ms: number) => Math.round(ms * 1000), wall: (ms: number) => Math.round(ms * 1000) };
const plan = churnPlan({ nodes: ['a', 'b', 'c', 'd'], eventsASecond: 200, seconds: SECONDS });
const sent = plan.map(({ node, at, objects, records }) => ({ node, at, objects, records: records(clock) }));
const records = sent.flatMap((batch) => batch.records);
const events = records.filter(({ type }) => type === 'container_event') as RecordOf<'container_event'>[];
const changes = records.filter(({ type }) => type === 'relist_change') as RecordOf<'relist_change'>[];

describe('the plan of busy nodes', () => {
  it('has about as many events a second as asked for', () => {
    expect(events.length / SECONDS / 200).toBeGreaterThan(0.8);
    expect(events.length / SECONDS / 200).toBeLessThan(1.2);
  });

  it('has as many from the beginning where pods live for longer than the plan lasts', () => {
    const nodes = Array.from({ length: 20 }, (_, n) => `node-${n}`);
    const long = churnPlan({ nodes, eventsASecond: 100, seconds: SECONDS });
    const ofEvents = long
      .flatMap((batch) => batch.records(clock))
      .filter(({ type }) => type === 'container_event');
    expect(ofEvents.length / SECONDS / 100).toBeGreaterThan(0.8);
    expect(ofEvents.length / SECONDS / 100).toBeLessThan(1.2);
  });

  it('is in the order of its times, and each record waits for at most the linger', () => {
    expect(sent.map(({ at }) => at)).toEqual(sent.map(({ at }) => at).toSorted((a, b) => a - b));
    for (const { at, records: own } of sent) {
      const times = own.map(({ t }) => t);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      for (const t of times) expect(at * 1000 - t).toBeLessThanOrEqual(LINGER_US + 1);
      expect(at * 1000 - Math.max(...times)).toBeGreaterThanOrEqual(-1);
    }
  });

  it('has the events of each container in the order of a life, and each once', () => {
    for (const own of Map.groupBy(events, ({ containerId }) => containerId).values()) {
      const types = own.map(({ eventType }) => eventType);
      expect(types).toEqual([...new Set(types)].toSorted());
      expect(types.every((type) => type in EVENT_TYPES)).toBe(true);
    }
  });

  it('has changes only where a relist finds another state, each from where the last one ended', () => {
    expect(changes.length).toBeGreaterThan(events.length / 3);
    for (const own of Map.groupBy(changes, ({ containerId }) => containerId).values()) {
      for (const [i, { oldState, newState }] of own.entries()) {
        expect(oldState).not.toBe(newState);
        if (i > 0) expect(oldState).toBe(own[i - 1]?.newState);
      }
    }
  });

  it('names the identity of each container that a batch mentions', () => {
    for (const { objects, records: own } of sent) {
      const ids = new Set(own.flatMap((record) => ('containerId' in record ? [record.containerId] : [])));
      expect(new Set(objects.map(({ id }) => id))).toEqual(ids);
    }
  });
});
