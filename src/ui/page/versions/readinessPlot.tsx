/*
 * Each pool as a bar of its nodes: safe, not safe, unknown. Each part has its word and number in it or beside it.
 */
import type { PoolReadiness } from '../../api.ts';
import { count, visible } from '../text.ts';
import { PlotDrawing } from './plotFrame.tsx';

interface Props {
  readonly pools: readonly PoolReadiness[];
  readonly width: number;
}

const PARTS = [
  { key: 'unsafe', label: 'unsafe', tone: 'bad' },
  { key: 'unknown', label: 'unknown', tone: 'none' },
  { key: 'safe', label: 'safe', tone: 'good' },
] as const;
const BAR = 24;
const ROW = 76;

export function ReadinessPlot({ pools, width }: Props) {
  const most = pools.reduce((top, { safe, unsafe, unknown }) => Math.max(top, safe + unsafe + unknown), 1);
  const height = pools.length * ROW;
  return (
    <PlotDrawing width={width} height={height} label={pools.map(inWords).join('. ')}>
      {pools.map((pool, n) => {
        const top = n * ROW;
        let x = 0;
        return (
          <g key={`${pool.cluster} ${pool.pool}`}>
            <text class="plot-name" x="0" y={top + 14}>
              {nameOf(pool)}
            </text>
            <text class="plot-detail" x={width} y={top + 14} text-anchor="end">
              {countsOf(pool)}
            </text>
            {PARTS.map(({ key, label, tone }) => {
              const long = (pool[key] / most) * width;
              const left = x;
              x += long;
              const text = `${count(pool[key])} ${label}`;
              return (
                long > 0 && (
                  <g key={key}>
                    <rect
                      class={`bar tone-${tone}`}
                      x={left}
                      y={top + 22}
                      width={Math.max(1, long - 1.5)}
                      height={BAR}
                      rx="3"
                    />
                    {long > text.length * 7 + 14 && (
                      <text class={`band-name on-${tone}`} x={left + 8} y={top + 22 + BAR / 2 + 4}>
                        {text}
                      </text>
                    )}
                  </g>
                )
              );
            })}
            <text class="plot-detail" x="0" y={top + 22 + BAR + 15}>
              {cutTo(visible(pool.reasons.join('; ')), width / 6.2)}
              <title>{visible(pool.reasons.join('; '))}</title>
            </text>
          </g>
        );
      })}
    </PlotDrawing>
  );
}

const nameOf = ({ cluster, pool }: PoolReadiness): string =>
  pool === null ? `${visible(cluster)}, nodes without a pool` : `${visible(cluster)} / ${visible(pool)}`;

const countsOf = (pool: PoolReadiness): string =>
  PARTS.filter(({ key }) => pool[key] > 0)
    .map(({ key, label }) => `${count(pool[key])} ${label}`)
    .join(', ');

const inWords = (pool: PoolReadiness): string =>
  `${nameOf(pool)}: ${countsOf(pool)}. ${visible(pool.reasons.join('; '))}`;

const cutTo = (text: string, characters: number): string =>
  text.length > characters ? `${text.slice(0, Math.max(1, Math.floor(characters) - 1))}…` : text;
