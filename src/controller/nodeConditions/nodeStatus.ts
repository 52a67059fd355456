/*
 * The conditions of a Node's status that are ours, by server-side apply: the field manager owns the entries that it applied, and what it no longer
 * applies is removed. Entries of others are never touched: what another manager set to another value is a conflict.
 */
import type { FieldManager, KubeClient } from '../../kube/client.ts';
import { isOfObject } from '../../kube/kubeErrors.ts';
import { type KubeObject, NODES } from '../../kube/object.ts';
import type { PublishedCondition } from '../../kube/projection.ts';
import { rightsOn } from '../../kube/rights.ts';

/** Besides those of the watch of Nodes. */
export const PUBLISHING_RIGHTS = rightsOn(NODES, ['patch'], { subresource: 'status' });

export const CONDITIONS_MANAGER: FieldManager = { name: 'plegwatch-node-conditions', takesOver: false };

type StatusClient = Pick<KubeClient, 'applyStatus'>;

/** Which machine a Node is: another one of its name has another UID, and the API server refuses to write to it. */
export interface NodeIdentity {
  readonly name: string;
  readonly uid: string;
}

/** Lets the Node have exactly these conditions of ours. Returns the Node. Throws KubeStatusError 409 if one is another manager's. */
export const applyConditions = (
  kube: StatusClient,
  { name, uid }: NodeIdentity,
  conditions: readonly PublishedCondition[],
  signal: AbortSignal,
): Promise<KubeObject> =>
  kube.applyStatus(
    NODES,
    { apiVersion: 'v1', kind: 'Node', metadata: { name, uid }, status: { conditions } },
    signal,
    CONDITIONS_MANAGER,
  );

/** Removes what is ours. False if the Node is gone or another machine. */
export async function withdrawConditions(
  kube: StatusClient,
  { name, uid }: NodeIdentity,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name, uid } };
    await kube.applyStatus(NODES, node, signal, CONDITIONS_MANAGER);
    return true;
  } catch (error) {
    if (isOfObject(error)) return false;
    throw error;
  }
}
