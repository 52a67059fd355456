/*
 * `plegwatch-dev cluster`: starts a cluster, installs plegwatch as docs/how-to/install.md says unless that is left to you, waits for the reports, and
 * opens a shell with kubectl and helm. Removes everything when that ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { messageOf } from '../../src/platform/errors.ts';
import { type ConfigOf, string, toggle, withDefault } from '../../src/platform/settings.ts';
import { aborted } from '../../src/platform/stopSignal.ts';
import { VERSION } from '../../src/platform/version.ts';
import { CHECKOUT } from '../checkout.ts';
import { programFailed, waitFor } from '../localServices/process.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { documentedCommands, REGISTRY } from './documentedCommands.ts';

/** The image of all platforms; a node takes its own. */
const IMAGE_ARCHIVE = join(CHECKOUT, `dist/image/plegwatch-${VERSION}.tar`);

export const CLUSTER_SETTINGS = {
  image: withDefault('file', IMAGE_ARCHIVE, 'the archive of the image, as make image builds it', string),
  empty: toggle('leave out plegwatch, for those who try its installation: the registry has the image'),
  once: toggle('print the reports and exit'),
} as const;

const INSTALL_PAGE = 'docs/how-to/install.md';
const REPORTED_WITHIN_MS = 300_000;

/** Runs until its shell ends or the signal is aborted or, with `once`, until it has printed. */
export async function runCluster(
  config: ConfigOf<typeof CLUSTER_SETTINGS>,
  signal: AbortSignal,
): Promise<void> {
  const started = performance.now();
  const report = (step: string, usualSeconds: number) => {
    signal.throwIfAborted();
    const seconds = ((performance.now() - started) / 1_000).toFixed(0).padStart(3);
    process.stdout.write(`${seconds} s  ${step} (usually ${usualSeconds} s)\n`);
  };
  // A closed terminal ends the shell; what is below still has to be removed.
  process.on('SIGHUP', () => {});
  let cluster: Cluster | undefined;
  try {
    cluster = await startCluster({ report });
    report('pushing the image', 3);
    await cluster.registry.push(config.image, `plegwatch:${VERSION}`);
    if (!config.empty) {
      const commands = documentedCommands(INSTALL_PAGE);
      report(`installing plegwatch, with the commands of ${INSTALL_PAGE}`, 8);
      process.stdout.write(`\n${indented(commands)}\n\n`);
      await install(cluster, commands);
      report('waiting until both nodes have a report with a mode', 10);
      process.stdout.write(`\n${await reports(cluster, signal)}`);
    }
    if (!config.once) await use(cluster, config.empty ? USE_EMPTY : USE, signal);
  } catch (error) {
    // An interrupted start is no failure.
    if (!signal.aborted) throw error;
  } finally {
    process.stdout.write('removing everything\n');
    await cluster?.stop();
  }
}

/** Throws with what the pods say: Helm only says that it waited. */
async function install(cluster: Cluster, commands: string): Promise<void> {
  try {
    await cluster.shell(commands);
  } catch (error) {
    const state = await cluster.shell('kubectl get pods -A -o wide; kubectl get events -A | tail -n 20');
    throw programFailed(`${messageOf(error)}\n${state}`, 'See the pods and events above.', error);
  }
}

const indented = (text: string): string => text.replaceAll(/^/gm, '       ').trimEnd();

async function reports(cluster: Cluster, signal: AbortSignal): Promise<string> {
  const modes = ['get', 'plegreports', '-o', 'jsonpath={range .items[*]}{.status.mode} {end}'];
  await waitFor('every node has a report with a mode', REPORTED_WITHIN_MS, async () => {
    if (signal.aborted) return true;
    const known = (await cluster.kubectl(...modes))
      .split(' ')
      .filter((mode) => mode !== '' && mode !== 'Unknown');
    return known.length === cluster.nodes.length;
  });
  return cluster.kubectl('get', 'plegreports');
}

const USE = `
kubectl and helm are in PATH and are the administrator's. Try:

  kubectl get plegreports
  kubectl describe plegreport worker-1
  kubectl -n plegwatch get pods -o wide
  helm list -A
`;

const USE_EMPTY = `
kubectl and helm are in PATH and are the administrator's. Nothing is installed. The commands of ${INSTALL_PAGE} work here from step 4 on, and
step 2: nodes pull ${REGISTRY}/plegwatch:${VERSION}, and Redis the users of the cluster prod-eu-1.
`;

/** A shell inside the cluster's network; without a terminal, it only says how to enter. */
async function use(cluster: Cluster, what: string, signal: AbortSignal): Promise<void> {
  const isTerminal = process.stdin.isTTY === true;
  const [command, args] = cluster.enter(process.env['SHELL'] ?? '/bin/bash', []);
  process.stdout.write(what);
  if (!isTerminal) {
    const env = `KUBECONFIG=${cluster.env['KUBECONFIG']} PATH=${cluster.env['PATH']}`;
    process.stdout.write(
      `\nEnter the cluster with this command; Ctrl-C here ends it.\n\n  ${env} ${[command, ...args].join(' ')}\n`,
    );
    await aborted(signal);
    return;
  }
  process.stdout.write('\nexit ends the shell and removes the cluster.\n');
  const shell = spawn(command, args, { stdio: 'inherit', cwd: CHECKOUT, env: cluster.env });
  await Promise.race([once(shell, 'exit'), aborted(signal)]);
  shell.kill('SIGHUP');
}
