/*
 * What every object and every answer of the Kubernetes API has in common, checked where it comes in.
 */
import * as v from 'valibot';

const OwnerReference = v.looseObject({
  apiVersion: v.string(),
  kind: v.string(),
  name: v.string(),
  uid: v.string(),
});

/** Fields we do not name are kept as they came. */
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

/** A kind of object, by its address. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Absent for what belongs to the whole cluster. */
  readonly namespace?: string;
}

export const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };
export const PLEG_REPORTS: Resource = { group: 'plegwatch.dev', version: 'v1alpha1', plural: 'plegreports' };

export const podsOf = (namespace: string): Resource => ({
  group: '',
  version: 'v1',
  plural: 'pods',
  namespace,
});

/** The resource's name as RBAC and error messages have it. */
export const resourceName = ({ group, plural }: Resource, subresource = ''): string =>
  `${plural}${subresource === '' ? '' : `/${subresource}`}${group === '' ? '' : `.${group}`}`;

/** The path of a collection, or of one object in it. */
export function pathOf(resource: Resource, name = '', subresource = ''): string {
  const root =
    resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const within = resource.namespace === undefined ? [] : ['namespaces', resource.namespace];
  const rest = [...within, resource.plural, name, subresource]
    .filter((part) => part !== '')
    .map(encodeURIComponent);
  return `${root}/${rest.join('/')}`;
}
