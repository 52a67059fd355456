/*
 * The same nodes as a table, the worst first: for keyboards, screen readers, and whoever wants the figures.
 */
import { useMemo, useState } from 'preact/hooks';
import { whyOfMode } from '../../../analysis/words.ts';
import type { FleetNode } from '../../api.ts';
import { isLossy, STATES, stateOf } from '../colours.ts';
import { Name } from '../parts/name.tsx';
import { type Colouring, fragmentOf } from '../place.ts';
import { ago, count, counted, moment, msOf, share, visible } from '../text.ts';
import { Swatch } from './legend.tsx';
import { keyOf } from './nodeGroups.ts';
import { placeOfNode } from './nodeLink.ts';

interface Props {
  readonly nodes: readonly FleetNode[];
  readonly colouring: Colouring;
  readonly now: string;
}

const PAGE = 50;

export function FleetTable({ nodes, colouring, now }: Props) {
  const [shown, setShown] = useState(PAGE);
  const sorted = useMemo(() => worstFirst(nodes, colouring), [nodes, colouring]);
  const rest = sorted.length - shown;
  return (
    <section class="table" aria-label="Table of the nodes">
      <h2>
        Nodes, the worst first <span class="number">{count(sorted.length)}</span>
      </h2>
      <section class="scroll" aria-label="Nodes" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Mode</th>
              <th scope="col">Stream</th>
              <th scope="col" class="number">
                Missed 24 h
              </th>
              <th scope="col" class="number">
                Watched 24 h
              </th>
              <th scope="col">Runtime</th>
              <th scope="col">Kubelet</th>
              <th scope="col">Pool</th>
              <th scope="col">Cluster</th>
              <th scope="col">Last seen</th>
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, shown).map((node) => (
              <Row key={keyOf(node)} node={node} colouring={colouring} now={now} />
            ))}
          </tbody>
        </table>
      </section>
      {rest > 0 && (
        <button type="button" onClick={() => setShown(shown + 200)}>
          Show {counted(Math.min(200, rest), 'more node')} of {count(rest)}
        </button>
      )}
    </section>
  );
}

function Row({ node, colouring, now }: Omit<Props, 'nodes'> & { readonly node: FleetNode }) {
  const {
    agent,
    mode,
    modeReason: reason,
    kubeletVersion,
    streamState,
    missed24h,
    completeness24h,
    lastSeen,
  } = node;
  const isSilent = agent !== 'Reporting';
  const runtime = [node.runtimeName, node.runtimeVersion].filter(Boolean).join(' ');
  return (
    <tr>
      <th scope="row">
        <a href={fragmentOf(placeOfNode(node, now, colouring))}>
          <Swatch state={stateOf(node, colouring)} />
          <Name text={node.node} />
        </a>
      </th>
      <td title={visible(whyOfMode({ mode, reason, kubeletVersion }))}>{isSilent ? agent : visible(mode)}</td>
      <td title={visible(node.streamReason ?? '')}>{visible(streamState)}</td>
      <td class="number">{missed24h === null ? <span class="soft">not observed</span> : count(missed24h)}</td>
      <td class="number" title={visible(node.incompleteReason ?? '')}>
        {completeness24h === null ? <span class="soft">none</span> : share(completeness24h)}
      </td>
      <td>{runtime === '' ? <span class="soft">unknown</span> : <Name text={runtime} />}</td>
      <td>{kubeletVersion === null ? <span class="soft">unknown</span> : <Name text={kubeletVersion} />}</td>
      <td>
        <Name text={node.pool ?? ''} />
      </td>
      <td>
        <Name text={node.cluster} />
      </td>
      <td title={lastSeen === null ? '' : `${moment(msOf(lastSeen))} UTC`}>
        {lastSeen === null ? <span class="soft">never</span> : ago(msOf(now) - msOf(lastSeen))}
      </td>
    </tr>
  );
}

function worstFirst(nodes: readonly FleetNode[], colouring: Colouring): FleetNode[] {
  const ranks = new Map(STATES[colouring].map(({ key }, rank) => [key, rank]));
  const rankOf = (node: FleetNode) => ranks.get(stateOf(node, colouring).key) ?? 0;
  const figure = (node: FleetNode) =>
    colouring === 'completeness' ? (node.completeness24h ?? 1) : -(node.missed24h ?? 0);
  // A mode says nothing of misses: they count as much as the modes in which something is wrong.
  const isWrong = (node: FleetNode) =>
    (colouring === 'mode' && isLossy(node)) || ['bad', 'poor'].includes(stateOf(node, colouring).tone);
  return [...nodes].sort(
    (a, b) => Number(isWrong(b)) - Number(isWrong(a)) || rankOf(a) - rankOf(b) || figure(a) - figure(b),
  );
}
