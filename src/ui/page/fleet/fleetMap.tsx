/*
 * The fleet as cells. Arrow keys go from node to node, Enter opens one; the line above says which one it is.
 */
import { useMemo, useRef, useState } from 'preact/hooks';
import { whyOfMode } from '../../../analysis/words.ts';
import type { AgentState, FleetNode } from '../../api.ts';
import { isHeldUp, isLossy, STATES, stateOf } from '../colours.ts';
import { useElementWidth } from '../parts/elementWidth.ts';
import { COLOURINGS, type Colouring, fragmentOf, type Grouping, type PoolPlace } from '../place.ts';
import { placeOfGroup } from '../pool/poolWords.ts';
import { count, counted, share, visible } from '../text.ts';
import {
  type CellLayout,
  type CellPlace,
  cellAt,
  cornerOf,
  cornersPath,
  type Direction,
  figuresPath,
  heightOf,
  layoutOf,
  neighbourOf,
  sizeOf,
  squaresPath,
} from './cellLayout.ts';
import { keyOf, type NodeGroup } from './nodeGroups.ts';

interface Props {
  readonly groups: readonly NodeGroup[];
  /** Cells of the whole fleet: cells keep their size while the reader narrows it. */
  readonly cells: number;
  readonly grouping: Grouping;
  readonly colouring: Colouring;
  readonly onOpen: (node: FleetNode) => void;
}

const KEYS: Readonly<Record<string, Direction>> = {
  ArrowLeft: 'left',
  ArrowRight: 'right',
  ArrowUp: 'up',
  ArrowDown: 'down',
  Home: 'first',
  End: 'last',
};

export function FleetMap({ groups, cells, grouping, colouring, onOpen }: Props) {
  const [ref, width] = useElementWidth<HTMLDivElement>();
  const [chosen, setChosen] = useState<string>();
  const layout = useMemo(() => layoutOf(width, cells), [width, cells]);
  const at = placeOfKey(groups, chosen);
  const node = at && groups[at.group]?.nodes[at.at];
  const choose = (to: CellPlace | undefined) => {
    const next = to && groups[to.group]?.nodes[to.at];
    setChosen(next && keyOf(next));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const direction = KEYS[event.key];
    if (direction !== undefined) {
      event.preventDefault();
      const sizes = groups.map(({ nodes }) => nodes.length);
      choose(at === undefined ? { group: 0, at: 0 } : neighbourOf(sizes, layout.columns, at, direction));
    } else if (event.key === 'Enter' && node !== undefined) onOpen(node);
    else if (event.key === 'Escape') choose(undefined);
  };
  return (
    <section class="map" aria-label="Map of the nodes">
      <p class="readout soft" role="status">
        {node === undefined
          ? 'Point at a cell, or go through them with the arrow keys; Enter opens the node.'
          : nodeInWords(node, colouring)}
      </p>
      <div
        ref={ref}
        class="map-cells"
        role="application"
        aria-label="Nodes: arrow keys go from node to node, Enter opens one. The table below has the same nodes."
        tabIndex={0}
        onKeyDown={onKeyDown}
        onFocus={() => at === undefined && choose({ group: 0, at: 0 })}
      >
        {width > 0 &&
          groups.map((group, n) => (
            <Group
              key={group.name}
              group={group}
              pool={placeOfGroup(group.nodes, grouping)}
              layout={layout}
              colouring={colouring}
              chosen={at?.group === n ? at.at : undefined}
              onChoose={(cell) => choose(cell === undefined ? undefined : { group: n, at: cell })}
              onOpen={(cell) => {
                const opened = group.nodes[cell];
                if (opened !== undefined) onOpen(opened);
              }}
            />
          ))}
      </div>
    </section>
  );
}

const AGENTS: Readonly<Record<AgentState, string>> = {
  Reporting: 'its agent reports',
  AgentSilent: 'its agent is silent',
  NeverSeen: 'it never had an agent',
  IngestBehind: 'evidence of it may be waiting to be stored',
  NotReportedYet: 'its agent has not reported yet',
};

/** A node in one sentence, for the line above the map and for screen readers. */
function nodeInWords(node: FleetNode, colouring: Colouring): string {
  const name = visible(node.node);
  if (node.agent === 'NeverSeen') return `${name}: ${AGENTS[node.agent]}`;
  const isReporting = node.agent === 'Reporting';
  const facts = {
    mode: isReporting ? modeInWords(node) : '',
    misses: missedInWords(node.missed24h),
    lists: listsInWords(node),
    completeness: completenessInWords(node.completeness24h),
    stream: isReporting ? `event stream ${visible(node.streamState)}` : AGENTS[node.agent],
  };
  const first = isReporting ? colouring : 'stream';
  const order = [first, ...COLOURINGS.filter((each) => each !== first)];
  return `${name}: ${order
    .map((each) => facts[each])
    .filter((fact) => fact !== '')
    .join(', ')}`;
}

function modeInWords({ mode, modeReason: reason, kubeletVersion }: FleetNode): string {
  const why = whyOfMode({ mode, reason, kubeletVersion });
  return `${visible(mode)}${why === '' ? '' : ` (${visible(why)})`}`;
}

function listsInWords(node: FleetNode): string {
  if (!isHeldUp(node)) return '';
  return node.heldUpBy === null ? 'lists fail' : `a list is held up by ${visible(node.heldUpBy)}`;
}

const missedInWords = (missed: number | null): string => {
  if (missed === null) return 'misses not observable';
  return missed === 0 ? 'no event missed in 24 hours' : `${count(missed)} missed in 24 hours`;
};

const completenessInWords = (part: number | null): string =>
  part === null ? 'nothing watched' : `${share(part)} watched`;

function placeOfKey(groups: readonly NodeGroup[], key: string | undefined): CellPlace | undefined {
  if (key === undefined) return undefined;
  for (const [group, { nodes }] of groups.entries()) {
    const at = nodes.findIndex((node) => keyOf(node) === key);
    if (at !== -1) return { group, at };
  }
  return undefined;
}

interface GroupProps {
  readonly group: NodeGroup;
  readonly pool: PoolPlace | undefined;
  readonly layout: CellLayout;
  readonly colouring: Colouring;
  readonly chosen: number | undefined;
  readonly onChoose: (cell: number | undefined) => void;
  readonly onOpen: (cell: number) => void;
}

function Group({ group, pool, layout, colouring, chosen, onChoose, onOpen }: GroupProps) {
  const { name, nodes } = group;
  const svg = useRef<SVGSVGElement>(null);
  const paths = useMemo(() => pathsOf(nodes, layout, colouring), [nodes, layout, colouring]);
  const lossy = useMemo(
    () => (colouring === 'misses' ? '' : cornersPath(layout, placesOf(nodes, isLossy))),
    [nodes, layout, colouring],
  );
  const cellUnder = (event: MouseEvent) => {
    const box = svg.current?.getBoundingClientRect();
    return box && cellAt(layout, nodes.length, event.clientX - box.left, event.clientY - box.top);
  };
  const open = (event: MouseEvent) => {
    const cell = cellUnder(event);
    if (cell !== undefined) onOpen(cell);
  };
  const width = layout.columns * layout.pitch;
  const stroke = Math.max(1.5, sizeOf(layout) / 11);
  const height = heightOf(layout, nodes.length);
  return (
    <div class="group">
      <h2>
        {pool === undefined ? visible(name) : <a href={fragmentOf(pool)}>{visible(name)}</a>}{' '}
        <span class="number">{counted(nodes.length, 'node')}</span>
      </h2>
      <svg
        ref={svg}
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        aria-hidden="true"
        onPointerMove={(event) => onChoose(cellUnder(event))}
        onClick={open}
      >
        {paths.map(({ key, tone, squares, figures }) => (
          <g key={key}>
            <path class={`cell tone-${tone}`} d={squares} />
            {figures !== '' && <path class="cell-figure" stroke-width={stroke} d={figures} />}
          </g>
        ))}
        {lossy !== '' && <path class="cell-lossy" d={lossy} />}
        {chosen !== undefined && <Chosen layout={layout} at={chosen} />}
      </svg>
    </div>
  );
}

function Chosen({ layout, at }: { readonly layout: CellLayout; readonly at: number }) {
  const { x, y } = cornerOf(layout, at);
  const size = sizeOf(layout) + 2;
  return <rect class="cell-chosen" x={x - 1} y={y - 1} width={size} height={size} rx="3" />;
}

const placesOf = (nodes: readonly FleetNode[], is: (node: FleetNode) => boolean): number[] =>
  nodes.flatMap((node, at) => (is(node) ? [at] : []));

/** A path for the squares, and one for the figures, of each state that occurs. */
function pathsOf(nodes: readonly FleetNode[], layout: CellLayout, colouring: Colouring) {
  const cells = new Map<string, number[]>();
  for (const [at, node] of nodes.entries()) {
    const { key } = stateOf(node, colouring);
    const list = cells.get(key);
    if (list === undefined) cells.set(key, [at]);
    else list.push(at);
  }
  return STATES[colouring].flatMap(({ key, tone, figure }) => {
    const list = cells.get(key);
    if (list === undefined) return [];
    return [{ key, tone, squares: squaresPath(layout, list), figures: figuresPath(layout, list, figure) }];
  });
}
