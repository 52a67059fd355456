/*
 * A right at the API server. Each module declares those of its requests; src/controller/rights.ts has all that a controller needs.
 */
import type { Resource } from './object.ts';

export interface KubeRight {
  readonly verb: string;
  /** Resource of every namespace if its namespace is empty. */
  readonly resource: Resource;
  readonly subresource?: string;
  /** Name of the only object that it is about. */
  readonly name?: string;
}

export const rightsOn = (
  resource: Resource,
  verbs: readonly string[],
  of: Pick<KubeRight, 'subresource' | 'name'> = {},
): readonly KubeRight[] => verbs.map((verb) => ({ verb, resource, ...of }));
