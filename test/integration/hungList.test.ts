/*
 * Causes that make ListContainers of a real containerd hang (containerd#9770, #12680). UpdateContainerResources holds the lock of one container's
 * status until the shim answers, and the shim hangs; or all of containerd does. No proxy is between these programs.
 *
 * A shim that is frozen before holds up containerd 2.1. 2.4 gives up after two seconds on a shim that does not answer at all, and still waits for one
 * whose runc hangs.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import { where } from '../../devtools/localServices/where.ts';
import { type CriTestClient, connectCri } from '../../devtools/simulator/criClient.ts';
import type { PodDriver } from '../../devtools/simulator/podDriver.ts';
import { plegwatch } from '../support/commandLine.ts';
import { needs } from '../support/needs.ts';
import { shimOf } from '../support/shims.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { RUNTIME_NEEDS, SystemBed } from '../support/systemBed.ts';
import { WITHIN_MS, waitFor } from '../support/waitFor.ts';

/** `make test-long` takes as many as a node may have. */
const PODS = Number(process.env['PLEGWATCH_HUNG_PODS'] ?? 8);
/** The behaviour of the shim. */
const SHIM = { '2.1': 'is frozen', '2.4': 'waits for a runc that hangs' } as const;

const bed = new SystemBed({ kube: false });

for (const version of ['2.1', '2.4'] as const)
  needs(...RUNTIME_NEEDS, `containerd-${version}`)(
    `a list that hangs in a real containerd ${version}`,
    () => {
      const isHeld = () => bed.system.folder(`held-${version}`);
      let containerd: LocalContainerd;
      let cri: CriTestClient;
      let pods: PodDriver;

      beforeAll(async () => {
        const ociRuntime = bed.system.folder(`runc-${version}`);
        const script = `#!/bin/sh
case " $* " in *" update "*) while [ -e ${isHeld()} ]; do sleep 0.1; done ;; esac
exec ${where('runc')} "$@"
`;
        writeFileSync(ociRuntime, script, { mode: 0o755 });
        containerd = await bed.containerd({ version, ociRuntime });
        cri = connectCri(containerd.socket);
        bed.atEnd(() => cri.close());
        pods = bed.pods(containerd);
        for (let i = 1; i <= PODS; i += 1) await pods.runPod({ name: `web-${i}`, namespace: 'shop' });
      });

      /** One more pod. */
      async function podToHold() {
        const { sandbox, uid, containers } = await pods.runPod({
          ...{ name: 'held', namespace: 'shop', containers: [{ name: 'app' }] },
        });
        const shim = shimOf(sandbox);
        const containerId = containers['app'] ?? '';
        const release = () => {
          rmSync(isHeld(), { force: true });
          thaw(shim);
        };
        bed.atEnd(release);
        /** Makes its shim hang. Returns how the call ends that waits for it. */
        const hold = async () => {
          if (version === '2.1') await freeze(shim);
          else writeFileSync(isHeld(), '');
          const linux = { memoryLimitInBytes: BigInt(256 * 1024 ** 2) };
          const end = cri.call('updateContainerResources', { containerId, linux }).then(
            () => 'updated',
            () => 'failed',
          );
          return { end };
        };
        return { sandbox, uid, containerId, shim, hold, release };
      }

      const hangsOf = (node: string) =>
        bed.system.sql('SELECT * FROM plegwatch.list_hangs WHERE node = $1 ORDER BY from_at', node);

      async function hangWith(node: string, verdict: string) {
        const [hang] = await waitFor(
          `the verdict on ${node} is ${verdict}`,
          async () => {
            const rows = await hangsOf(node);
            return rows.at(-1)?.['verdict'] === verdict ? rows : undefined;
          },
          WITHIN_MS,
        );
        return hang;
      }

      async function hangHasEnded(node: string) {
        const rows = await waitFor(
          `the hang of ${node} has ended`,
          async () => {
            const found = await hangsOf(node);
            return found.every(({ to_at }) => to_at instanceof Date) ? found : undefined;
          },
          WITHIN_MS,
        );
        const gaps = await bed.system.sql(
          "SELECT * FROM plegwatch.gaps WHERE node = $1 AND scope = 'list' AND to_at IS NOT NULL",
          node,
        );
        expect(gaps.length).toBeGreaterThan(0);
        return rows;
      }

      async function watch(node: string) {
        const watched = await bed.watch(node, containerd.socket);
        await waitFor('the pods were listed', async () => {
          const rows = await bed.system.sql(
            'SELECT FROM plegwatch.relist_minutes WHERE node = $1 AND containers > 0',
            node,
          );
          return rows.length > 0;
        });
        return watched;
      }

      /** The lines about hangs that `plegwatch timeline` prints. */
      async function timelineOf(node: string) {
        const { stdout } = await plegwatch(['timeline', node, '--database-url', bed.system.postgres.url]);
        return stdout.split('\n').filter((line) => / hang {2}/.test(line));
      }

      test(`waits for the one container whose shim ${SHIM[version]}: it is named, no other is, and the hang ends with that of the shim`, {
        timeout: 4 * WITHIN_MS,
      }, async () => {
        const node = `hung-container-${version}`;
        const { sandbox, uid, containerId, hold, release } = await podToHold();
        const watched = await watch(node);
        const { end } = await hold();
        const held = performance.now();
        const hang = await hangWith(node, 'container');
        console.log(
          `${version}: named ${((performance.now() - held) / 1_000).toFixed(1)} s after its shim hung, of ${PODS + 1} pods`,
        );
        expect(hang).toMatchObject({
          ...{ list_call: 'ListContainers', to_at: null, pod_namespace: 'shop', pod_name: 'held' },
          ...{ pod_uid: uid, container_name: 'app', container_id: containerId, unanswered: 1 },
        });
        // At the latest when the others are asked for again: the search is in their second round then.
        expect(Number(hang?.['asked'])).toBeLessThan(2 * Number(hang?.['listed']));
        expect((await watched.report())?.listHang).toMatchObject({
          ...{
            call: 'ListContainers',
            verdict: 'Container',
            heldUpBy: 'shop/held/app',
            containerID: containerId,
          },
        });
        expect(await timelineOf(node)).toEqual([
          expect.stringMatching(
            /ListContainers hung until now: shop\/held app \(ListContainers waits for this container, /,
          ),
        ]);
        // Statuses that the list does not wait for are answered all the time.
        const { status } = await cri.call('podSandboxStatus', { podSandboxId: sandbox, verbose: false });
        expect(status?.id).toBe(sandbox);
        release();
        const rows = await hangHasEnded(node);
        expect(rows).toHaveLength(1);
        expect(rows).toMatchObject([{ verdict: 'container', container_id: containerId }]);
        const named = await bed.system.sql(
          'SELECT DISTINCT container_id FROM plegwatch.status_checks WHERE node = $1 AND timed_out',
          node,
        );
        expect(named).toEqual([{ container_id: containerId }]);
        expect(await end).toBe('updated');
      });

      test('ends when the shim is killed, as the runbook says', { timeout: 4 * WITHIN_MS }, async () => {
        const node = `killed-shim-${version}`;
        const { containerId, shim, hold } = await podToHold();
        await watch(node);
        const { end } = await hold();
        expect(await hangWith(node, 'container')).toMatchObject({ container_id: containerId });
        process.kill(shim, 'SIGKILL');
        await hangHasEnded(node);
        expect(await end).toBe('failed');
      });

      test('is the runtime if all of containerd is frozen, and no container', {
        timeout: 4 * WITHIN_MS,
      }, async () => {
        const node = `frozen-runtime-${version}`;
        await watch(node);
        bed.atEnd(() => thaw(containerd.pid));
        await freeze(containerd.pid);
        expect(await hangWith(node, 'runtime')).toMatchObject({
          ...{ pod_name: null, container_id: null, quick: 0, unanswered: 3 },
        });
        thaw(containerd.pid);
        const [row, ...others] = await hangHasEnded(node);
        expect(others).toEqual([]);
        // On a busy machine a status may be answered so long after the list that it need not have waited for the same.
        expect(['runtime', 'unknown']).toContain(row?.verdict);
      });
    },
  );
