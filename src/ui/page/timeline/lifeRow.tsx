/*
 * The lives of one container name, or of the sandbox of a pod: a solid bar while it is proven to have run, a thin one before and after, a light one within which
 * it started or ended, a hatched one where nobody looked. Below it the ghosts: how long the kubelet and the API server still showed the
 * state before.
 */
import { duration } from '../../../analysis/words.ts';
import { figurePath } from '../drawing/figures.ts';
import type { TimeScale } from '../drawing/timeScale.ts';
import { fragmentOf } from '../place.ts';
import { clock, moment } from '../text.ts';
import { ContainerRow } from './containerRow.tsx';
import { hatch } from './gapRow.tsx';
import { type Ghost, isHarmless, isUnobserved, type Trail, trailSentence, type Witness } from './ghosts.ts';
import { holeGroups } from './holeShape.ts';
import type { LifePart, LifeState } from './lives.ts';
import { eventInWords } from './markWords.ts';
import type { LifeRow as Row } from './podLives.ts';
import type { RowPlace, RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';
import { trailLabels, trailShape } from './trailLabels.ts';

interface Props extends RowProps {
  readonly lives: Row;
  readonly left: number;
}

const [BAR, POD_BAR, LANE] = [22, 16, 15];
const TALL: Readonly<Record<LifeState, number>> = {
  ...{ running: 14, turning: 14, unobserved: 14 },
  ...{ created: 4, changing: 4, exited: 4 },
};
const INDENT = 12;

const lanesOf = ({ marked, witnesses }: Row): number => (marked.holes.length > 0 ? 1 : 0) + witnesses.length;

export function lifeRowHeight(row: Row): number {
  const lanes = lanesOf(row);
  return (row.isPod ? POD_BAR : BAR) + (lanes === 0 ? 0 : lanes * LANE + 2);
}

export function LifeRow({ lives, scale, row, left }: Props) {
  const { name, isPod, parts, openStarts, ghosts, witnesses, marked, past } = lives;
  const bar = { ...row, height: isPod ? POD_BAR : BAR };
  const middle = bar.top + bar.height / 2;
  const right = scale.x(scale.range.to);
  const isDense = marked.events.length * 8 > right - left;
  const lane = (n: number) => ({ ...row, top: bar.top + bar.height + 2 + n * LANE, height: LANE - 4 });
  const words = marked.holes.length > 0 ? 1 : 0;
  return (
    <g>
      <g transform={isPod ? undefined : `translate(${left === 0 ? 0 : INDENT} 0)`}>
        <RowName row={row} name={name} kind={isPod ? 'row' : 'container'} />
      </g>
      <path class="container-line" d={`M${left} ${middle}H${right}`} />
      {parts.map((part) => (
        <Part key={`${part.state} ${part.from}`} part={part} isPod={isPod} middle={middle} scale={scale} />
      ))}
      {openStarts.map((at) => {
        const x = scale.x(at);
        return x <= left || x > right ? null : (
          <path key={at} class="life-open" d={`M${Math.max(left, x - 16)} ${middle}H${x}`}>
            <title>Nobody saw how it began</title>
          </path>
        );
      })}
      {witnesses.map((witness, n) => (
        <Lane
          key={witness}
          witness={witness}
          ghosts={ghosts}
          scale={scale}
          row={lane(words + n)}
          foot={middle}
          left={left}
        />
      ))}
      {holeGroups(marked.holes, [], scale, right).map(({ holes, text, place }) => (
        <text
          key={holes[0]?.finding.id}
          class={`hole-name${holes.every(({ resolvedAt }) => resolvedAt !== null) ? ' is-resolved' : ''}`}
          x={place.x}
          y={lane(0).top + LANE - 6}
          text-anchor={place.anchor}
        >
          {text}
        </text>
      ))}
      {!isDense &&
        past.map((event) => (
          <path
            key={`${event.at} ${event.type}`}
            class="event is-past"
            d={figurePath(event.type, scale.x(event.at), middle - bar.height / 2 + 2, 3)}
          >
            <title>{`Of an earlier run: ${eventInWords(event)}`}</title>
          </path>
        ))}
      <ContainerRow
        marked={isDense ? { ...marked, events: [], windows: [] } : marked}
        scale={scale}
        row={bar}
      />
    </g>
  );
}

interface PartProps {
  readonly part: LifePart;
  readonly isPod: boolean;
  readonly middle: number;
  readonly scale: TimeScale;
}

function Part({ part, isPod, middle, scale }: PartProps) {
  const { state, from, to } = part;
  const span = scale.span(from, to);
  if (span === undefined) return null;
  const height = isPod ? Math.min(6, TALL[state]) : TALL[state];
  const shape = { x: span.x, y: middle - height / 2, width: span.width, height };
  return (
    <g>
      <title>{partInWords(part)}</title>
      <rect
        class={`life life-${state}${state === 'unobserved' ? ' tone-none' : ''}`}
        {...shape}
        rx={state === 'running' ? Math.min(3, span.width / 2) : 0}
      />
      {state === 'unobserved' && (
        <path class="gap-hatch" d={hatch(shape.x, shape.y, shape.width, shape.height)} />
      )}
    </g>
  );
}

const STATES: Readonly<Record<LifeState, string>> = {
  running: 'Ran, proven,',
  created: 'Created, not started,',
  exited: 'Ended, not removed,',
  turning: 'Started or ended somewhere',
  changing: 'Created or removed somewhere',
  unobserved: 'Nobody looked',
};

const partInWords = ({ state, from, to }: LifePart): string =>
  `${STATES[state]} from ${moment(from)} to ${moment(to)} UTC (${duration(to - from)})`;

interface LaneProps extends RowProps {
  readonly witness: Witness;
  readonly ghosts: readonly Ghost[];
  /** Foot of the bar. */
  readonly foot: number;
  readonly left: number;
}

function Lane({ witness, ghosts, scale, row, foot, left }: LaneProps) {
  const edges = { left, right: scale.x(scale.range.to) };
  return (
    <g>
      {ghosts.map((ghost) => {
        const trail = ghost.trails[witness];
        return (
          trail && (
            <TrailMark key={`${ghost.type} ${ghost.from}`} {...{ ghost, trail, witness, scale, row, foot }} />
          )
        );
      })}
      {trailLabels(ghosts, witness, scale, edges).map(({ text, x, anchor, tone }) => (
        <text
          key={`${x} ${text}`}
          class={`ghost-name is-${tone}`}
          x={x}
          y={row.top + row.height - 2}
          text-anchor={anchor}
        >
          {text}
        </text>
      ))}
    </g>
  );
}

interface TrailProps extends Pick<LaneProps, 'witness' | 'foot'> {
  readonly ghost: Ghost;
  readonly trail: Trail;
  readonly scale: TimeScale;
  readonly row: RowPlace;
}

function TrailMark({ ghost, trail, witness, scale, row, foot }: TrailProps) {
  const shape = trailShape(ghost, trail, scale);
  if (shape === undefined) return null;
  const { x, proven, end, isOpen } = shape;
  const { top, height } = row;
  const kind = isUnobserved(trail) ? 'unobserved' : isHarmless(trail) ? 'harmless' : 'late';
  const right = isOpen ? '' : `v${height}`;
  const isKnown = kind !== 'unobserved';
  const mark = (
    <g class={`ghost ghost-${kind}`}>
      <title>
        {`${trailSentence(witness, ghost.type, trail)} It happened at ${clock(ghost.from)} UTC at the latest.`}
      </title>
      <path class={isKnown ? 'ghost-edge' : 'gap-hatch'} d={`M${x} ${foot}V${top + height}`} />
      <rect class={isKnown ? 'ghost-bed' : 'tone-none'} x={x} y={top} width={end - x} height={height} />
      {proven > x && <rect class="ghost-proven" x={x} y={top} width={proven - x} height={height} />}
      {proven > x && <path class="ghost-hatch" d={hatch(x, top, proven - x, height)} />}
      {isKnown && (
        <path class="ghost-edge" d={`M${end} ${top}H${x}V${top + height}H${end}M${end} ${top}${right}`} />
      )}
    </g>
  );
  const { findingId: id } = ghost;
  if (id === null) return mark;
  return (
    <a href={fragmentOf({ view: 'finding', id, cluster: null, node: null })} tabindex={-1}>
      {mark}
    </a>
  );
}
