/*
 * The nodes of a pool as one bar: safe, not safe, unknown; each part with its number, in it or below.
 */
import type { PoolNode } from '../../api.ts';
import { count } from '../text.ts';
import { VERDICTS } from './poolWords.ts';

interface Props {
  readonly nodes: readonly PoolNode[];
  readonly width: number;
  readonly height: number;
  readonly letter: number;
}

export function VerdictBar({ nodes, width, height, letter }: Props) {
  const parts = VERDICTS.map((part) => ({
    ...part,
    n: nodes.filter(({ verdict }) => verdict === part.key).length,
  }));
  let x = 0;
  return (
    <g>
      {parts.map(({ key, label, tone, n }) => {
        const long = nodes.length === 0 ? 0 : (n / nodes.length) * width;
        const left = x;
        x += long;
        const text = `${count(n)} ${label}`;
        return (
          n > 0 && (
            <g key={key}>
              <title>{text}</title>
              <rect
                class={`tone-${tone}`}
                x={left + 0.5}
                y="0.5"
                width={Math.max(1, long - 2)}
                height={height - 1}
                rx="3"
              />
              {long > text.length * letter * 0.56 + 14 && (
                <text class={`band-name on-${tone}`} x={left + 8} y={height / 2 + letter * 0.35}>
                  {text}
                </text>
              )}
            </g>
          )
        );
      })}
    </g>
  );
}

export const verdictsInWords = (nodes: readonly PoolNode[]): string =>
  VERDICTS.map(
    ({ key, label }) => `${count(nodes.filter(({ verdict }) => verdict === key).length)} ${label}`,
  ).join(', ');
