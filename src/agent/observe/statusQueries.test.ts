/*
 * StatusQueries to a simulated runtime, over a real socket.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { SimulatedRuntime } from '../../../devtools/simulator/runtime.ts';
import { TestBed } from '../../../devtools/simulator/testBed.ts';
import { until } from '../../../test/support/waitFor.ts';
import { CriClient } from '../../cri/client.ts';
import type { StatusAnswer, StatusQuery } from '../../protocol/observation.ts';
import { StatusQueries } from './statusQueries.ts';

let bed: TestBed;
let runtime: SimulatedRuntime;
let client: CriClient;
let answers: StatusAnswer[];
let questions: StatusQueries;

beforeEach(async () => {
  bed = new TestBed();
  runtime = await bed.start();
  client = new CriClient(runtime.socket);
  answers = [];
  questions = new StatusQueries(client, {
    answered: (answer) => answers.push(answer),
    malformed: () => undefined,
  });
});
afterEach(async () => {
  questions.stop();
  client.close();
  await bed.close();
});

async function ask(...asks: StatusQuery[]): Promise<readonly StatusAnswer[]> {
  for (const each of asks) questions.ask(each);
  await until(() => answers.length >= asks.length);
  return answers.splice(0);
}

test('the status of a sandbox has its creation and whether it is ready, but no time of its end', async () => {
  const before = BigInt(Date.now()) * 1_000_000n;
  const { sandbox } = runtime.runPod({ name: 'web', containers: ['app'] });
  const asked = { id: sandbox.id, isSandbox: true };
  const [ready] = await ask(asked);
  expect(ready).toMatchObject({ id: sandbox.id, found: true, sandbox: 'running' });
  runtime.core.pods.stopPod(sandbox.id);
  const [ended] = await ask(asked);
  expect(ended).toMatchObject({ found: true, sandbox: 'exited', times: { startedNs: 0n, finishedNs: 0n } });
  if (ready?.found !== true || ended?.found !== true) throw new Error('it was not found');
  expect(ended.times).toEqual(ready.times);
  expect(ready.times.createdNs).toBeGreaterThanOrEqual(before);
  expect(ended.asked).toBeGreaterThan(ready.at);
  expect(ended.at).toBeGreaterThan(ended.asked);
});

test('the status of a container has its exact times', async () => {
  const { containers } = runtime.runPod({ name: 'web', containers: ['app'] });
  const id = containers[0]?.id ?? '';
  const [answer] = await ask({ id, isSandbox: false });
  expect(answer).toMatchObject({ id, found: true, sandbox: null });
  if (answer?.found !== true) throw new Error('it was not found');
  expect(answer.times.startedNs).toBeGreaterThanOrEqual(answer.times.createdNs);
});

test('a query for an unknown id answers not found, with the code of the failure', async () => {
  const { sandbox } = runtime.runPod({ name: 'web' });
  runtime.core.pods.stopPod(sandbox.id);
  runtime.core.pods.beginRemoval(sandbox.id);
  runtime.core.pods.finishRemoval(sandbox.id);
  const gone = { found: false, reason: 'NOT_FOUND' };
  expect(await ask({ id: sandbox.id, isSandbox: true }, { id: 'none', isSandbox: false })).toMatchObject([
    { id: 'none', ...gone },
    { id: sandbox.id, ...gone },
  ]);
  await runtime.goDown('stopped');
  expect(await ask({ id: sandbox.id, isSandbox: true })).toMatchObject([
    { found: false, reason: 'UNAVAILABLE' },
  ]);
});

test('containers are queried first, each id waits once, and at most a thousand wait', async () => {
  const { sandbox, containers } = runtime.runPod({ name: 'web', containers: ['app'] });
  const container = containers[0]?.id ?? '';
  for (let n = 0; n < 3; n += 1) questions.ask({ id: sandbox.id, isSandbox: true });
  for (let n = 0; n < 998; n += 1) questions.ask({ id: `none-${n}`, isSandbox: true });
  questions.ask({ id: container, isSandbox: false });
  questions.ask({ id: 'one-too-many', isSandbox: false });
  await until(() => answers.length >= 3);
  expect(answers.slice(0, 3).map(({ id }) => id)).toEqual([container, sandbox.id, 'none-0']);
});
