/*
 * Each pair of versions as a dot with its interval, on a logarithmic scale that begins at one in a million.
 */
import { Drawing } from '../drawing/drawing.tsx';
import { decadeAbove, logScale } from '../drawing/logScale.ts';
import { count, counted, cutTo, visible } from '../text.ts';
import { clustersInWords, type FoldedRate } from './folded.ts';

interface Props {
  readonly rates: readonly FoldedRate[];
  readonly width: number;
}

const [ROW, NARROW_ROW] = [44, 62];
const BOTTOM = 44;
/** Labels of ticks are apart by at least this. */
const TICK = 62;

export function MissRatePlot({ rates, width }: Props) {
  const isWide = width >= 640;
  const [left, right] = [isWide ? Math.min(400, width / 2) : 8, width - (isWide ? 24 : 8)];
  const row = isWide ? ROW : NARROW_ROW;
  const room = isWide ? left - 20 : width;
  const most = rates.reduce((top, rate) => Math.max(top, rate.highPerMillion ?? rate.perMillion ?? 0), 0);
  const scale = logScale(1, Math.max(1000, decadeAbove(most)));
  const x = (value: number) => left + (right - left) * scale.at(value);
  const height = rates.length * row + BOTTOM;
  const everyTick = (right - left) / (scale.ticks.length - 1) < TICK ? 2 : 1;
  return (
    <Drawing width={width} height={height} label={inWords(rates)}>
      {scale.ticks.map((tick, n) => (
        <g key={tick}>
          <path class="tick-line" d={`M${x(tick)} 0V${height - BOTTOM + 4}`} />
          {n % everyTick === 0 && (
            <text
              class="tick"
              x={x(tick)}
              y={height - BOTTOM + 20}
              text-anchor={anchorOf(x(tick), left, right)}
            >
              {tick === 1 ? '≤ 1' : count(tick)}
            </text>
          )}
        </g>
      ))}
      <text class="tick" x={right} y={height - 4} text-anchor="end">
        missed of a million, with 95 % interval
      </text>
      {rates.map((rate, n) => {
        const top = n * row;
        const y = isWide ? top + row / 2 : top + row - 14;
        const namesLeft = isWide ? 0 : left;
        const texts = [
          ['plot-name', versionsOf(rate), 8.4],
          ['plot-detail', detailOf(rate), 6.8],
        ] as const;
        return (
          <g
            key={`${rate.clusters.join()} ${rate.runtimeName} ${rate.runtimeVersion} ${rate.kubeletVersion}`}
          >
            {texts.map(([style, text, character], line) => (
              <text key={text} class={style} x={namesLeft} y={top + 18 + line * 16}>
                {cutTo(text, room / character)}
                <title>{line === 0 ? text : `${text}: ${rate.clusters.map(visible).join(', ')}`}</title>
              </text>
            ))}
            {rate.perMillion === null ? (
              <text class="row-none" x={left + 8} y={y + 4}>
                nothing that was due could be observed
              </text>
            ) : (
              <Interval rate={rate} x={x} y={y} />
            )}
          </g>
        );
      })}
    </Drawing>
  );
}

interface IntervalProps {
  readonly rate: FoldedRate;
  readonly x: (value: number) => number;
  readonly y: number;
}

function Interval({ rate, x, y }: IntervalProps) {
  const { perMillion, lowPerMillion, highPerMillion, missed } = rate;
  if (perMillion === null || lowPerMillion === null || highPerMillion === null) return null;
  const [low, high] = [x(lowPerMillion), x(highPerMillion)];
  const tone = missed === 0 ? 'good' : 'bad';
  return (
    <g>
      <title>{`${count(perMillion)} of a million; with 95 % confidence between ${count(lowPerMillion)} and ${count(highPerMillion)}`}</title>
      <path
        class={`interval stroke-${tone}`}
        d={`M${low} ${y}H${high}M${low} ${y - 6}v12M${high} ${y - 6}v12`}
      />
      <circle class={missed === 0 ? 'dot-empty' : 'tone-bad'} cx={x(perMillion)} cy={y} r="5" />
    </g>
  );
}

const anchorOf = (x: number, left: number, right: number): 'start' | 'middle' | 'end' =>
  x < left + 12 ? 'start' : x > right - 24 ? 'end' : 'middle';

const versionsOf = ({ runtimeName, runtimeVersion, kubeletVersion }: FoldedRate): string => {
  const runtime = visible([runtimeName, runtimeVersion].filter(Boolean).join(' ')) || 'unknown runtime';
  return `${runtime}, ${kubeletVersion === null ? 'unknown kubelet' : `kubelet ${visible(kubeletVersion)}`}`;
};

const detailOf = (rate: FoldedRate): string =>
  `${clustersInWords(rate)}: ${counted(rate.nodes, 'node')}, ${count(rate.missed)} missed of ${count(rate.decided)}`;

const inWords = (rates: readonly FoldedRate[]): string =>
  rates
    .map(
      (rate) =>
        `${versionsOf(rate)}: ${detailOf(rate)}, ${rate.perMillion === null ? 'rate unknown' : `${count(rate.perMillion)} of a million`}`,
    )
    .join('. ');
