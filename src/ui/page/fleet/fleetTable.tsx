/*
 * The same nodes as a table, the worst first: for keyboards, screen readers, and whoever wants the figures.
 */
import { useMemo } from 'preact/hooks';
import { whyOfMode } from '../../../analysis/words.ts';
import type { FleetNode } from '../../api.ts';
import { isHeldUp, isLossy, listsAreKnown, STATES, stateOf } from '../colours.ts';
import { type Column, DataTable } from '../parts/dataTable.tsx';
import { Name } from '../parts/name.tsx';
import { type Colouring, fragmentOf } from '../place.ts';
import { ago, count, moment, msOf, share, visible } from '../text.ts';
import { Swatch } from './legend.tsx';
import { placeOfNode } from './nodeLink.ts';

interface Props {
  readonly nodes: readonly FleetNode[];
  readonly colouring: Colouring;
  readonly now: string;
}

export function FleetTable({ nodes, colouring, now }: Props) {
  const sorted = useMemo(() => worstFirst(nodes, colouring), [nodes, colouring]);
  const columns = useMemo(() => columnsOf(colouring, now), [colouring, now]);
  return <DataTable title="Nodes, the worst first" file="fleet" columns={columns} rows={sorted} />;
}

const soft = (text: string) => <span class="soft">{text}</span>;
const nameOr = (text: string | null, none: string) => (text ? <Name text={text} /> : soft(none));
const modeOf = ({ agent, mode }: FleetNode): string => (agent === 'Reporting' ? mode : agent);
const runtimeOf = ({ runtimeName, runtimeVersion }: FleetNode): string | null =>
  [runtimeName, runtimeVersion].filter(Boolean).join(' ') || null;

const heldUpBy = (node: FleetNode): string | null => {
  if (isHeldUp(node)) return node.heldUpBy ?? 'lists fail';
  return listsAreKnown(node) ? 'nothing' : null;
};

const columnsOf = (colouring: Colouring, now: string): Column<FleetNode>[] => [
  {
    ...{ name: 'Node', field: 'node', value: ({ node }) => node },
    cell: (node) => (
      <a href={fragmentOf(placeOfNode(node, now, colouring))}>
        <Swatch state={stateOf(node, colouring)} />
        <Name text={node.node} />
      </a>
    ),
  },
  {
    ...{ name: 'Mode', field: 'mode', value: modeOf, cell: (node) => visible(modeOf(node)) },
    about: ({ mode, modeReason: reason, kubeletVersion }) =>
      visible(whyOfMode({ mode, reason, kubeletVersion })),
  },
  {
    ...{ name: 'Stream', field: 'stream_state', value: ({ streamState }) => streamState },
    cell: ({ streamState }) => visible(streamState),
    about: ({ streamReason }) => visible(streamReason ?? ''),
  },
  {
    ...{ name: 'Held up by', field: 'held_up_by', value: heldUpBy },
    cell: (node) => (isHeldUp(node) ? nameOr(heldUpBy(node), '') : soft(heldUpBy(node) ?? 'not observed')),
    about: (node) => stateOf(node, 'lists').meaning,
  },
  {
    ...{ name: 'Missed 24 h', field: 'missed_24h', value: ({ missed24h }) => missed24h, isNumber: true },
    cell: ({ missed24h }) => (missed24h === null ? soft('not observed') : count(missed24h)),
  },
  {
    ...{ name: 'Watched 24 h', field: 'watched_24h', value: ({ completeness24h }) => completeness24h },
    cell: ({ completeness24h }) => (completeness24h === null ? soft('none') : share(completeness24h)),
    about: ({ incompleteReason }) => visible(incompleteReason ?? ''),
    isNumber: true,
  },
  {
    ...{ name: 'Runtime', field: 'runtime', value: runtimeOf },
    cell: (node) => nameOr(runtimeOf(node), 'unknown'),
  },
  {
    ...{ name: 'Kubelet', field: 'kubelet_version', value: ({ kubeletVersion }) => kubeletVersion },
    cell: ({ kubeletVersion }) => nameOr(kubeletVersion, 'unknown'),
  },
  { name: 'Pool', field: 'pool', value: ({ pool }) => pool, cell: ({ pool }) => nameOr(pool, '') },
  {
    ...{ name: 'Cluster', field: 'cluster', value: ({ cluster }) => cluster },
    cell: ({ cluster }) => <Name text={cluster} />,
  },
  {
    ...{ name: 'Last seen', field: 'last_seen', value: ({ lastSeen }) => lastSeen },
    cell: ({ lastSeen }) => (lastSeen === null ? soft('never') : ago(msOf(now) - msOf(lastSeen))),
    about: ({ lastSeen }) => (lastSeen === null ? '' : `${moment(msOf(lastSeen))} UTC`),
  },
];

function worstFirst(nodes: readonly FleetNode[], colouring: Colouring): FleetNode[] {
  const ranks = new Map(STATES[colouring].map(({ key }, rank) => [key, rank]));
  const rankOf = (node: FleetNode) => ranks.get(stateOf(node, colouring).key) ?? 0;
  const figure = (node: FleetNode) =>
    colouring === 'completeness' ? (node.completeness24h ?? 1) : -(node.missed24h ?? 0);
  // A mode says nothing of misses or lists: they count as much as the modes in which something is wrong.
  const isWrong = (node: FleetNode) =>
    (colouring === 'mode' && (isLossy(node) || isHeldUp(node))) ||
    ['bad', 'poor'].includes(stateOf(node, colouring).tone);
  return [...nodes].sort(
    (a, b) => Number(isWrong(b)) - Number(isWrong(a)) || rankOf(a) - rankOf(b) || figure(a) - figure(b),
  );
}
