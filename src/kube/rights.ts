/*
 * What the controller needs to be allowed by the API server. The chart's ClusterRole grants the same; a test compares them.
 */
import {
  configMapsOf,
  EVENTS,
  IDENTITY,
  leasesOf,
  NAMESPACES,
  NODES,
  PLEG_REPORTS,
  podsOf,
  type Resource,
  secretsOf,
  TOKEN_REVIEWS,
} from './object.ts';

export interface KubeRight {
  readonly verb: string;
  readonly resource: Resource;
  readonly subresource?: string;
  /** Of the only object that it is about. */
  readonly name?: string;
}

/** Pods of all namespaces. */
const PODS = podsOf('');

/** Where the controller's keys are: a Secret and, under the same name, a ConfigMap. */
export interface KeyPlaces {
  readonly name: string;
  readonly secretNamespace: string;
  readonly configMapNamespace: string;
}

export interface RightsOptions {
  readonly measuresStatusLag: boolean;
  /** Absent if agents cannot enrol. */
  readonly keys?: KeyPlaces | undefined;
  /** Absent if this controller always leads. */
  readonly lease?: { readonly namespace: string; readonly name: string } | undefined;
}

export function controllerRights({ measuresStatusLag, keys, lease }: RightsOptions): KubeRight[] {
  const on = (resource: Resource, verbs: readonly string[], subresource?: string): KubeRight[] =>
    verbs.map((verb) => ({ verb, resource, ...(subresource === undefined ? {} : { subresource }) }));
  return [
    ...on(NODES, ['get', 'list', 'watch']),
    { verb: 'get', resource: NAMESPACES, name: IDENTITY },
    ...on(PLEG_REPORTS, ['list', 'create', 'patch', 'delete']),
    ...on(PLEG_REPORTS, ['patch'], 'status'),
    ...on(EVENTS, ['create', 'patch']),
    ...(measuresStatusLag ? on(PODS, ['get']) : []),
    ...(lease === undefined
      ? []
      : on(leasesOf(lease.namespace), ['get', 'create', 'patch']).map((right) => ({
          ...right,
          name: lease.name,
        }))),
    ...(keys === undefined ? [] : enrolmentRights(keys)),
  ];
}

function enrolmentRights({ name, secretNamespace, configMapNamespace }: KeyPlaces): KubeRight[] {
  return [
    { verb: 'create', resource: TOKEN_REVIEWS },
    ...['get', 'patch'].flatMap((verb) => [
      { verb, resource: secretsOf(secretNamespace), name },
      { verb, resource: configMapsOf(configMapNamespace), name },
    ]),
    // Of the agents, whose tokens do not name their node before Kubernetes 1.30.
    { verb: 'get', resource: podsOf(configMapNamespace) },
  ];
}
