/*
 * The nodes of a fleet in groups, and in the order in which the arrow keys go through them.
 */
import type { FleetNode } from '../../api.ts';
import { stateOf } from '../colours.ts';
import { type ColouredPlace, chosenStates, type Grouping } from '../place.ts';

export interface NodeGroup {
  readonly name: string;
  readonly nodes: readonly FleetNode[];
}

export const keyOf = ({ cluster, node }: FleetNode): string => JSON.stringify([cluster, node]);

/** Groups by name, nodes as they came. Without a pool or version, a node is in a group of its own kind, which is the last. */
export function groupsOf(nodes: readonly FleetNode[], grouping: Grouping): NodeGroup[] {
  const groups = new Map<string, FleetNode[]>();
  const unnamed: FleetNode[] = [];
  const many = new Set(nodes.map(({ cluster }) => cluster)).size > 1;
  for (const node of nodes) {
    const name = nameOf(node, grouping, many);
    if (name === null) unnamed.push(node);
    else {
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [node]);
      else group.push(node);
    }
  }
  const named = [...groups].map(([name, members]) => ({ name, nodes: members }));
  named.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  if (unnamed.length === 0) return named;
  return [...named, { name: grouping === 'pool' ? 'no pool' : 'unknown version', nodes: unnamed }];
}

function nameOf(node: FleetNode, grouping: Grouping, many: boolean): string | null {
  if (grouping === 'cluster') return node.cluster;
  if (grouping === 'pool')
    return node.pool === null ? null : many ? `${node.cluster} / ${node.pool}` : node.pool;
  const { runtimeName, runtimeVersion, kubeletVersion } = node;
  if (runtimeName === null && kubeletVersion === null) return null;
  return `${[runtimeName, runtimeVersion].filter(Boolean).join(' ') || 'unknown runtime'}, kubelet ${kubeletVersion ?? 'unknown'}`;
}

/** Those that the reader asked for: by state, and by a part of the name. */
export function chosenNodes(nodes: readonly FleetNode[], place: ColouredPlace): FleetNode[] {
  const search = place.search.trim().toLowerCase();
  const states = chosenStates(place);
  return nodes.filter((node) => {
    if (states.length > 0 && !states.includes(stateOf(node, place.colour).key)) return false;
    return search === '' || `${node.cluster}/${node.node}`.toLowerCase().includes(search);
  });
}
