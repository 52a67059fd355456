/*
 * Writes a report: first the object, owned by its Node, then the status at the resourceVersion of the object.
 */
import type { KubeClient } from '../../kube/client.ts';
import { type KubeObject, PLEG_REPORTS } from '../../kube/object.ts';
import type { KubeNode } from '../../kube/projection.ts';
import { rightsOn } from '../../kube/rights.ts';
import type { ReportStatus } from './status.ts';
import { withoutEmpty } from './text.ts';

/** An apply is a patch, and a create if there is no such object. */
export const PUT_RIGHTS = [
  ...rightsOn(PLEG_REPORTS, ['create', 'patch']),
  ...rightsOn(PLEG_REPORTS, ['patch'], { subresource: 'status' }),
];

export const REPORT_API = { apiVersion: 'plegwatch.dev/v1alpha1', kind: 'PLEGReport' } as const;

/** Throws KubeStatusError 409 if the object changes or is replaced in between. */
export async function putReport(
  kube: KubeClient,
  name: string,
  node: KubeNode,
  status: ReportStatus,
  signal: AbortSignal,
): Promise<KubeObject['metadata']> {
  // Without controller and blockOwnerDeletion: the Node can be deleted at any time, and the report with it.
  const owner = { apiVersion: 'v1', kind: 'Node', name, uid: node.uid };
  const object = await kube.apply(
    PLEG_REPORTS,
    { ...REPORT_API, metadata: { name, ownerReferences: [owner], labels: node.labels } },
    signal,
  );
  const { resourceVersion } = object.metadata;
  // The API server makes null of an object that loses its last field, and rejects the report for it.
  await kube.applyStatus(
    PLEG_REPORTS,
    { ...REPORT_API, metadata: { name, resourceVersion }, status: withoutEmpty(status) },
    signal,
  );
  return object.metadata;
}
