/*
 * The objects and addresses of the Kubernetes API, and the schemas of its responses.
 */
import * as v from 'valibot';
import { type KubeOperation, KubeStatusError } from './kubeErrors.ts';

const OwnerReference = v.looseObject({
  apiVersion: v.string(),
  kind: v.string(),
  name: v.string(),
  uid: v.string(),
});

/** Other fields are kept unchanged. */
export const KubeObjectSchema = v.looseObject({
  metadata: v.looseObject({
    name: v.optional(v.string(), ''),
    uid: v.optional(v.string(), ''),
    resourceVersion: v.optional(v.string(), ''),
    creationTimestamp: v.optional(v.nullable(v.string()), null),
    ownerReferences: v.optional(v.array(OwnerReference), []),
  }),
});
export type KubeObject = v.InferOutput<typeof KubeObjectSchema>;

export const KubeListSchema = v.looseObject({
  metadata: v.looseObject({
    resourceVersion: v.optional(v.string(), ''),
    continue: v.optional(v.string(), ''),
  }),
  items: v.nullable(v.array(KubeObjectSchema)),
});

export const WatchEventSchema = v.strictObject({
  type: v.picklist(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']),
  object: v.unknown(),
});

/** Throws KubeStatusError Unreadable if the input does not match the schema. */
export function decode<S extends v.GenericSchema>(
  schema: S,
  { verb, resource }: KubeOperation,
  input: unknown,
): v.InferOutput<S> {
  const result = v.safeParse(schema, input);
  if (result.success) return result.output;
  throw new KubeStatusError(200, 'Unreadable', `${verb} ${resource}: ${result.issues[0].message}`);
}

export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
}

export const NAMESPACES: Resource = { group: '', version: 'v1', plural: 'namespaces' };
/** The Namespace whose UID is that of the cluster: every cluster has it, for as long as it exists. */
export const IDENTITY = 'kube-system';
export const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };
export const PLEG_REPORTS: Resource = { group: 'plegwatch.dev', version: 'v1alpha1', plural: 'plegreports' };

/** Events; those of cluster-scoped objects are in this namespace. */
export const EVENTS: Resource = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  namespace: 'default',
};

export const eventsOf = (namespace: string): Resource => ({ ...EVENTS, namespace });

export const podsOf = (namespace: string): Resource => ({
  group: '',
  version: 'v1',
  plural: 'pods',
  namespace,
});

export const secretsOf = (namespace: string): Resource => ({
  group: '',
  version: 'v1',
  plural: 'secrets',
  namespace,
});

export const configMapsOf = (namespace: string): Resource => ({
  group: '',
  version: 'v1',
  plural: 'configmaps',
  namespace,
});

export const leasesOf = (namespace: string): Resource => ({
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  namespace,
});

export const TOKEN_REVIEWS: Resource = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'tokenreviews',
};

/** Whether somebody may do something. */
export const ACCESS_REVIEWS: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'subjectaccessreviews',
};

/** The resource's name in RBAC rules and error messages. */
export const resourceName = ({ group, plural }: Resource, subresource = ''): string =>
  `${plural}${subresource === '' ? '' : `/${subresource}`}${group === '' ? '' : `.${group}`}`;

/** The path of a collection, or of one object of it. */
export function pathOf(resource: Resource, name = '', subresource = ''): string {
  const root =
    resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const namespace = resource.namespace === undefined ? [] : ['namespaces', resource.namespace];
  const segments = [...namespace, resource.plural, name, subresource]
    .filter((segment) => segment !== '')
    .map(encodeURIComponent);
  return `${root}/${segments.join('/')}`;
}
