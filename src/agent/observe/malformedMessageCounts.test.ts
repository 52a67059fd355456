import { expect, test } from 'vitest';
import { ThrottledLog } from '../../platform/throttledLog.ts';
import { AgentMetrics } from '../metrics.ts';
import { MalformedMessages } from './malformedMessageCounts.ts';

function malformedMessages() {
  const metrics = new AgentMetrics();
  const lines: unknown[] = [];
  const write = (fields: unknown) => void lines.push(fields);
  const log = new ThrottledLog({ warn: write, error: write }, { linesPerMinute: 1 });
  return { malformed: new MalformedMessages(metrics, log), metrics, lines, log };
}

test('every malformed message is counted by its call', async () => {
  const { malformed, metrics } = malformedMessages();
  malformed.count('ListContainers', 3);
  malformed.count('ListContainers');
  malformed.count('Version');
  const { values } = await metrics.malformed.get();
  expect(Object.fromEntries(values.map(({ labels, value }) => [labels.call, value]))).toEqual({
    Version: 1,
    ListPodSandbox: 0,
    ListContainers: 4,
    ContainerStatus: 0,
    PodSandboxStatus: 0,
    GetContainerEvents: 0,
  });
});

test('a flood of malformed messages of one call is one line in the log, and does not suppress another call', () => {
  const { malformed, lines, log } = malformedMessages();
  for (let i = 0; i < 1000; i += 1) malformed.count('GetContainerEvents');
  malformed.count('ContainerStatus', 2);
  expect(lines).toEqual([
    { call: 'GetContainerEvents', messages: 1 },
    { call: 'ContainerStatus', messages: 2 },
  ]);
  log.flushDue();
  expect(lines).toHaveLength(2);
  log.flush();
  log.flush();
  expect(lines.slice(2)).toEqual([{ call: 'GetContainerEvents', messages: 1, suppressed: 998 }]);
});
