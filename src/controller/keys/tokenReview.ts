/*
 * The API server's review of an agent's token: that it is valid, for our audience, of the agents' service account, and bound to a pod that exists and
 * runs on the node.
 *
 * Tokens name their node from Kubernetes 1.30 on (the claim `node`); before that the pod is read.
 */
import * as v from 'valibot';
import type { KubeClient } from '../../kube/client.ts';
import { podsOf, TOKEN_REVIEWS } from '../../kube/object.ts';
import { type KubeRight, rightsOn } from '../../kube/rights.ts';
import { invalid, type Parsed } from '../../protocol/validation.ts';

/** `namespace`: of the agents, whose pods are read. */
export const reviewRights = (namespace: string): readonly KubeRight[] => [
  ...rightsOn(TOKEN_REVIEWS, ['create']),
  ...rightsOn(podsOf(namespace), ['get']),
];

/** A service account, as `namespace/name`. */
export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
}

export interface TokenSubject {
  readonly node: string;
  readonly podUid: string;
  /** Empty if the token does not say. */
  readonly nodeUid: string;
  /** In seconds since 1970. */
  readonly expiresAt: number;
}

const ClaimsSchema = v.object({ exp: v.pipe(v.number(), v.minValue(0), v.maxValue(4e9)) });
const PodSchema = v.object({
  metadata: v.object({ uid: v.string() }),
  spec: v.object({ nodeName: v.optional(v.string(), '') }),
});

const EXTRA = 'authentication.kubernetes.io/';

/** Throws if the API server cannot be asked. */
export async function reviewToken(
  kube: Pick<KubeClient, 'reviewToken' | 'get'>,
  token: string,
  { audience, account }: { readonly audience: string; readonly account: ServiceAccount },
): Promise<Parsed<TokenSubject>> {
  const { authenticated, audiences, error, username, extra } = await kube.reviewToken(token, [audience]);
  if (!authenticated) return invalid(`the API server does not accept the token: ${error}`);
  // A server without audiences in its answer has not checked them.
  if (!audiences.includes(audience)) return invalid('the token is for another audience');
  if (username !== `system:serviceaccount:${account.namespace}:${account.name}`)
    return invalid(`the token is of ${username}`);
  const first = (name: string) => extra[`${EXTRA}${name}`]?.[0] ?? '';
  const pod = first('pod-name');
  const podUid = first('pod-uid');
  if (pod === '' || podUid === '') return invalid('the token is not bound to a pod');
  const expiresAt = expiryOf(token);
  if (expiresAt === null) return invalid('the token does not say when it expires');
  const node = first('node-name') || (await nodeOfPod(kube, account.namespace, pod, podUid));
  if (node === '') return invalid(`pod ${pod} with uid ${podUid} is not on a node`);
  return { ok: true, value: { node, podUid, nodeUid: first('node-uid'), expiresAt } };
}

async function nodeOfPod(
  kube: Pick<KubeClient, 'get'>,
  namespace: string,
  name: string,
  uid: string,
): Promise<string> {
  const pod = v.safeParse(PodSchema, await kube.get(podsOf(namespace), name));
  return pod.success && pod.output.metadata.uid === uid ? pod.output.spec.nodeName : '';
}

/** When a token that is known to be genuine expires. */
function expiryOf(token: string): number | null {
  try {
    const claims = v.parse(
      ClaimsSchema,
      JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()),
    );
    return Math.floor(claims.exp);
  } catch {
    return null;
  }
}
