/*
 * The API server: whether it answers us, has the resource of the reports, and lets the controller do its work.
 */
import type { KeyPlaces } from '../controller/keys/controllerKeys.ts';
import { controllerRights } from '../controller/rights.ts';
import { createKubeClient, type KubeClient } from '../kube/client.ts';
import { KubeStatusError } from '../kube/kubeErrors.ts';
import { PLEG_REPORTS, resourceName } from '../kube/object.ts';
import type { KubeRight } from '../kube/rights.ts';
import { attempt, type CheckResult, failed, ok } from './check.ts';
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
    const mayList = !missing.some(({ verb, resource }) => verb === 'list' && resource === PLEG_REPORTS);
    if (mayList) yield await checkResource(kube);
  } finally {
    kube.close();
  }
}

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
      'Install it: helm upgrade with crds.enabled=true, or kubectl apply -f crds/plegreports.plegwatch.dev.yaml.',
    );
  }
}
