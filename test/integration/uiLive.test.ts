/*
 * The page follows what happens: a real browser on `plegwatch ui`, whose evidence a real agent takes from a real containerd. Nobody reloads it.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { createPodDriver, type DrivenPod, type PodDriver } from '../../devtools/simulator/podDriver.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { newLeftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { CLUSTER, PATIENT, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';
import { WatchedNode } from '../support/watchedNode.ts';

const leftHere = newLeftovers();

const NODE = 'node-1';

let system: System;
let containerd: LocalContainerd;
let pods: PodDriver;
let browser: TestBrowser;
let tab: Awaited<ReturnType<TestBrowser['open']>>;

needs(
  'root',
  'containerd-2.1',
  'runc',
  'redis-server',
  'postgres',
  'chromium',
)('the page of a running system', () => {
  beforeAll(async () => {
    [system, containerd, browser] = await Promise.all([
      System.start({ kube: false }),
      startContainerd({ version: '2.1' }),
      startBrowser(),
    ]);
    const { socket, cgroupParent } = containerd;
    pods = createPodDriver({ socket, cgroupParent });
    const [agent] = await Promise.all([system.agent(NODE, socket, PATIENT), system.controller()]);
    await subscribed(new WatchedNode(system, NODE, agent));
    const origin = await system.ui(await freePort());
    // Longer than the test, so that nothing leaves the period; and only its own pods.
    tab = await browser.open(`${origin}/#/node/${CLUSTER}/${NODE}?last=21600&only=shown-`);
  });
  afterAll(async () => {
    await browser?.stop();
    // Pods that it cannot remove are removed with containerd.
    await pods?.close().catch(() => undefined);
    await system?.stop();
    await containerd?.stop();
    expect(leftHere()).toEqual([]);
  });

  /** Only an event confirms a subscription. */
  const subscribed = (node: WatchedNode) =>
    waitFor('the agent receives events', async () => {
      await pods.runToEnd();
      return (await node.events()).length > 0;
    });

  /** The mark of an event in the rows of the pod, by the words that a pointer would show. */
  const mark = ({ namespace, name }: DrivenPod, type: string) =>
    tab.page
      .locator('.timeline g')
      .filter({ has: tab.page.getByText(`${namespace}/${name}`, { exact: true }) })
      .locator('path.event')
      .filter({ hasText: `${type} received` })
      .first();

  test('an event that a runtime announces appears on the timeline without a reload', async () => {
    const { page } = tab;
    await page.evaluate('globalThis.isSamePage = true');
    const pod = await pods.runPod({ name: 'shown-first' });
    await mark(pod, 'STARTED').waitFor();
    await pods.removePod(pod);
    await mark(pod, 'DELETED').waitFor();
    expect(await page.evaluate('globalThis.isSamePage')).toBe(true);
    expect(tab.takeFaults()).toEqual([]);
  });

  test('while Postgres is away the page says so and keeps what it shows, and then it follows again', async () => {
    const { page } = tab;
    const pod = await pods.runPod({ name: 'shown-before' });
    await mark(pod, 'STARTED').waitFor();
    await system.postgres.kill();
    const notice = page.getByRole('alert');
    await notice.getByText('Postgres does not answer.').waitFor();
    await notice.getByText(/^Check that Postgres runs/).waitFor();
    await notice.getByText(/the last answer\. The page goes on asking\.$/).waitFor();
    await mark(pod, 'STARTED').waitFor();
    expect(await tab.barriers()).toEqual([]);

    await system.postgres.restart();
    const after = await pods.runPod({ name: 'shown-after' });
    await mark(after, 'STARTED').waitFor();
    await notice.waitFor({ state: 'detached' });
    // The browser itself reports each answer of 503.
    expect(tab.takeFaults().filter((fault) => !fault.includes('503'))).toEqual([]);
    expect(await page.evaluate('globalThis.isSamePage')).toBe(true);
  });
});
