/*
 * The API server: whether it answers us, has the resource of the reports, and lets the controller do its work, and whether a controller does it.
 */
import type { KeyPlaces } from '../controller/keys/controllerKeys.ts';
import { controllerRights } from '../controller/rights.ts';
import { createKubeClient, type KubeClient } from '../kube/client.ts';
import { KubeStatusError } from '../kube/kubeErrors.ts';
import { NODES, PLEG_REPORTS, type Resource, resourceName } from '../kube/object.ts';
import type { KubeRight } from '../kube/rights.ts';
import { attempt, type CheckResult, failed, ok, warning } from './check.ts';
import { checkReports } from './reportChecks.ts';
import { type DoctorConfig, hasDatabase } from './settings.ts';

export const checkKube = (config: DoctorConfig): Promise<readonly CheckResult[]> =>
  attempt('api server', () => checksOf(config));

/** As a controller would: with --kubeconfig, or in a pod that has a database. */
const isWanted = (config: DoctorConfig): boolean =>
  config.kubeconfig !== undefined ||
  (hasDatabase(config) && config.noKube !== true && 'KUBERNETES_SERVICE_HOST' in process.env);

async function* checksOf(config: DoctorConfig): AsyncGenerator<CheckResult> {
  if (!isWanted(config)) return;
  const kube = await createKubeClient({ kubeconfig: config.kubeconfig });
  try {
    const missing = await missingRights(
      kube,
      controllerRights({
        measuresStatusLag: config.statusLag !== 'off',
        publishesConditions: config.nodeConditions === 'on',
        keys: keyPlacesOf(config),
        lease: config.lease,
      }),
    );
    yield ok('api server', 'the API server answers and knows us');
    yield rightsResult(missing);
    if (config.lease === undefined) yield NO_LEASE;
    const mayList = (of: Resource) =>
      !missing.some(({ verb, resource }) => verb === 'list' && resource === of);
    if (!mayList(PLEG_REPORTS)) return;
    const crd = await checkResource(kube);
    yield crd;
    if (crd.status === 'ok' && mayList(NODES)) yield await checkReports(kube, Date.now());
  } finally {
    kube.close();
  }
}

const NO_LEASE = warning(
  'lease',
  'no Lease says which controller leads: a controller that loses its store leaves reports as they are',
  'Set --lease (PLEGWATCH_LEASE), also for a single controller: it then says in reports that the present is unknown.',
);

function keyPlacesOf({ keySecret, agentServiceAccount }: DoctorConfig): KeyPlaces | undefined {
  if (keySecret === undefined || agentServiceAccount === undefined) return undefined;
  return {
    name: keySecret.name,
    secretNamespace: keySecret.namespace,
    configMapNamespace: agentServiceAccount.namespace,
  };
}

async function missingRights(kube: KubeClient, rights: readonly KubeRight[]): Promise<readonly KubeRight[]> {
  const missing: KubeRight[] = [];
  for (const right of rights) {
    if (!(await kube.may(right))) missing.push(right);
  }
  return missing;
}

function rightsResult(missing: readonly KubeRight[]): CheckResult {
  if (missing.length === 0) return ok('api rights', 'the service account may do what the controller does');
  const shown = missing.map(
    ({ verb, resource, subresource, name }) =>
      `${verb} ${resourceName(resource, subresource)}${name === undefined ? '' : ` ${name}`}`,
  );
  return failed(
    'api rights',
    `the service account may not: ${shown.join(', ')}`,
    "Grant it, as the chart's ClusterRole of the controller does.",
  );
}

async function checkResource(kube: KubeClient): Promise<CheckResult> {
  const name = resourceName(PLEG_REPORTS);
  try {
    await kube.list(PLEG_REPORTS, { limit: 1 });
    return ok('crd', `the cluster has the resource ${name}`);
  } catch (error) {
    if (!(error instanceof KubeStatusError) || error.code !== 404) throw error;
    return failed(
      'crd',
      `the cluster does not have the resource ${name}`,
      'Run the helm upgrade of this release again, which makes it unless crds.enabled is false. Where helm did not install it: kubectl apply --server-side -f crds/plegreports.plegwatch.dev.yaml.',
    );
  }
}
