/*
 * The identity of a cluster, on real API servers: each has its own Namespace kube-system, as every cluster does.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { createKubeClient } from '../../src/kube/client.ts';
import { needs } from '../support/needs.ts';
import { installPlegReports } from '../support/plegreports.ts';
import { metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

needs(
  'redis-server',
  'postgres',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('a second cluster under the name of a first', () => {
  let system: System;
  let second: LocalApiServer;
  let runtime: SimulatedRuntime;
  const events = async () => (await system.sql('SELECT FROM plegwatch.container_events')).length;
  const uid = async () => (await system.sql<{ uid: string | null }>('SELECT uid FROM store.cluster'))[0]?.uid;

  beforeAll(async () => {
    system = await System.start({ kube: true });
    second = await startApiServer({ users: { stranger: [] } });
    const kube = await createKubeClient({ kubeconfig: second.kubeconfig });
    await installPlegReports(kube);
    kube.close();
    runtime = await startSimulatedRuntime({ socket: system.folder('cri.sock'), seed: 1 });
  });
  afterAll(async () => {
    await system?.stop();
    await second?.stop();
    await runtime?.stop();
  });

  test('its name is bound to the UID of the Namespace kube-system by the first controller', async () => {
    const controller = await system.controller();
    expect(await uid()).toBe(
      await system.kubectl('get', 'namespace', 'kube-system', '-o', 'jsonpath={.metadata.uid}'),
    );
    await controller.stop();
  });

  test('its controller ends, and says why, before it stores anything', async () => {
    await system.agent('node-a', runtime.socket);
    await waitFor('the agent is subscribed', () => runtime.subscribers > 0);
    runtime.runPod({ name: 'pod', containers: ['app'] });
    await expect(system.controller({ kubeconfig: second.kubeconfig })).rejects.toThrow(
      /this is another cluster\.[\s\S]*store\.rebind_cluster\('test'\)[\s\S]*\[CLUSTER_NAME_TAKEN\]/,
    );
    expect(await events()).toBe(0);
    const reports = ['--kubeconfig', second.kubeconfig, 'get', 'plegreports', '-o', 'name'];
    expect(await system.kubectl(...reports)).toBe('');
  });

  test('after store.rebind_cluster it has the name, and the first one is refused', async () => {
    await expect(system.sql("SELECT store.rebind_cluster('nobody')")).rejects.toThrow('no cluster nobody');
    await system.sql("SELECT store.rebind_cluster('test')");
    const controller = await system.controller({ kubeconfig: second.kubeconfig });
    await waitFor('the events are stored', async () => (await events()) > 0);
    await controller.stop();
    await expect(system.controller()).rejects.toThrow('CLUSTER_NAME_TAKEN');
  });

  test('a controller that may not read the Namespace says so, counts it and goes on', async () => {
    const before = await events();
    await system.kubectl(
      '--kubeconfig',
      second.kubeconfig,
      'create',
      'clusterrole',
      'nodes',
      '--verb=get,list,watch',
      '--resource=nodes',
    );
    await system.kubectl(
      '--kubeconfig',
      second.kubeconfig,
      'create',
      'clusterrolebinding',
      'nodes',
      '--clusterrole=nodes',
      '--user=stranger',
    );
    const controller = await system.controller({ kubeconfig: second.kubeconfigOf('stranger') });
    expect(controller.log()).toMatch(
      /namespaces \\?"kube-system\\?" is forbidden.*the identity of the cluster is not known/,
    );
    expect(await metric(controller, 'plegwatch_cluster_identity_unknown_total')).toBeGreaterThan(0);
    runtime.runPod({ name: 'pod-2', containers: ['app'] });
    await waitFor('the events are stored', async () => (await events()) > before);
    await controller.stop();
  });
});
