/*
 * Each pool as a bar of its nodes: safe, not safe, unknown. Each part has its word and number in it or beside it.
 */
import type { PoolReadiness } from '../../api.ts';
import { Drawing } from '../drawing/drawing.tsx';
import { count, cutTo, visible } from '../text.ts';

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
const [NAME, LINE, APART] = [22, 16, 16];

/** Its name, its bar, how many there are, and a line for each reason. */
const heightOf = ({ reasons }: PoolReadiness): number => NAME + BAR + LINE * (1 + reasons.length) + APART;

export function ReadinessPlot({ pools, width }: Props) {
  const most = pools.reduce((top, { safe, unsafe, unknown }) => Math.max(top, safe + unsafe + unknown), 1);
  const tops = pools.map((_, n) => pools.slice(0, n).reduce((sum, pool) => sum + heightOf(pool), 0));
  const height = pools.reduce((sum, pool) => sum + heightOf(pool), 0);
  return (
    <Drawing width={width} height={height} label={pools.map(inWords).join('. ')}>
      {pools.map((pool, n) => {
        const top = tops[n] ?? 0;
        const lines = [countsOf(pool), ...pool.reasons.map(visible)];
        let x = 0;
        return (
          <g key={`${pool.cluster} ${pool.pool}`}>
            <text class="plot-name" x="0" y={top + 14}>
              {cutTo(nameOf(pool), width / 8.4)}
              <title>{nameOf(pool)}</title>
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
                      class={`tone-${tone}`}
                      x={left}
                      y={top + NAME}
                      width={Math.max(1, long - 1.5)}
                      height={BAR}
                      rx="3"
                    />
                    {long > text.length * 7 + 14 && (
                      <text class={`band-name on-${tone}`} x={left + 8} y={top + NAME + BAR / 2 + 4}>
                        {text}
                      </text>
                    )}
                  </g>
                )
              );
            })}
            {lines.map((text, line) => (
              <text key={text} class="plot-detail" x="0" y={top + NAME + BAR + 15 + line * LINE}>
                {cutTo(text, width / 6.8)}
                <title>{text}</title>
              </text>
            ))}
          </g>
        );
      })}
    </Drawing>
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
