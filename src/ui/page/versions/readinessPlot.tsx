/*
 * Each pool as a bar of its nodes: safe, not safe, unknown. Each part has its word and number in it or below it.
 */
import { Drawing } from '../drawing/drawing.tsx';
import { count, cutTo, visible } from '../text.ts';
import { clustersInWords, type FoldedPool } from './folded.ts';

interface Props {
  readonly pools: readonly FoldedPool[];
  readonly width: number;
}

const PARTS = [
  { key: 'unsafe', label: 'unsafe', tone: 'bad' },
  { key: 'unknown', label: 'unknown', tone: 'none' },
  { key: 'safe', label: 'safe', tone: 'good' },
] as const;
const [BAR, LINE, APART] = [22, 16, 14];

export function ReadinessPlot({ pools, width }: Props) {
  const most = pools.reduce((top, { safe, unsafe, unknown }) => Math.max(top, safe + unsafe + unknown), 1);
  const isWide = width >= 640;
  const left = isWide ? Math.min(400, width / 2) : 0;
  const name = isWide ? 0 : BAR;
  const row = name + BAR + LINE + APART;
  const room = isWide ? left - 20 : width;
  return (
    <Drawing width={width} height={pools.length * row} label={pools.map(inWords).join('. ')}>
      {pools.map((pool, n) => {
        const top = n * row + name;
        const below = [countsOf(pool), ...pool.reasons.map(visible)].join('; ');
        let x = left;
        return (
          <g key={`${pool.clusters.join()} ${pool.pool} ${countsOf(pool)}`}>
            <text class="plot-name" x="0" y={n * row + 16}>
              {cutTo(nameOf(pool), room / 8.4)}
              <title>{`${nameOf(pool)}: ${pool.clusters.map(visible).join(', ')}`}</title>
            </text>
            {PARTS.map(({ key, label, tone }) => {
              const long = (pool[key] / most) * (width - left);
              const start = x;
              x += long;
              const text = `${count(pool[key])} ${label}`;
              return (
                long > 0 && (
                  <g key={key}>
                    <rect
                      class={`tone-${tone}`}
                      x={start}
                      y={top}
                      width={Math.max(1, long - 1.5)}
                      height={BAR}
                      rx="3"
                    />
                    {long > text.length * 7 + 14 && (
                      <text class={`band-name on-${tone}`} x={start + 8} y={top + BAR / 2 + 4}>
                        {text}
                      </text>
                    )}
                  </g>
                )
              );
            })}
            <text class="plot-detail" x={left} y={top + BAR + 14}>
              {cutTo(below, (width - left) / 6.8)}
              <title>{below}</title>
            </text>
          </g>
        );
      })}
    </Drawing>
  );
}

const nameOf = (pool: FoldedPool): string =>
  `${pool.pool === null ? 'nodes without a pool' : visible(pool.pool)}, ${clustersInWords(pool)}`;

const countsOf = (pool: FoldedPool): string =>
  PARTS.filter(({ key }) => pool[key] > 0)
    .map(({ key, label }) => `${count(pool[key])} ${label}`)
    .join(', ');

const inWords = (pool: FoldedPool): string =>
  `${nameOf(pool)}: ${countsOf(pool)}. ${visible(pool.reasons.join('; '))}`;
