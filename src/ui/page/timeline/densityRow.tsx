/*
 * How many events were received, and where one is missing: the row that shows a whole day.
 */
import type { ContainerEvent, Rows, TimelineFinding } from '../../api.ts';
import { fragmentOf } from '../place.ts';
import { count, msOf } from '../text.ts';
import { CutMark } from './cutMark.tsx';
import { densityOf } from './eventDensity.ts';
import { holeShape } from './holeShape.ts';
import { holeOf } from './markedContainers.ts';
import { holeInWords } from './markWords.ts';
import type { RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';

interface Props extends RowProps {
  readonly events: Rows<ContainerEvent>;
  readonly findings: readonly TimelineFinding[];
  readonly right: number;
}

const BAR = 4;
const HOLES = 14;

export function DensityRow({ events, findings, scale, row, right }: Props) {
  const left = scale.x(scale.range.from);
  const slices = Math.max(1, Math.floor((right - left) / BAR));
  const moments = events.rows.map(({ at }) => msOf(at));
  const { counts, most } = densityOf(moments, scale.range, slices);
  const width = (right - left) / slices;
  const bottom = row.top + row.height;
  const tall = row.height - HOLES - 2;
  const bars = counts.flatMap((n, at) => {
    const high = most === 0 ? 0 : Math.max(1.5, (n / most) * tall);
    return n === 0 ? [] : [`M${px(left + at * width)} ${bottom}v${px(-high)}h${px(width - 1)}v${px(high)}z`];
  });
  const missed = findings.filter(({ kind }) => kind === 'missed');
  return (
    <g>
      <RowName row={row} name={most === 0 ? 'Events' : `Events, at most ${count(most)} a bar`} />
      <rect
        class="plot"
        x={left}
        y={row.top + HOLES}
        width={Math.max(0, right - left)}
        height={row.height - HOLES}
      />
      <path class="tone-plain" d={bars.join('')} />
      <CutMark
        cut={events.cut}
        scale={scale}
        row={{ ...row, top: row.top + HOLES, height: row.height - HOLES }}
      />
      {missed.map((finding) => {
        const shape = holeShape(holeOf(finding), scale);
        if (shape === undefined) return null;
        return (
          <a
            key={finding.id}
            href={fragmentOf({ view: 'finding', id: finding.id, cluster: null, node: null })}
            tabindex={-1}
          >
            <title>{holeInWords(finding)}</title>
            <path
              class={finding.resolvedAt === null ? 'miss-flag' : 'miss-flag is-resolved'}
              d={`M${px(shape.at)} ${row.top + HOLES}v${row.height - HOLES}M${px(shape.at - 5)} ${row.top + 2}h10l-5 9z`}
            />
          </a>
        );
      })}
    </g>
  );
}

const px = (n: number): number => Math.round(n * 10) / 10;
