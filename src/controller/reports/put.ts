/*
 * One write of a report: the object first, owned by its Node, then its status with the resourceVersion that was read.
 */
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, PLEG_REPORTS } from '../kube/object.ts';
import type { KubeNode } from '../kube/projection.ts';
import type { ReportStatus } from './status.ts';

export const REPORT_API = { apiVersion: 'plegwatch.dev/v1alpha1', kind: 'PLEGReport' } as const;

/** Throws KubeStatusError 409 when the object was changed or made anew in between. */
export async function putReport(
  kube: KubeClient,
  name: string,
  node: KubeNode,
  status: ReportStatus,
  signal: AbortSignal,
): Promise<KubeObject['metadata']> {
  // Neither a controller nor blocking: the Node may go at any time, and takes the report along.
  const owner = { apiVersion: 'v1', kind: 'Node', name, uid: node.uid };
  const object = await kube.apply(
    PLEG_REPORTS,
    { ...REPORT_API, metadata: { name, ownerReferences: [owner] } },
    signal,
  );
  const { resourceVersion } = object.metadata;
  await kube.applyStatus(
    PLEG_REPORTS,
    { ...REPORT_API, metadata: { name, resourceVersion }, status },
    signal,
  );
  return object.metadata;
}
