/*
 * Real runtimes: what each version provides, that the agent harms none of them, an upgrade in place, and a restart under
 * load.
 */
import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import type { ContainerdVersion } from '../../devtools/localServices/where.ts';
import { connectCri } from '../../devtools/simulator/criClient.ts';
import type { DrivenPod, PodDriver } from '../../devtools/simulator/podDriver.ts';
import { StatusQueries } from '../../src/agent/observe/statusQueries.ts';
import { CriClient } from '../../src/cri/client.ts';
import type { StatusAnswer } from '../../src/protocol/observation.ts';
import { churn, churnUntil } from '../support/churn.ts';
import {
  certainOf,
  disordered,
  eventKey,
  type Listener,
  listen,
  onlyCertainOf,
  onlyOf,
} from '../support/listener.ts';
import { needs } from '../support/needs.ts';
import { exists } from '../support/sigstop.ts';
import { answerOf, LASTING_READER, PATIENT } from '../support/system.ts';
import { RUNTIME_NEEDS, SystemBed } from '../support/systemBed.ts';
import { CACHE, MAIN } from '../support/testedVersions.ts';
import { passes, waitFor } from '../support/waitFor.ts';
import { unconfirmedBy, type WatchedNode } from '../support/watchedNode.ts';

const TIMEOUT_MS = 600_000;
const POD_COUNT = 6;
const DOOMED = 3;
const LATER_CALLS = 50;

const MEMORY_BYTES = 64 * 1024 ** 2;
const ALLOCATE = 'dd if=/dev/zero of=/dev/null bs=512M count=1';
/** In the second, the first process lives on and ends well. */
const GREEDY = [
  { name: 'app', command: ['sh', '-c', `sleep 1; exec ${ALLOCATE}`], memoryBytes: MEMORY_BYTES },
  { name: 'parent', command: ['sh', '-c', `sleep 1; ${ALLOCATE}; exit 0`], memoryBytes: MEMORY_BYTES },
];

const bed = new SystemBed({ kube: false });
/** Without pods when a test begins. */
const shared = new Map<ContainerdVersion, LocalContainerd>();
let containerd: LocalContainerd;
let pods: PodDriver;
let nodes = 0;

needs(
  ...RUNTIME_NEEDS,
  'containerd-1.6',
  'containerd-1.7',
  `containerd-${CACHE.containerd}`,
  `containerd-${MAIN.containerd}`,
)('on a real runtime', () => {
  beforeAll(async () => {
    for (const version of ['1.6', '1.7', MAIN.containerd] as const)
      shared.set(version, await bed.containerd({ version }));
  });

  // First: an event that nobody took is sent to the next subscriber.
  test.each(['1.7', MAIN.containerd] as const)(
    'containerd %s sends a subscriber nothing before the first event, so that nothing else proves a subscription',
    { timeout: TIMEOUT_MS },
    async (version) => {
      await use(version);
      const client = connectCri(containerd.socket);
      bed.atEnd(() => client.close());
      const stream = client.events();
      stream.on('error', () => undefined);
      bed.atEnd(() => stream.cancel());
      const answers: string[] = [];
      stream.on('metadata', () => answers.push('headers'));
      stream.on('data', () => answers.push('event'));
      // Answers to calls that were made after it on the same connection.
      for (let i = 0; i < LATER_CALLS; i += 1) await client.call('listPodSandbox', { filter: undefined });
      expect(answers).toEqual([]);
      await pods.runPod({ name: 'first' });
      await waitFor('an event has arrived', () => answers.includes('event') || undefined);
      expect(answers.slice(0, 2)).toEqual(['headers', 'event']);
    },
  );

  test('the stream of containerd 1.6 is Unsupported: relists give the evidence, the report has no missed count, and the node is healthy', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await use('1.6');
    const node = await watch();
    await node.streamIs('Unsupported');
    const pod = await runListedPod(node);
    await node.settled();

    await expectChanges(node, pod, ['running', 'non-existent']);
    expect(await node.findings()).toEqual([]);
    expect(await node.events()).toEqual([]);
    expect(await node.sessions()).toEqual([]);
    // A busy machine may stall the agent, which is another gap.
    const gaps = (await node.gaps('stream')).filter(({ cause }) => !cause.endsWith('_stalled'));
    expect(gaps).toMatchObject([{ cause: 'unproven' }, { cause: 'unsupported', to: null }]);
    await expectMissedAbsent(node, 'Unsupported');
    await expectWell(node);
  });

  test('the stream of containerd 1.7 is Unsafe: the agent takes no event away from other subscribers', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await use('1.7');
    const before = listener();
    const node = await watch();
    await node.streamIs('Unsafe');
    const first = await runPods();
    await passes(() => expect(onlyCertainOf(first, before.received)).toEqual(certainOf(first)));

    // The two listeners share the events: an event that neither has was taken by another subscriber.
    const after = listener();
    const second = await runPods();
    const both = () => onlyCertainOf(second, [...before.received, ...after.received]);
    await passes(() => expect(both()).toEqual(certainOf(second)));
    expect(after.received.length).toBeGreaterThan(0);

    const pod = await runListedPod(node);
    await node.settled();
    await expectChanges(node, pod, ['running', 'non-existent']);
    expect(await node.findings()).toEqual([]);
    expect(await node.events()).toEqual([]);
    expect(await node.sessions()).toEqual([]);
    await expectMissedAbsent(node, 'Unsafe');
    await expectWell(node);
  });

  test('the stream of the newest containerd is Active: every subscriber receives every event, and the store has them all', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await use(MAIN.containerd);
    const before = listener();
    const node = await watch();
    const after = listener();
    await armed(node, after);
    const failing = { name: 'app', command: ['sh', '-c', 'sleep 1; exit 7'] };
    const failed = await pods.runPod({ name: 'failing', containers: [failing] });
    const all = await runPods();
    for (const { received } of [before, after])
      await passes(() => expect(onlyCertainOf(all, received)).toEqual(certainOf(all)));
    await node.settled();
    await passes(async () => {
      expect(onlyOf(all, after.received)).toEqual(onlyOf(all, before.received));
      expect(onlyOf(all, await node.events())).toEqual(onlyOf(all, before.received));
    });
    await passes(async () => expect(await endsOf(failed)).toEqual({ app: [7, 'Error'] }));
    expect(unconfirmedBy(before, await node.accusations())).toEqual([]);
    // It is absent until a covered minute has been stored.
    await passes(async () => {
      const missed = await node.missed();
      const resolved24h = missed.filter(({ resolved }) => resolved).length;
      const total = missed.length - resolved24h;
      expect((await node.report())?.missed).toMatchObject({ total, last24h: total, resolved24h });
    });
    await expectWell(node);
  });

  test('an OOM kill is stored as its event says it, of the container or of a process in it', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await use(MAIN.containerd);
    const node = await watch();
    const other = listener();
    await armed(node, other);
    const killed: DrivenPod[] = [];
    // containerd may learn of a kill only after it announced the end. The kernel's own count says that there was one.
    await waitFor('containerd learned of both kills in time', async () => {
      const before = oomKills();
      const pod = await pods.runPod({ name: 'greedy', containers: GREEDY });
      killed.push(pod);
      const ids = Object.values(pod.containers);
      await waitFor('the ends are announced', () => ids.every((id) => other.ends.has(id)));
      expect(oomKills()).toBeGreaterThanOrEqual(before + ids.length);
      return ids.every((id) => other.ends.get(id)?.[1] === 'OOMKilled');
    });
    await passes(async () =>
      expect(await Promise.all(killed.map(endsOf))).toEqual(
        killed.map(({ containers }) =>
          Object.fromEntries(Object.entries(containers).map(([name, id]) => [name, other.ends.get(id)])),
        ),
      ),
    );
    expect(await Promise.all(killed.slice(-1).map(endsOf))).toEqual([
      { app: [137, 'OOMKilled'], parent: [0, 'OOMKilled'] },
    ]);
  });

  test.each(['1.6', '1.7', MAIN.containerd] as const)(
    'containerd %s reports of a sandbox only its creation time and whether it is ready',
    { timeout: TIMEOUT_MS },
    async (version) => {
      await use(version);
      const ask = asking();
      const before = BigInt(Date.now()) * 1_000_000n;
      const pod = await pods.runPod({ name: 'asked' });
      const after = BigInt(Date.now()) * 1_000_000n;

      const ready = await ask(pod.sandbox);
      expect(ready).toMatchObject({
        found: true,
        sandbox: 'running',
        times: { startedNs: 0n, finishedNs: 0n },
      });
      const created = ready.found ? ready.times.createdNs : 0n;
      expect(created > before && created < after).toBe(true);
      await pods.stopPod(pod);
      expect(await ask(pod.sandbox)).toMatchObject({
        found: true,
        sandbox: 'exited',
        times: { finishedNs: 0n },
      });
      await pods.removePod(pod);
      expect(await ask(pod.sandbox)).toMatchObject({ found: false, reason: 'NOT_FOUND' });
    },
  );

  test('an agent notices an upgrade in place from containerd 1.7 to 2.1 and subscribes to the stream, which is safe now', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await use('1.7');
    const node = await watch();
    await node.streamIs('Unsafe');
    const survivor = await pods.runPod({ name: 'survivor' });
    await node.relisted();

    await containerd.kill('SIGTERM');
    await waitFor('containerd has ended', () => !containerd.running());
    await use('2.1', containerd.dir);
    const other = listener();
    await waitFor('it is no longer Unsafe', async () => (await node.streamState()) !== 'Unsafe');
    await node.armed(pods);
    const report = await node.streamIs('Active');
    expect(report.runtime.version).toMatch(/^2\.1/);
    await node.relisted();
    const all = await runPods();
    await pods.removePod(survivor);
    await node.settled();
    expect(onlyCertainOf(all, await node.events())).toEqual(certainOf(all));
    expect(await node.events()).toContain(eventKey(survivor.containers['app'] ?? '', 'DELETED'));
    expect(unconfirmedBy(other, await node.accusations())).toEqual([]);
    const sessions = await node.sessions();
    expect(sessions.at(-1)).toMatchObject({ closed: null });
    expect(sessions.filter(({ version }) => !version.startsWith('2.1'))).toEqual([]);
    await expectWell(node);
  });

  test.each([
    ['SIGKILL', MAIN.containerd],
    ['SIGTERM', CACHE.containerd],
  ] as const)(
    'a restart by %s of containerd %s under load is a gap with exact bounds, and no event is reported as missed',
    { timeout: TIMEOUT_MS },
    async (signal, version) => {
      await use(version);
      const node = await watch();
      const doomed: DrivenPod[] = [];
      for (let i = 1; i <= DOOMED; i += 1) doomed.push(await pods.runPod({ name: `doomed-${i}` }));
      await node.armed(pods);
      await node.relisted();
      const pids = await processesOf(doomed);
      const traffic = churn(pods, containerd.socket);
      bed.atEnd(() => traffic.stop());
      await waitFor('pods come and go', () => traffic.completed.length >= POD_COUNT);

      const killed = Date.now();
      await containerd.kill(signal);
      await waitFor('containerd has ended', () => !containerd.running());
      const gone = Date.now();
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      await waitFor('the containers have ended', () => pids.every((pid) => !exists(pid)));
      await containerd.restart();
      const other = listener();

      await waitFor('a session is armed', async () => (await node.sessions()).at(1)?.armed);
      await traffic.stop();
      await node.relisted();
      await runPods();
      for (const pod of doomed) await pods.removePod(pod);
      await pods.cleanup();
      await node.settled();

      await expectOneGap(node, gone);
      await expectTwoSessions(node, killed);
      await expectUnobservedExits(node, doomed);
      await expectNothingMissed(node, other);
    },
  );
});

/** Takes the shared containerd of this version, or starts one, in the folder of an earlier one if given. */
async function use(version: ContainerdVersion, dir?: string): Promise<void> {
  containerd =
    shared.get(version) ?? (await bed.containerd(dir === undefined ? { version } : { version, dir }));
  pods = bed.pods(containerd, { timeoutMs: TIMEOUT_MS });
}

function watch(): Promise<WatchedNode> {
  nodes += 1;
  return bed.watch(`node-${nodes}`, containerd.socket, { ...PATIENT, ...LASTING_READER });
}

function listener(): Listener {
  const made = listen(containerd.socket);
  bed.atEnd(() => made.close());
  return made;
}

/** Requests the status of a sandbox as an agent does if an event is overdue. */
function asking(): (id: string) => Promise<StatusAnswer> {
  const client = new CriClient(containerd.socket);
  bed.atEnd(() => client.close());
  const answers: StatusAnswer[] = [];
  const questions = new StatusQueries(client, {
    answered: (answer) => answers.push(answer),
    malformed: () => undefined,
  });
  bed.atEnd(() => questions.stop());
  return (id) => {
    questions.ask({ id, isSandbox: true });
    return waitFor('the runtime has answered', () => answers.shift());
  };
}

/** Runs and removes pods one after another. */
async function runPods(): Promise<DrivenPod[]> {
  const all: DrivenPod[] = [];
  for (let i = 0; i < POD_COUNT; i += 1) all.push(await pods.runToEnd());
  return all;
}

/** The code and the reason of its containers' ends, by name, from their events. */
async function endsOf({ containers }: DrivenPod): Promise<Record<string, unknown>> {
  const rows = await bed.system.sql<{ name: string; type: string; code: number; reason: string }>(
    `SELECT container_name AS name, event_type AS type, exit_code AS code, exit_reason AS reason
       FROM plegwatch.container_events WHERE container_id = ANY ($1) AND exit_reason IS NOT NULL`,
    Object.values(containers),
  );
  expect(new Set(rows.map(({ type }) => type))).toEqual(new Set(['STOPPED']));
  return Object.fromEntries(rows.map(({ name, code, reason }) => [name, [code, reason]]));
}

/** How many processes the kernel of this machine has killed for want of memory. */
const oomKills = (): number => Number(/^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1]);

async function runListedPod(node: WatchedNode): Promise<DrivenPod> {
  const pod = await pods.runPod({ name: 'seen' });
  await node.relisted();
  await pods.removePod(pod);
  await node.relisted();
  return pod;
}

/** Runs pods until store and listener have an event: nothing else confirms a subscription. */
const armed = (node: WatchedNode, other: Listener): Promise<true> =>
  churnUntil(
    pods,
    'both are subscribed',
    async () => other.received.length > 0 && (await node.events()).length > 0,
  );

/** The states that lists showed of the pod's container, in order. They may have shown others while it started or was removed. */
async function expectChanges(node: WatchedNode, pod: DrivenPod, states: readonly string[]): Promise<void> {
  const shown = await node.changes(pod.containers['app'] ?? '');
  expect(shown.filter((state) => states.includes(state))).toEqual(states);
}

async function expectMissedAbsent(node: WatchedNode, state: string): Promise<void> {
  const report = await node.streamIs(state);
  expect(report).not.toHaveProperty('missed');
  const row = new RegExp(`^${node.name} +Unknown +${state} +False +\\S+$`);
  // A controller that is behind does not say yet whether evidence is complete.
  await passes(async () => expect(await node.row()).toMatch(row));
}

/** The agent relists and is ready, and the report shows no problem. */
async function expectWell(node: WatchedNode): Promise<void> {
  await passes(async () => {
    const report = await node.report();
    const status = new Map(report?.conditions.map((condition) => [condition.type, condition.status]));
    expect([status.get('Ready'), status.get('RelistHealthy')]).toEqual(['True', 'True']);
    expect((await answerOf(node.agent, '/readyz'))?.status).toBe(200);
  });
}

/** The processes of the pods' containers. */
async function processesOf(wanted: readonly DrivenPod[]): Promise<number[]> {
  const ids = new Set(wanted.flatMap(({ containers }) => Object.values(containers)));
  const lines = (await containerd.ctr(['tasks', 'ls'])).split('\n').map((line) => line.split(/\s+/));
  const pids = lines.filter(([id]) => ids.has(id ?? '')).map(([, pid]) => Number(pid));
  expect(pids).toHaveLength(ids.size);
  return pids;
}

/** One gap of the stream, from before the end of the runtime to the first event after it, and no event in between. */
async function expectOneGap(node: WatchedNode, gone: number): Promise<void> {
  const gaps = (await node.gaps('stream')).filter(({ cause }) => cause === 'broken');
  expect(gaps).toHaveLength(1);
  const [before, after] = await node.sessions();
  // Events that were in the socket when the runtime ended may be received a little later.
  const first = await node.firstEventAfter(before?.closed ?? Number.NaN);
  // It begins when the stream was last known to be complete, not when its end was noticed.
  expect(gaps[0]?.from).toBeLessThanOrEqual(gone);
  expect(gaps[0]?.from).toBeLessThan(before?.closed ?? Number.NaN);
  expect(gaps[0]?.from).toBeGreaterThan(before?.armed ?? Number.NaN);
  expect(gaps[0]?.to).toBe(first);
  expect(after?.armed).toBe(first);
}

async function expectTwoSessions(node: WatchedNode, killed: number): Promise<void> {
  const sessions = await node.sessions();
  expect(sessions).toMatchObject([
    { code: 'UNAVAILABLE', closed: expect.any(Number) },
    { code: null, closed: null, armed: expect.any(Number) },
  ]);
  const [before, after] = sessions;
  expect(before?.closed).toBeGreaterThanOrEqual(killed);
  expect(after?.opened).toBeGreaterThanOrEqual(before?.closed ?? Number.NaN);
  expect(before?.events).toBe(await node.eventsUntil(before?.closed ?? Number.NaN));
}

/**
 * The only findings are events out of order and removals that were announced twice: a containerd that was killed while it removed a pod may
 * announce the stop after the removal, and the removal again. Each of those events really was out of order or came twice.
 */
async function expectNothingMissed(node: WatchedNode, other: Listener): Promise<void> {
  const events = await node.liveEvents();
  const again = new Set(events.filter((event, i) => events.indexOf(event) < i));
  const others = unconfirmedBy(other, await node.accusations()).filter(
    ({ finding, event }) =>
      !finding.startsWith('out_of_order') && !(finding.startsWith('duplicate DELETED ') && again.has(event)),
  );
  expect(others).toEqual([]);
  expect(disordered(events).sort()).toEqual((await node.outOfOrderFindings()).sort());
}

/** The runtime never announces what ended while it was down; lists show it, and no event is reported as missed. */
async function expectUnobservedExits(node: WatchedNode, ended: readonly DrivenPod[]): Promise<void> {
  const events = new Set(await node.events());
  for (const pod of ended) {
    const id = pod.containers['app'] ?? '';
    await expectChanges(node, pod, ['running', 'exited', 'non-existent']);
    expect([events.has(eventKey(id, 'STOPPED')), events.has(eventKey(id, 'DELETED'))]).toEqual([false, true]);
    const findings = await node.findings(id);
    expect(await node.accusations(id)).toEqual([]);
    expect(findings.filter((finding) => finding.startsWith('unobservable STOPPED '))).toHaveLength(1);
  }
}
