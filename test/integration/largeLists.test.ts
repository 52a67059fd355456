/*
 * Lists larger than a gRPC message: the built agent with a simulated runtime that can stream them and with one that cannot.
 */
import { expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { oversizedLists } from '../../devtools/simulator/listFaults.ts';
import { PROFILES, type ProfileName } from '../../devtools/simulator/profiles.ts';
import { startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { needs } from '../support/needs.ts';
import { answerOf, metric } from '../support/system.ts';
import { SystemBed } from '../support/systemBed.ts';
import { WITHIN_MS, waitFor } from '../support/waitFor.ts';
import type { GapRow, WatchedNode } from '../support/watchedNode.ts';

const PODS = 20;

const bed = new SystemBed({ kube: false });

needs('redis-server', 'postgres')('lists over 16 MiB', () => {
  test('are streamed if the runtime can stream them, and every item arrives', async () => {
    const node = await watch('streams', 'crio-1.36');
    const { agent } = node;
    await waitFor('the list is streamed', () => logged(agent, 'list is streamed'), WITHIN_MS);
    const minute = await waitFor(
      'a minute is stored',
      async () =>
        (
          await bed.system.sql<{ containers: number; errors: number; large: boolean }>(
            `SELECT containers::int, errors::int, container_list_bytes > 16 * 1024 * 1024 AS large
               FROM plegwatch.relist_minutes WHERE node = $1 AND relists > 0`,
            node.name,
          )
        )[0],
      WITHIN_MS,
    );
    expect(minute).toEqual({ containers: PODS, errors: 0, large: true });
    expect(await failures(node)).toEqual([]);
    expect(await metric(agent, 'plegwatch_tracked_containers')).toBe(2 * PODS);
    expect(await metric(agent, 'plegwatch_untracked_containers_total')).toBe(0);
    await waitFor('it is ready', async () => (await agent.ask('/readyz'))?.status === 200);
  });

  test('lists that a runtime cannot stream are a gap with the limit as its cause, and the agent is not ready', async () => {
    const node = await watch('fails', 'crio-1.33');
    const { agent } = node;
    await waitFor('the gap is stored', async () => (await failures(node))[0], WITHIN_MS);
    expect(await failures(node)).toMatchObject([{ cause: 'over_our_limit', to: null }]);
    expect((await answerOf(agent, '/readyz'))?.body).toMatch(
      /^not ok relist: ListContainers: .*larger than max/m,
    );
    expect((await answerOf(agent, '/metrics'))?.body).toMatch(
      /^plegwatch_relist_errors_total\{code="OVER_OUR_LIMIT"\} [1-9]/m,
    );
    expect(logged(agent, 'relist failed')).toContain('"code":"OVER_OUR_LIMIT"');
  });
});

/** An agent and a node whose list of containers exceeds one message. */
async function watch(name: string, profile: ProfileName): Promise<WatchedNode> {
  const runtime = await startSimulatedRuntime({
    socket: bed.system.folder(`${name}.sock`),
    profile: { ...PROFILES[profile], listBatch: PROFILES[profile].listBatch === null ? null : 5 },
    listFaults: [oversizedLists({ seed: 1, of: 'containers' })],
  });
  bed.stopAtEnd(runtime);
  for (let n = 0; n < PODS; n += 1) runtime.runPod({ name: `pod-${n}`, containers: ['app'] });
  return bed.watch(name, runtime.socket);
}

/** The gaps of lists that failed: on a busy machine, lists of this size are slow as well. */
const failures = async (node: WatchedNode): Promise<GapRow[]> =>
  (await node.gaps('list')).filter(({ cause }) => cause !== 'slow');

const logged = (agent: LocalPlegwatch, message: string): string | undefined =>
  agent
    .log()
    .split('\n')
    .find((line) => line.includes(`"msg":"${message}"`));
