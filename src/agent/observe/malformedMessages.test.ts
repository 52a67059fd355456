import { expect, test } from 'vitest';
import { AgentMetrics } from '../metrics.ts';
import { Refusals } from './malformedMessages.ts';

function refusals() {
  const metrics = new AgentMetrics();
  const said: unknown[] = [];
  const log = { warn: (fields: unknown) => void said.push(fields) };
  return { refusals: new Refusals(metrics, log), metrics, said };
}

test('every refused message is counted by its call', async () => {
  const { refusals: each, metrics } = refusals();
  each.count('ListContainers', 3);
  each.count('ListContainers');
  each.count('Version');
  expect((await metrics.malformed.get()).values.map(({ labels, value }) => [labels.call, value])).toEqual([
    ['ListContainers', 4],
    ['Version', 1],
  ]);
});

test('a flood of one call is one line in the log, and does not hide another call', () => {
  const { refusals: each, said } = refusals();
  for (let i = 0; i < 1000; i += 1) each.count('GetContainerEvents');
  each.count('ContainerStatus', 2);
  expect(said).toEqual([
    { call: 'GetContainerEvents', messages: 1 },
    { call: 'ContainerStatus', messages: 2 },
  ]);
  each.sayDue();
  expect(said).toHaveLength(2);
  each.sayRest();
  each.sayRest();
  expect(said.slice(2)).toEqual([{ call: 'GetContainerEvents', messages: 999 }]);
});
