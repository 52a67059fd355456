/*
 * The agent's findings about the status of a real kubelet's pods, through its PodsAPI, beside what the test saw of it. Each rule holds with Evented PLEG
 * and without: it is tried on two nodes at the same time.
 */
import { beforeAll, expect, test } from 'vitest';
import { needs } from '../support/needs.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { StatusNode, WITHIN_MS } from '../support/statusNode.ts';
import { metric } from '../support/system.ts';
import { KUBELET_NEEDS, SystemBed } from '../support/systemBed.ts';
import { MAIN } from '../support/testedVersions.ts';
import { waitFor } from '../support/waitFor.ts';
import type { GapRow } from '../support/watchedNode.ts';

const TIMEOUT_MS = 1_500_000;
const LISTS = ['ListPodSandbox', 'ListContainers'] as const;

const bed = new SystemBed({ kube: true });
const both: StatusNode[] = [];

/** Tries a rule on both nodes at once: most of it is waiting. */
const onBoth = (rule: (node: StatusNode) => Promise<void>) => async () => {
  const tried = both.map((node) =>
    rule(node).catch((cause: unknown) => {
      throw new Error(`with Evented PLEG ${node.eventedPleg ? 'on' : 'off'}`, { cause });
    }),
  );
  await Promise.all(tried);
};

needs(
  ...KUBELET_NEEDS,
  `kubelet-${MAIN.minor}`,
  `containerd-${MAIN.containerd}`,
)("the status of a kubelet's pods", () => {
  beforeAll(async () => {
    // No controller creates one here, and no pod is admitted without it.
    await bed.system.kubectl('create', 'serviceaccount', 'default');
    both.push(await StatusNode.start(bed, { name: 'generic', eventedPleg: false }));
    both.push(await StatusNode.start(bed, { name: 'evented', eventedPleg: true }));
  });

  test(
    "shows a stop after the kubelet's next relist, whoever lost its event, and a miss says how long that took",
    { timeout: TIMEOUT_MS },
    onBoth(async (node) => {
      const all = await node.run('kubelet', 'agent', 'both');
      const [ofKubelet, ofAgent, ofBoth] = all;
      node.lose(['kubelet'], ofKubelet, ofBoth);
      node.lose(['agent'], ofAgent, ofBoth);
      for (const each of all) await node.kill(each);
      await node.haveRestarted(...all);
      for (const each of [ofAgent, ofBoth]) await node.missIsTrue(each);
      await node.watched.settled();
      expect(node.withoutEvent('agent', all)).toEqual([ofAgent, ofBoth]);
      expect(node.withoutEvent('kubelet', all)).toEqual(node.eventedPleg ? [ofKubelet, ofBoth] : []);
      expect(node.findings('missed', ...all)).toHaveLength(2);
      await node.nothingIsFalse();
    }),
  );

  test(
    'is late while the kubelet cannot list, which an answer to GetPod proves, until it shows the stop; a miss says the same',
    { timeout: TIMEOUT_MS },
    onBoth(async (node) => {
      const [ofKubelet, first, second] = await node.run('late-kubelet', 'late-both', 'late-agent');
      node.lose(['kubelet'], ofKubelet, first);
      node.lose(['agent'], first, second);
      const { kubelet } = node.proxies;
      bed.atEnd(() => kubelet.hold());
      kubelet.hold(...LISTS);
      for (const each of [ofKubelet, first]) await node.kill(each);
      for (const each of [ofKubelet, first]) {
        const late = await node.finding('kubelet_late', each);
        expect(late).toMatchObject({ eventType: 'STOPPED', cause: 'not_shown' });
        const { asked, answered, lateAfter, watchSince, podState } = late.proof;
        expect(podState).toBe('running');
        expect(Number(asked)).toBeGreaterThanOrEqual(Number(late.window?.to) + Number(lateAfter));
        expect(Number(answered)).toBeGreaterThan(Number(asked));
        expect(Number(watchSince)).toBeLessThan(Number(late.window?.from));
      }
      node.goOn([ofKubelet, first], () => kubelet.hold());
      await node.haveRestarted(ofKubelet, first);
      for (const each of [ofKubelet, first]) await node.latenessIsTrue(each);

      kubelet.hold(...LISTS);
      await node.kill(second);
      const { proof } = await node.finding('missed', second);
      expect(proof['kubelet']).toMatchObject({ is: 'not_shown' });
      node.goOn([second], () => kubelet.hold());
      await node.haveRestarted(second);
      for (const each of [first, second]) await node.missIsTrue(each);
      await node.latenessIsTrue(second);
      await node.nothingIsFalse();
    }),
  );

  test(
    'is not known while the kubelet is stopped, and nobody is accused of that',
    { timeout: TIMEOUT_MS },
    onBoth(async (node) => {
      const { kubelet, watched } = node;
      const all = await node.run('stopped-kubelet', 'stopped-agent', 'stopped-both');
      const [ofKubelet, ofAgent, ofBoth] = all;
      node.lose(['kubelet'], ofKubelet, ofBoth);
      node.lose(['agent'], ofAgent, ofBoth);
      const failed = async () =>
        (await metric(watched.agent, 'plegwatch_pod_queries_total{result="failed"}')) ?? 0;
      const failedBefore = await failed();
      bed.atEnd(() => thaw(kubelet.pid));
      await freeze(kubelet.pid);
      for (const each of all) await node.kill(each);
      await waitFor('a query fails', async () => (await failed()) > failedBefore, WITHIN_MS);
      for (const each of [ofAgent, ofBoth]) await node.missIsTrue(each, 'not_asked');
      expect(node.findings('kubelet_late', ...all)).toEqual([]);
      expect(node.gapsOfStatus().filter(({ cause }) => cause !== 'agent_stalled')).toEqual([]);
      node.goOn(all, () => thaw(kubelet.pid));
      await node.haveRestarted(...all);
      await watched.settled();
      await node.nothingIsFalse();
    }),
  );

  test(
    'is a gap while the kubelet is down',
    { timeout: TIMEOUT_MS },
    onBoth(async (node) => {
      const { kubelet, watched } = node;
      const [container] = await node.run('down');
      const watchedAt = Date.now();
      await kubelet.kill();
      const killedAt = Date.now();
      const broken = () => node.gapsOfStatus().find(({ cause }) => cause === 'kubelet_unavailable');
      const gap = await waitFor('the gap is open', broken, WITHIN_MS);
      expect(gap.to).toBeNull();
      await node.kill(container);
      await watched.relisted();
      const restarting = Date.now();
      await kubelet.restart();
      await node.stateIs('Watching');
      const watchingAgain = Date.now();
      const [stored] = await waitFor('the gap is closed', async () => {
        const rows = (await watched.gaps('kubelet_status')).filter(
          ({ cause }) => cause === 'kubelet_unavailable',
        );
        return rows.length === 1 && rows[0]?.to !== null ? rows : undefined;
      });
      // The store's times are those of the node's clock when the epoch began, to some milliseconds.
      // A gap begins up to two ticks early, and the watch was there by then.
      expect(stored?.from).toBeGreaterThan(watchedAt - 10_000);
      expect(stored?.from).toBeLessThan(killedAt + 1_000);
      expect(stored?.to).toBeGreaterThan(restarting - 1_000);
      expect(stored?.to).toBeLessThan(watchingAgain + 1_000);
      // The kubelet restarts what ended meanwhile; nobody is accused of that time.
      await node.haveRestarted(container);
      await watched.settled();
      expect(node.findings('kubelet_late', container)).toEqual([]);
      await node.nothingIsFalse();
    }),
  );

  test(
    'is judged from when a frozen runtime goes on, of which a gap of lists and a verdict tell; each stop is counted, as no quicker than it was',
    { timeout: TIMEOUT_MS },
    onBoth(async (node) => {
      const { containerd, watched } = node;
      const all = await node.run('frozen-one', 'frozen-two');
      bed.atEnd(() => thaw(containerd.pid));
      await freeze(containerd.pid);
      for (const each of all) await node.kill(each);
      const hang = await waitFor('the verdict is there', () => node.hang('runtime'), WITHIN_MS);
      expect(hang).toMatchObject({ container_id: null, to_at: null });
      for (const kind of ['missed', 'kubelet_late']) expect(node.findings(kind, ...all)).toEqual([]);
      const thawing = Date.now();
      node.goOn(all, () => thaw(containerd.pid));
      await node.haveRestarted(...all);
      await watched.settled();
      // The store's times are those of the node's clock when the epoch began, to some milliseconds.
      const isOfFreeze = ({ from, to }: GapRow) => from < thawing && to !== null && to > thawing - 1_000;
      expect((await watched.gaps('list')).filter(isOfFreeze)).toHaveLength(1);
      await node.countsAreTrue();
      await node.nothingIsFalse();
    }),
  );

  test('is watched once a kubelet is upgraded to a version that has it, and no longer promised after a downgrade', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const node = await StatusNode.start(bed, { name: 'upgraded', eventedPleg: false, isOld: true });
    const { kubelet } = node;
    await node.stateIs('Absent');
    kubelet.setMinor(MAIN.minor);
    await kubelet.restart();
    await node.stateIs('Watching');
    expect(node.gapsOfStatus()).toEqual([]);
    kubelet.setMinor(undefined);
    await kubelet.restart();
    await node.stateIs('Absent');
    const gaps = node.gapsOfStatus();
    expect(new Set(gaps.map(({ gapId }) => gapId)).size).toBe(1);
    // Whether a kubelet that ends still says so is a race of its own.
    expect(['closed_by_kubelet', 'kubelet_unavailable']).toContain(gaps[0]?.cause);
    expect(gaps.at(-1)?.to).toBeTypeOf('number');
  });
});
