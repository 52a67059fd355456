/*
 * How many events were received, where one is missing, and where there is another finding: the row that shows a whole week.
 */
import type { TimelineAnswer, TimelineFinding } from '../../api.ts';
import { fragmentOf } from '../place.ts';
import { count, msOf } from '../text.ts';
import { notePath } from './containerRow.tsx';
import { CutMark } from './cutMark.tsx';
import { densityOf } from './eventDensity.ts';
import { binInWords, type FindingBin, findingBins, periodOf } from './findingBins.ts';
import type { RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';

interface Props extends RowProps {
  readonly answer: TimelineAnswer;
  /** Those of the containers that the reader asked for. */
  readonly findings: readonly TimelineFinding[];
  readonly only: string;
  readonly right: number;
}

const BAR = 4;
const LANE = 14;
const MARKS = 2 * LANE;

export function DensityRow({ answer, findings, only, scale, row, right }: Props) {
  const { events, cluster, node } = answer;
  const left = scale.x(scale.range.from);
  const slices = Math.max(1, Math.floor((right - left) / BAR));
  const moments = events.rows.map(({ at }) => msOf(at));
  const { counts, most } = densityOf(moments, scale.range, slices);
  const width = (right - left) / slices;
  const bottom = row.top + row.height;
  const tall = row.height - MARKS - 2;
  const bars = counts.flatMap((n, at) => {
    const high = most === 0 ? 0 : Math.max(1.5, (n / most) * tall);
    return n === 0 ? [] : [`M${px(left + at * width)} ${bottom}v${px(-high)}h${px(width - 1)}v${px(high)}z`];
  });
  const isFlag = ({ kind }: TimelineFinding) => kind === 'missed';
  const flags = findingBins(findings.filter(isFlag), scale);
  const notes = findingBins(
    findings.filter((finding) => !isFlag(finding)),
    scale,
  );
  const lane = (n: number) => ({ ...row, top: row.top + n * LANE, height: LANE });
  const linkOf = (bin: FindingBin) =>
    fragmentOf(
      bin.length === 1
        ? { view: 'finding', id: bin[0].id, cluster: null, node: null }
        : { view: 'node', cluster, node, period: periodOf(bin), only },
    );
  const mark = (bin: FindingBin, n: number) => {
    const x = scale.x(msOf(bin[0].at));
    const isResolved = bin.every(({ resolvedAt }) => resolvedAt !== null);
    const top = lane(n).top;
    return (
      <a key={bin[0].id} class="finding-bin" href={linkOf(bin)} tabindex={-1}>
        <title>{binInWords(bin)}</title>
        {n === 0 ? (
          <path class="note" d={notePath(x, top + LANE - 2)} />
        ) : (
          <path
            class={isResolved ? 'miss-flag is-resolved' : 'miss-flag'}
            d={`M${px(x)} ${top + LANE}v${row.height - MARKS}M${px(x - 5)} ${top + 2}h10l-5 9z`}
          />
        )}
        {bin.length > 1 && (
          <text class="tick-small" x={px(x + 8)} y={top + LANE - 3}>
            {count(bin.length)}
          </text>
        )}
      </a>
    );
  };
  return (
    <g>
      <RowName row={row} name={most === 0 ? 'Events' : `Events, at most ${count(most)} a bar`} />
      <rect
        class="plot"
        x={left}
        y={row.top + MARKS}
        width={Math.max(0, right - left)}
        height={row.height - MARKS}
      />
      <path class="tone-plain" d={bars.join('')} />
      <CutMark
        cut={events.cut}
        scale={scale}
        row={{ ...row, top: row.top + MARKS, height: row.height - MARKS }}
      />
      {[0, 1].map((n) => (
        <CutMark key={n} cut={answer.findings.cut} scale={scale} row={lane(n)} />
      ))}
      {notes.map((bin) => mark(bin, 0))}
      {flags.map((bin) => mark(bin, 1))}
    </g>
  );
}

const px = (n: number): number => Math.round(n * 10) / 10;
