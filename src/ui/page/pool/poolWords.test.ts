import { expect, test } from 'vitest';
import type { PoolAnswer, PoolNode } from '../../api.ts';
import { poolFigures } from './poolWords.ts';

const NODE: PoolNode = {
  ...{
    cluster: 'east',
    node: 'a',
    agent: 'Reporting',
    mode: 'Evented',
    streamState: 'Connected',
    fallbacks: 0,
  },
  ...{ verdict: 'unknown', reason: '', missed: 0, decided: 9, watched: 1, maxMs: 1 },
  ...{ runtimeName: null, runtimeVersion: null, kubeletVersion: null },
  ...{ agentVersion: null, osImage: null, kernelVersion: null },
};
const fallbacksOf = (...nodes: Partial<PoolNode>[]) => {
  const answer: Pick<PoolAnswer, 'nodes' | 'watched'> = {
    nodes: nodes.map((node) => ({ ...NODE, ...node })),
    watched: 1,
  };
  const { value, detail } = poolFigures(answer).find(({ name }) => name === 'Fallbacks') ?? {};
  return [value, detail];
};

test('where nobody saw the mode of a kubelet, whether one fell back is not known', () => {
  expect(fallbacksOf({ mode: 'Unknown' }, { mode: 'Unknown' })).toEqual([
    'not known',
    'the mode of no kubelet was seen',
  ]);
  expect(fallbacksOf({ mode: 'Unknown' }, {})).toEqual(['0', 'none was seen']);
  expect(fallbacksOf({ mode: 'Unknown', fallbacks: 2 })).toEqual(['2', 'of 1 kubelet']);
});
