/*
 * Nodes as one bar: safe, not safe, unknown; each part with its number, in it or in its title.
 */
import type { Readiness } from '../../api.ts';
import type { Tone } from '../colours.ts';
import { count } from '../text.ts';

export const VERDICTS = [
  { key: 'unsafe', label: 'unsafe', tone: 'bad' },
  { key: 'unknown', label: 'unknown', tone: 'none' },
  { key: 'safe', label: 'safe', tone: 'good' },
] as const satisfies readonly { key: Readiness; label: string; tone: Tone }[];

/** How many nodes are so. */
export type Verdicts = Readonly<Record<Readiness, number>>;

interface Props {
  readonly verdicts: Verdicts;
  /** The width for all nodes. */
  readonly width: number;
  readonly height: number;
  readonly letter: number;
}

export function VerdictBar({ verdicts, width, height, letter }: Props) {
  const all = VERDICTS.reduce((sum, { key }) => sum + verdicts[key], 0);
  let x = 0;
  return (
    <g>
      {VERDICTS.filter(({ key }) => verdicts[key] > 0).map(({ key, label, tone }) => {
        const long = (verdicts[key] / all) * width;
        const left = x;
        x += long;
        const text = `${count(verdicts[key])} ${label}`;
        return (
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
        );
      })}
    </g>
  );
}

export const verdictsInWords = (verdicts: Verdicts): string =>
  VERDICTS.filter(({ key }) => verdicts[key] > 0)
    .map(({ key, label }) => `${count(verdicts[key])} ${label}`)
    .join(', ');
