import { expect, test } from 'vitest';
import { ContainerEventResponse } from '../../src/cri/runtime.ts';
import type { EventFault } from './eventFaults.ts';
import {
  MALFORMATIONS,
  type Malformation,
  malformed,
  nilStatus,
  partialStatuses,
  WRONG_CREATED_AT,
  wrongCreatedAt,
} from './messageFaults.ts';
import { eventFacts, faultFacts, playPod, subscribeVirtual } from './testBed.ts';
import { VirtualRuntime } from './virtualRuntime.ts';

const always = { seed: 1, probability: 1 };

function play(...faults: readonly EventFault[]) {
  const runtime = new VirtualRuntime({ faults });
  const subscriber = subscribeVirtual(runtime);
  playPod(runtime.core);
  return { ...subscriber, truth: runtime.core.truth };
}

test.each(WRONG_CREATED_AT)(
  'wrongCreatedAt sends created_at as %s, and the ground truth keeps the correct one',
  (as) => {
    const { events, truth } = play(wrongCreatedAt(always, as));
    const right = BigInt(eventFacts(truth)[0]?.createdNs ?? 0);
    const wrong = { seconds: right / 1_000_000_000n, zero: 0n, future: right + 315_360_000_000_000_000n };
    expect(events[0]?.createdAt).toBe(wrong[as]);
    expect(faultFacts(truth, 'created_at')).toHaveLength(8);
    expect(eventFacts(truth)[0]?.changed).toEqual(['created_at']);
  },
);

test('nilStatus sends events without the status of their sandbox', () => {
  const { events, truth } = play(nilStatus({ ...always, types: ['STARTED'] }));
  expect(events.filter(({ podSandboxStatus }) => podSandboxStatus === undefined)).toHaveLength(2);
  expect(faultFacts(truth, 'nil_status')).toHaveLength(2);
});

test('partialStatuses sends events with no or with empty container statuses', () => {
  const { events, truth } = play(partialStatuses(always));
  expect(events.every(({ containersStatuses }) => (containersStatuses[0]?.id ?? '') === '')).toBe(true);
  expect(events.some(({ containersStatuses }) => containersStatuses.length > 0)).toBe(true);
  expect(faultFacts(truth, 'partial_statuses')).toHaveLength(8);
});

const HAS_MALFORMATION: Readonly<Record<Malformation, (message: Uint8Array) => boolean>> = {
  mutated: (message) => message.length > 0,
  random: (message) => message.length >= 16,
  truncated: (message) => message.length > 0,
  'huge-id': (message) => ContainerEventResponse.decode(message).containerId.length === 1024 ** 2,
  nul: (message) => ContainerEventResponse.decode(message).containerId.includes('\0'),
  'unknown-enum': (message) => Number(ContainerEventResponse.decode(message).containerEventType) === 99,
};

test.each(MALFORMATIONS)('malformed sends messages of the kind %s', (kind) => {
  const whole = play().messages.map((message) => Buffer.from(message).toString('hex'));
  const { messages, truth } = play(malformed(always, [kind]));
  expect(messages.every(HAS_MALFORMATION[kind])).toBe(true);
  expect(messages.filter((message, n) => Buffer.from(message).toString('hex') === whole[n])).toEqual([]);
  expect(faultFacts(truth, 'malformed').map(({ detail }) => detail)).toEqual(Array(8).fill(kind));
});

test('a fault that changes an event leaves a malformed message unchanged', () => {
  const { truth } = play(malformed(always, ['random']), wrongCreatedAt(always, 'zero'));
  expect(faultFacts(truth, 'malformed')).toHaveLength(8);
});

test('the same seed changes the same events in the same way', () => {
  const half = { seed: 9, probability: 0.5 };
  expect(play(malformed(half)).messages).toEqual(play(malformed(half)).messages);
  const hit = faultFacts(play(malformed(half)).truth).length;
  expect(hit).toBeGreaterThan(0);
  expect(hit).toBeLessThan(8);
});
