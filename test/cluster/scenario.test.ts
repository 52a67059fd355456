/*
 * plegwatch on a real cluster, installed by the documentation's own commands. One cluster serves all tests, in this order: each begins
 * with a plegwatch that is installed and watches both nodes, and leaves one behind.
 */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { documentedCommands, REGISTRY } from '../../devtools/cluster/documentedCommands.ts';
import type { ClusterNode } from '../../devtools/cluster/node.ts';
import { leftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { exists, freeze } from '../support/sigstop.ts';
import { waitFor } from '../support/waitFor.ts';
import { CLUSTER, type ClusterBed, NAMESPACE, startBed, WITHIN_MS } from './bed.ts';
import { podOf } from './churn.ts';
import { processesOf } from './containerProcesses.ts';

const AGENT = 'app.kubernetes.io/component=agent';
const UNINSTALL = commandOf(documentedCommands('docs/how-to/uninstall.md'), 'helm uninstall');
const TIMEOUT = `--timeout=${WITHIN_MS / 1_000}s`;

needs(
  'root',
  ...(['containerd-2.1', 'runc', 'etcd', 'kubelet', 'kube-controller-manager', 'kube-scheduler'] as const),
  ...([
    'kube-proxy',
    'coredns',
    'cni-ptp',
    'nft',
    'helm',
    'postgres',
    'redis-server',
    'image-node',
    'buildah',
  ] as const),
)('a cluster of two nodes', () => {
  let bed: ClusterBed;
  let nodes: readonly ClusterNode[];

  beforeAll(async () => {
    bed = await startBed();
    nodes = bed.cluster.nodes;
  });

  afterAll(async () => {
    await bed?.stop();
    expect(leftovers()).toEqual([]);
  });

  const watched = async () => {
    for (const { name } of nodes) {
      await bed.reported(name, 'mode', 'Evented');
      await bed.reported(name, 'stream.state', 'Active');
    }
  };
  const rolledOut = () =>
    bed.cluster.shell(`
      kubectl -n ${NAMESPACE} rollout status daemonset/plegwatch-agent ${TIMEOUT}
      kubectl -n ${NAMESPACE} rollout status deployment/plegwatch-controller ${TIMEOUT}`);

  it('the commands of the install page end in a report for every node, with MODE Evented and STREAM Active', async () => {
    await bed.cluster.shell(documentedCommands('docs/how-to/install.md'));
    await bed.underChurn(watched);
    console.log(await bed.cluster.kubectl('get', 'plegreports'));
    for (const of of ['daemonset/plegwatch-agent', 'deployment/plegwatch-controller']) {
      const examined = await bed.cluster.kubectl('-n', NAMESPACE, 'exec', of, '--', 'plegwatch', 'doctor');
      console.log(examined);
      expect(examined).not.toMatch(/^(warning|failed) /m);
    }
    for (const witness of bed.witnesses.values()) await witness.start();
  });

  it('every event is stored once, or lies in a declared gap, while agents and controller are restarted', async () => {
    await bed.underChurn(async () => {
      await bed.cluster.shell(`
        kubectl -n ${NAMESPACE} rollout restart daemonset/plegwatch-agent deployment/plegwatch-controller`);
      await rolledOut();
    });
    await bed.nothingIsLost();
  });

  it('nothing is lost when the pods of agents and controller are deleted without notice', async () => {
    await bed.underChurn(async () => {
      await bed.cluster.kubectl('-n', NAMESPACE, 'delete', 'pod', '--all', '--force', '--grace-period=0');
      await rolledOut();
    });
    await bed.nothingIsLost();
  });

  it('the kubelet kills an agent that is frozen, and pods of its node start again', async () => {
    const [node] = nodes;
    if (node === undefined) throw new Error('a cluster without nodes');
    const started = performance.now();
    const elapsed = () => `${((performance.now() - started) / 1_000).toFixed(1)} s`;
    await bed.underChurn(async () => {
      const container = await agentContainer(bed, node.name);
      const frozen = processesOf(container);
      expect(frozen.length).toBeGreaterThan(1);
      await freeze(...frozen);
      console.log(`${elapsed()}: ${frozen.length} processes of the agent are frozen`);
      await waitFor('the frozen agent is killed', () => !frozen.some(exists), WITHIN_MS);
      console.log(`${elapsed()}: killed`);
      const pod = JSON.stringify(podOf(node.name, 'after-the-freeze', 'last'));
      await bed.cluster.shell(`
        echo '${pod}' | kubectl create -f -
        kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/after-the-freeze ${TIMEOUT}
        kubectl delete pod/after-the-freeze`);
      console.log(`${elapsed()}: a pod has started and ended`);
      // Until the kubelet has said so, the DaemonSet looks as rolled out as before.
      await waitFor(
        'another container runs',
        async () => !['', container].includes(await agentContainer(bed, node.name)),
        WITHIN_MS,
        500,
      );
      await rolledOut();
    });
    await bed.nothingIsLost();
  });

  it('a restart of containerd makes the kubelet fall back, which an Event on its Node says, and a restart of the kubelet ends that', async () => {
    const [node] = nodes;
    if (node === undefined) throw new Error('a cluster without nodes');
    await node.containerd.restart();
    await bed.witnesses.get(node.name)?.start();
    await bed.reported(node.name, 'mode', 'Fallback');
    const fellBack = `reason=PLEGFellBack,involvedObject.kind=Node,involvedObject.name=${node.name}`;
    const events = () =>
      bed.cluster.kubectl('get', 'events', '-A', `--field-selector=${fellBack}`, '-o', 'name');
    await waitFor('the Node has an Event', async () => (await events()) !== '', WITHIN_MS, 500);
    await node.kubelet.restart();
    await bed.underChurn(watched);
    await bed.nothingIsLost();
  });

  it('a Node without an agent has a report that says so, and that goes with the Node', async () => {
    await bed.cluster.shell(`
      kubectl create -f - <<< '{"apiVersion":"v1","kind":"Node","metadata":{"name":"without-agent"}}'
      kubectl wait --for=create plegreport/without-agent ${TIMEOUT}
      kubectl wait --for=condition=AgentReporting=False plegreport/without-agent ${TIMEOUT}`);
    const reason = '{.status.conditions[?(@.type=="AgentReporting")].reason}';
    const report = ['get', 'plegreport', 'without-agent', '-o', `jsonpath=${reason}`];
    expect(await bed.cluster.kubectl(...report)).toBe('NeverSeen');
    await bed.cluster.shell(`
      kubectl delete node without-agent
      kubectl -n ${NAMESPACE} delete pod --field-selector=spec.nodeName=without-agent --force --grace-period=0
      kubectl wait --for=delete plegreport/without-agent ${TIMEOUT}`);
  });

  it('agents, controller and Jobs have the listed rights and no others', async () => {
    expect(await rightsOf(bed, 'plegwatch-agent')).toEqual(['nodes/metrics [] [] [get]']);
    expect(await rightsOf(bed, 'plegwatch-controller')).toEqual([
      'configmaps [] [plegwatch-keys] [get patch]',
      'events.events.k8s.io [] [] [create patch]',
      'leases.coordination.k8s.io [] [plegwatch-controller] [get create patch]',
      'namespaces [] [kube-system] [get]',
      'nodes [] [] [list watch]',
      'plegreports.plegwatch.dev [] [] [list watch create patch delete]',
      'plegreports.plegwatch.dev/status [] [] [patch]',
      'pods [] [] [get]',
      'secrets [] [plegwatch-keys] [get patch]',
      'tokenreviews.authentication.k8s.io [] [] [create]',
    ]);
    expect(await rightsOf(bed, 'default')).toEqual([]);
  });

  it('two releases with two names of a cluster share a Redis and a Postgres, the second in a restricted namespace', async () => {
    const secret = (namespace: string, name: string, url: string) =>
      `kubectl -n ${namespace} create secret generic ${name} --from-literal=url='${url}'`;
    const redisOf = (user: 'agent' | 'controller') =>
      `redis://plegwatch-second-${user}:${user.toUpperCase()}-PASSWORD@redis.example:6379`;
    await bed.cluster.shell(`
      kubectl create namespace second
      kubectl create namespace second-agents
      kubectl label namespace second pod-security.kubernetes.io/enforce=restricted
      kubectl label namespace second-agents pod-security.kubernetes.io/enforce=privileged
      ${secret('second', 'redis', redisOf('controller'))}
      ${secret('second-agents', 'redis', redisOf('agent'))}
      ${secret('second', 'database', 'postgres://plegwatch:PASSWORD@db.example:5432/plegwatch')}
      helm install second helm/plegwatch --namespace second --set cluster=second \
        --set image.repository=${REGISTRY}/plegwatch --set crds.enabled=false \
        --set agent.namespace=second-agents --set agent.spool.hostPath=/var/lib/plegwatch-second \
        --set redis.existingSecret=redis --set redis.agent.existingSecret=redis --set database.existingSecret=database --wait ${TIMEOUT}`);
    const active = async () => {
      const [row] = await bed.query<{ n: number }>(
        `SELECT count(*)::int4 AS n FROM plegwatch.nodes WHERE cluster = 'second' AND stream_state = 'Active'`,
      );
      return row?.n === nodes.length;
    };
    await bed.underChurn(() => waitFor('both streams of the second are active', active, WITHIN_MS, 500));
    const since = Date.now();
    await bed.underChurn(async () => {});
    await bed.nothingIsLost();
    await bed.nothingIsLost({ cluster: 'second', since });
    await bed.cluster.shell(`
      helm uninstall second --namespace second --wait ${TIMEOUT}
      kubectl delete namespace second second-agents ${TIMEOUT}`);
  });

  it('the history goes on over an upgrade, a rollback, an uninstall and a new install', async () => {
    const rows = async () => {
      const [row] = await bed.query<{ n: number }>(
        'SELECT count(*)::int4 AS n FROM plegwatch.container_events WHERE cluster = $1',
        [CLUSTER],
      );
      return row?.n ?? 0;
    };
    const period = () =>
      bed.cluster.shell(
        `kubectl -n ${NAMESPACE} get daemonset plegwatch-agent -o yaml | grep -A1 RELIST_PERIOD | tail -n 1 | tr -d ' '`,
      );
    await bed.underChurn(async () => {
      await bed.cluster.shell(
        `${commandOf(documentedCommands('docs/how-to/upgrade.md'), 'helm upgrade')} --set agent.relistPeriod=7s --wait ${TIMEOUT}`,
      );
      await rolledOut();
    });
    expect(await period()).toBe('value:7s\n');
    await bed.underChurn(async () => {
      await bed.cluster.shell(
        `${commandOf(documentedCommands('docs/how-to/upgrade.md'), 'helm rollback')} --wait ${TIMEOUT}`,
      );
      await rolledOut();
    });
    expect(await period()).toBe('value:5s\n');
    await bed.nothingIsLost();

    const before = await rows();
    await bed.cluster.shell(`
      ${UNINSTALL} --wait ${TIMEOUT}
      kubectl -n ${NAMESPACE} wait --for=delete pod --all ${TIMEOUT}`);
    const kept = await bed.cluster.kubectl('get', 'plegreports', '-o', 'name');
    expect(kept.trim().split('\n').sort()).toEqual(
      nodes.map(({ name }) => `plegreport.plegwatch.dev/${name}`),
    );
    for (const node of nodes) expect(existsSync(node.path('/var/lib/plegwatch'))).toBe(true);
    expect(await rows()).toBeGreaterThanOrEqual(before);

    await bed.cluster.shell(commandOf(documentedCommands('docs/how-to/install.md'), 'helm upgrade'));
    await bed.underChurn(watched);
    await bed.nothingIsLost();
    expect(await rows()).toBeGreaterThan(before);
  });
});

/** What an account may do in the namespace of the release and in the cluster, apart from what everybody may. */
async function rightsOf({ cluster }: ClusterBed, account: string): Promise<string[]> {
  const listOf = async (user: string) =>
    (await cluster.kubectl('-n', NAMESPACE, 'auth', 'can-i', '--list', `--as=system:serviceaccount:${user}`))
      .split('\n')
      .map((line) => line.trim().replaceAll(/\s+/g, ' '));
  const everyones = new Set(await listOf('default:default'));
  const rights = (await listOf(`${NAMESPACE}:${account}`)).filter((right) => !everyones.has(right));
  // One may come from a role and a cluster role.
  return [...new Set(rights)].sort();
}

/** The id of the container of a node's agent. */
async function agentContainer({ cluster }: ClusterBed, node: string): Promise<string> {
  const of = ['-l', AGENT, `--field-selector=spec.nodeName=${node}`];
  const path = 'jsonpath={.items[0].status.containerStatuses[0].containerID}';
  const id = await cluster.kubectl('-n', NAMESPACE, 'get', 'pod', ...of, '-o', path);
  return id.replace('containerd://', '');
}

/** The command that begins like this, with its continued lines. */
function commandOf(commands: string, beginning: string): string {
  const [command] = commands.slice(commands.indexOf(beginning)).split(/(?<!\\)\n/);
  return command ?? '';
}
