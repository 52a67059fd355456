/*
 * The relists of a pool: a line for each node, the one that stands out named at its line, and below how many nodes nobody observed.
 */
import { duration } from '../../../analysis/words.ts';
import type { PoolAnswer } from '../../api.ts';
import { TimeScale } from '../drawing/timeScale.ts';
import { count, counted, cutTo, moment, msOf, visible } from '../text.ts';
import { drawnLine, latencyScale, outlierOf, unobservedNodes } from './relistLines.ts';

interface Props {
  readonly answer: PoolAnswer;
  readonly width: number;
  readonly height: number;
  /** How large letters are drawn. */
  readonly letter: number;
}

/** All of it, as a group of an SVG of this size. */
export function RelistLines({ answer, width, height, letter }: Props) {
  const { from, to, lines, nodes, slices, sliceSeconds } = answer;
  const left = letter * 7.2;
  const top = letter * 1.8;
  const time = new TimeScale({ from: msOf(from), to: msOf(to) }, left, width - 4);
  const axis = letter * 1.8;
  const strip = letter * 1.4;
  const apart = letter * 0.9;
  const bottom = height - axis - strip - apart - 4;
  const durations = latencyScale(answer);
  const y = (ms: number) => top + (bottom - top) * (1 - (durations?.at(ms) ?? 0));
  const outlier = outlierOf(answer);
  const missing = unobservedNodes(answer);
  const drawn = lines.map((line) => ({ ...line, ...drawnLine(line.longestMs, answer, time, y) }));
  return (
    <g>
      <rect class="plot" x={left} y={top} width={Math.max(0, width - 4 - left)} height={bottom - top} />
      {durations?.ticks.map((tick) => (
        <g key={tick}>
          <path class="tick-line" d={`M${left} ${Math.round(y(tick)) + 0.5}H${width - 4}`} />
          <text class="tick" x={left - 6} y={y(tick) + letter / 3} text-anchor="end">
            {duration(tick)}
          </text>
        </g>
      ))}
      {durations === undefined && (
        <text class="row-none" x={left + 8} y={bottom / 2}>
          no relist is recorded in this period
        </text>
      )}
      {time.ticks(letter * 7).map(({ at, label }) => (
        <text
          key={at}
          class="tick"
          x={time.x(at)}
          y={height - 4}
          text-anchor={time.x(at) > width - letter * 2 ? 'end' : 'middle'}
        >
          {label}
        </text>
      ))}
      {drawn.map(({ node, path }, n) => (
        <path key={node} class={n === outlier?.line ? 'relists is-outlier' : 'relists'} d={path}>
          <title>{visible(nodes[node]?.node ?? '')}</title>
        </path>
      ))}
      <path class="relists-median" d={drawnLine(answer.medianMs, answer, time, y).path}>
        <title>the median of the pool</title>
      </path>
      <path
        class="hole-ends"
        d={drawn.map(({ ends }) => ends.map(({ x, y: at }) => `M${x} ${at - 5}v10`).join('')).join('')}
      />
      <g transform={`translate(0 ${bottom + apart})`}>
        <rect class="plot" x={left} y="0" width={Math.max(0, width - 4 - left)} height={strip} />
        {missing.counts.map((n, slice) => {
          const start = msOf(from) + slice * sliceSeconds * 1000;
          const span = time.span(start, start + sliceSeconds * 1000);
          const tall = missing.of === 0 ? 0 : Math.max(2, (strip * n) / missing.of);
          return (
            n > 0 &&
            span !== undefined && (
              <rect
                key={slice}
                class="unobserved-nodes"
                x={span.x}
                y={strip - tall}
                width={span.width}
                height={tall}
              >
                <title>{`${count(n)} of ${counted(missing.of, 'node')} not observed from ${moment(start)} UTC`}</title>
              </rect>
            )
          );
        })}
        <text class="tick" x={left - 6} y={strip - 3} text-anchor="end">
          not observed
        </text>
      </g>
      {outlier !== undefined && slices > 0 && (
        <OutlierName
          x={time.x(msOf(from) + (outlier.slice + 0.5) * sliceSeconds * 1000)}
          y={y(outlier.longestMs) - 7}
          middle={(left + width) / 2}
          text={`${cutTo(visible(outlier.name), 40)}: ${duration(outlier.longestMs)}`}
        />
      )}
    </g>
  );
}

function OutlierName({
  x,
  y,
  middle,
  text,
}: {
  readonly x: number;
  readonly y: number;
  readonly middle: number;
  readonly text: string;
}) {
  const isRight = x > middle;
  return (
    <text class="outlier-name" x={isRight ? x - 5 : x + 5} y={y} text-anchor={isRight ? 'end' : 'start'}>
      {text}
    </text>
  );
}

/** The lines in words, for readers who do not see them, and what they leave out. */
export function relistsInWords(answer: PoolAnswer): string {
  const { lines, linesLeftOut, sliceSeconds } = answer;
  const { none, counts, of } = unobservedNodes(answer);
  const outlier = outlierOf(answer);
  const holes = counts.filter((n) => n > none).length;
  return [
    `The longest relist of each ${duration(sliceSeconds * 1000)}, of ${counted(lines.length, 'node')}; dashed: the median of the pool.`,
    ...(linesLeftOut === 0
      ? []
      : [`${counted(linesLeftOut, 'other node')} had shorter relists and no line.`]),
    ...(none === 0 ? [] : [`Of ${counted(none, 'node')} no relist is recorded.`]),
    ...(holes === 0
      ? []
      : [
          `In ${count(holes)} of ${count(counts.length)} slices at least one of ${count(of)} was not observed: its line has a hole.`,
        ]),
    outlier === undefined
      ? 'No node stands out.'
      : `${visible(outlier.name)} stands out: ${duration(outlier.longestMs)} at ${moment(msOf(answer.from) + outlier.slice * sliceSeconds * 1000)} UTC, where the median was ${duration(outlier.medianMs)}.`,
  ].join(' ');
}
