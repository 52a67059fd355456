/*
 * Each pool as a bar of its nodes, with why they are not safe below it.
 */
import { Drawing } from '../drawing/drawing.tsx';
import { VerdictBar, verdictsInWords } from '../drawing/verdictBar.tsx';
import { type Go, placeOfPool } from '../place.ts';
import { cutTo, linesOf, visible } from '../text.ts';
import { clustersInWords, type FoldedPool } from './folded.ts';

interface Props {
  readonly pools: readonly FoldedPool[];
  readonly width: number;
  readonly go: Go;
}

const [BAR, LINE, APART, LETTER] = [22, 16, 14, 12.5];
const MAX_LINES = 3;

export function ReadinessPlot({ pools, width, go }: Props) {
  const most = pools.reduce((top, pool) => Math.max(top, nodesOf(pool)), 1);
  const isWide = width >= 640;
  const left = isWide ? Math.min(400, width / 2) : 0;
  const name = isWide ? 0 : BAR;
  const room = isWide ? left - 20 : width;
  let height = 0;
  const rows = pools.map((pool) => {
    const below = visible([verdictsInWords(pool), ...pool.reasons].join('; '));
    const lines = linesOf(below, (width - left) / 6.8, MAX_LINES);
    const top = height;
    height += name + BAR + lines.length * LINE + APART;
    return { pool, below, lines, top };
  });
  return (
    <Drawing width={width} height={height} label={pools.map(inWords).join('. ')}>
      {rows.map(({ pool, below, lines, top }) => (
        <g key={`${pool.clusters.join()} ${pool.pool} ${below}`}>
          <g class="opens" onPointerUp={() => go(placeOf(pool))}>
            <text class="plot-name" x="0" y={top + 16}>
              {cutTo(nameOf(pool), room / 8.4)}
              <title>{`${nameOf(pool)}: ${pool.clusters.map(visible).join(', ')}`}</title>
            </text>
          </g>
          <g transform={`translate(${left} ${top + name})`}>
            <VerdictBar
              verdicts={pool}
              width={(nodesOf(pool) / most) * (width - left)}
              height={BAR}
              letter={LETTER}
            />
          </g>
          {lines.map((line, n) => (
            <text key={line} class="plot-detail" x={left} y={top + name + BAR + 14 + n * LINE}>
              {line}
              <title>{below}</title>
            </text>
          ))}
        </g>
      ))}
    </Drawing>
  );
}

/** With several clusters, the pools of that name in all of them. */
const placeOf = ({ clusters, pool }: FoldedPool) =>
  placeOfPool({ by: 'pool', cluster: clusters.length === 1 ? (clusters[0] ?? null) : null, pool });

const nodesOf = ({ safe, unsafe, unknown }: FoldedPool): number => safe + unsafe + unknown;

const nameOf = (pool: FoldedPool): string =>
  `${pool.pool === null ? 'nodes without a pool' : visible(pool.pool)}, ${clustersInWords(pool)}`;

const inWords = (pool: FoldedPool): string =>
  `${nameOf(pool)}: ${verdictsInWords(pool)}. ${visible(pool.reasons.join('; '))}`;
