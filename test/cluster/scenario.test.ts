/*
 * plegwatch on a real cluster, installed by the documentation's own commands. One cluster serves all tests, in this order: each begins
 * with a plegwatch that is installed and watches both nodes, and leaves one behind.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
import { makeReleases, NEXT_COLUMN, type Published, publish, type Release } from './releases.ts';

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
    'registry',
    'skopeo',
    'cosign',
  ] as const),
)('a cluster of two nodes', () => {
  let bed: ClusterBed;
  let nodes: readonly ClusterNode[];
  let releases: readonly Release[];
  const folder = mkdtempSync(join(tmpdir(), 'on-call-'));

  beforeAll(async () => {
    // At once: the image has to be of the checkout as it is.
    releases = makeReleases(folder);
    bed = await startBed();
    nodes = bed.cluster.nodes;
  });

  afterAll(async () => {
    await bed?.stop();
    rmSync(folder, { recursive: true });
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
      const examine = async () => {
        const examined = await bed.cluster.kubectl('-n', NAMESPACE, 'exec', of, '--', 'plegwatch', 'doctor');
        expect(examined).not.toMatch(/^(warning|failed) /m);
        return examined;
      };
      console.log(await waitFor(`the doctor of ${of} finds nothing`, examine, WITHIN_MS));
    }
    for (const witness of bed.witnesses.values()) await witness.start();
  });

  it('kubectl plegwatch runs commands in a pod of the controller or the page, with no more than the documented rights', async () => {
    const ask = (command: string) =>
      bed.cluster.shell(`export PATH="$PWD/kubectl:$PATH"; kubectl plegwatch ${command}`);
    const names = nodes.map(({ name }) => name);
    const reported = async () =>
      JSON.parse(await ask('report -o json')).items.map((item: NamedItem) => item.metadata.name);
    expect(await reported()).toEqual(names);
    expect(await ask('report --node nowhere 2>&1 || echo "code $?"')).toMatch(
      /There is no node nowhere .*\[NOT_FOUND\]\n(.*\n)?code 1\n$/s,
    );
    expect(await ask('timeline 2>&1 || echo "code $?"')).toMatch(
      /missing required argument 'NODE'\n(.*\n)*code 2\n$/,
    );

    const page = (values: string) =>
      bed.cluster.shell(`
        helm upgrade plegwatch helm/plegwatch --namespace ${NAMESPACE} --reset-then-reuse-values ${values} --wait ${TIMEOUT}`);
    await bed.query(`CREATE ROLE page LOGIN PASSWORD 'PASSWORD'`);
    await bed.query(`SELECT store.grant_reader('page', $1)`, [CLUSTER]);
    await page(
      '--set ui.enabled=true --set ui.database.url=postgres://page:PASSWORD@db.example:5432/plegwatch',
    );
    expect(await reported()).toEqual(names);
    for (const name of names) {
      expect(await ask(`find ${name}`)).toMatch(new RegExp(`^node ${name}, cluster ${CLUSTER}, last seen `));
      expect(await ask(`timeline ${name} --html - | sed -n 1p`)).toMatch(/^<!doctype html>/i);
    }
    for (const command of ['readiness', 'fallbacks', 'audit --from -1m']) await ask(command);
    const onTerminal = `env -u NO_COLOR script -qec "kubectl plegwatch timeline ${names[0]}" /dev/null`;
    expect(await bed.cluster.shell(`export PATH="$PWD/kubectl:$PATH"; ${onTerminal}`)).toContain('\u001b[');

    const kubeconfig = join(folder, 'on-call');
    await bed.cluster.shell(`
      kubectl -n ${NAMESPACE} create serviceaccount on-call
      kubectl config view --raw --minify > ${kubeconfig}
      export KUBECONFIG=${kubeconfig} token=$(kubectl -n ${NAMESPACE} create token on-call)
      kubectl config set-credentials on-call --token=$token
      kubectl config set-context --current --user=on-call`);
    const asOnCall = (command: string) => ask(`--kubeconfig ${kubeconfig} ${command} 2>&1 || echo "code $?"`);
    const refused = 'kubectl plegwatch: cannot list the pods';
    expect(await asOnCall('report')).toContain(`${refused} of all namespaces. Name one with -n`);
    expect(await asOnCall(`-n ${NAMESPACE} report`)).toContain(`${refused} in the namespace ${NAMESPACE}.`);
    const documented = documentedCommands('docs/how-to/terminal.md', '## In a cluster: kubectl plegwatch');
    const [role = ''] = /^kubectl apply.*?--group=on-call$/ms.exec(documented) ?? [];
    await bed.cluster.shell(role.replace('on-call', `system:serviceaccounts:${NAMESPACE}`));
    const report = new RegExp(`^${names[0]} `, 'm');
    const isAllowed = async () => report.test(await asOnCall(`-n ${NAMESPACE} report`));
    await waitFor('the role counts', isAllowed, WITHIN_MS);

    await page('--set ui.enabled=false');
    await bed.cluster.shell(`
      kubectl -n ${NAMESPACE} delete serviceaccount/on-call role/plegwatch-commands rolebinding/plegwatch-commands`);
  });

  it('every event is stored once, or lies in a declared gap, while agents and controller are restarted', async () => {
    await bed.underChurn(async () => {
      await bed.cluster.shell(`
        kubectl -n ${NAMESPACE} rollout restart daemonset/plegwatch-agent deployment/plegwatch-controller`);
      await rolledOut();
    });
    await bed.nothingIsLost();
  });

  it('the documented audit finds every stored record of both nodes as the node signed it', async () => {
    const commands = documentedCommands('docs/how-to/audit.md', '## Check that the records were not changed');
    const audited = await bed.cluster.shell(`
      export PATH="$PWD/bin:$PATH" PLEGWATCH_DATABASE_URL='${bed.databaseUrl}'
      cd ${folder}
      ${commands}`);
    console.log(audited);
    for (const { name } of nodes)
      expect(audited).toMatch(new RegExp(`^${name}, epoch \\S+: \\d+ rows as signed, 0 differences`, 'm'));
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
    await waitFor('the Node has an Event', async () => (await events()) !== '', WITHIN_MS);
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
    await bed.underChurn(() => waitFor('both streams of the second are active', active, WITHIN_MS));
    const since = Date.now();
    await bed.underChurn(async () => {});
    await bed.nothingIsLost();
    await bed.nothingIsLost({ cluster: 'second', since });
    await bed.cluster.shell(`
      helm uninstall second --namespace second --wait ${TIMEOUT}
      kubectl delete namespace second second-agents ${TIMEOUT}`);
  });

  it('the history goes on over an uninstall, an install of a verified release from a registry, an upgrade to the next version and a rollback', async () => {
    const rows = async () => {
      const [row] = await bed.query<{ n: number }>(
        'SELECT count(*)::int4 AS n FROM plegwatch.container_events WHERE cluster = $1',
        [CLUSTER],
      );
      return row?.n ?? 0;
    };
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

    const published: Published[] = [];
    for (const release of releases) published.push(await publish(bed.cluster, release));
    const [present, next] = published;
    if (present === undefined || next === undefined) throw new Error('no two releases');
    const { host } = bed.cluster.registry;
    /** The command of a page, for a release instead of the checkout. */
    const fromRegistry = (page: string, { version }: Published) =>
      commandOf(documentedCommands(page), 'helm upgrade')
        .replace('helm/plegwatch', `oci://${host}/charts/plegwatch --version ${version} --plain-http`)
        .replace(`--set image.repository=${REGISTRY}/plegwatch`, '');
    const becomes = async ({ version, image }: Published, command: string) => {
      await bed.underChurn(async () => {
        await bed.cluster.shell(`${command} --wait ${TIMEOUT}`);
        await rolledOut();
        await watched();
        for (const { name } of nodes) await bed.reported(name, 'agent.version', version);
      });
      await bed.nothingIsLost();
      const wanted = `${REGISTRY}/plegwatch@${image}`;
      const pulled = async () => (await imagesOf(bed)).every((name) => name === wanted);
      await waitFor(`all pods run ${wanted}`, pulled, WITHIN_MS);
    };
    const pull = `helm pull oci://${host}/charts/plegwatch --version ${present.version} --plain-http --destination ${folder} 2>&1`;
    expect(await bed.cluster.shell(pull)).toContain(`Digest: ${present.chart}\n`);
    await becomes(present, fromRegistry('docs/how-to/install.md', present));
    expect(await rows()).toBeGreaterThan(before);
    await becomes(next, fromRegistry('docs/how-to/upgrade.md', next));
    const column = await bed.query(`SELECT ${NEXT_COLUMN} FROM store.node`);
    expect(column.length).toBeGreaterThan(0);
    await becomes(present, commandOf(documentedCommands('docs/how-to/upgrade.md'), 'helm rollback'));
  });
});

interface NamedItem {
  readonly metadata: { readonly name: string };
}

/** The rights of an account in the namespace of the release and in the cluster, apart from what everybody may. */
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

/** The images of the pods of agents and controllers, as their nodes pulled them. */
async function imagesOf({ cluster }: ClusterBed): Promise<string[]> {
  const of = ['-l', 'app.kubernetes.io/component in (agent, controller)'];
  const path = 'jsonpath={.items[*].status.containerStatuses[*].imageID}';
  const images = await cluster.kubectl('-n', NAMESPACE, 'get', 'pod', ...of, '-o', path);
  return images.split(' ');
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
