/*
 * The marks of a container, or of several in one row: windows of lists as brackets, events that were received as filled figures, a missed event as a hole with an
 * empty one, and other findings as triangles under the line.
 */
import type { TimelineFinding } from '../../api.ts';
import { figurePath } from '../drawing/figures.ts';
import { fragmentOf } from '../place.ts';
import { holeShape } from './holeShape.ts';
import type { Hole, MarkedContainer } from './markedContainers.ts';
import { eventInWords, holeInWords, noteInWords, windowInWords } from './markWords.ts';
import type { RowProps } from './rowLayout.ts';

interface Props extends RowProps {
  readonly marked: Omit<MarkedContainer, 'place' | 'container'>;
}

const RADIUS = 5;

export function ContainerRow({ marked, scale, row }: Props) {
  const { events, windows, holes, notes } = marked;
  const middle = row.top + row.height / 2;
  return (
    <g>
      {windows.map((window) => {
        const span = scale.span(window.from, window.to);
        if (span === undefined) return null;
        const { x, width } = span;
        return (
          <g key={`${window.from} ${window.newState}`}>
            <title>{windowInWords(window)}</title>
            <rect class="window" x={x} y={row.top + 2} width={width} height={row.height - 4} />
            <path
              class="window-ends"
              d={`M${x + 2} ${row.top + 2}h-2v${row.height - 4}h2M${x + width - 2} ${row.top + 2}h2v${row.height - 4}h-2`}
            />
          </g>
        );
      })}
      {events.map((event) => (
        <path
          key={`${event.at} ${event.type}`}
          class={event.replayed ? 'event is-replayed' : 'event'}
          d={figurePath(event.type, scale.x(event.at), middle, RADIUS)}
        >
          <title>{eventInWords(event)}</title>
        </path>
      ))}
      {notes.map(({ finding, at }) => (
        <a key={finding.id} href={findingLink(finding)} tabindex={-1}>
          <title>{noteInWords(finding)}</title>
          <path class="note" d={notePath(scale.x(at), row.top + row.height)} />
        </a>
      ))}
      {holes.map((hole) => (
        <HoleMark key={hole.finding.id} hole={hole} scale={scale} row={row} />
      ))}
    </g>
  );
}

function HoleMark({ hole, scale, row }: RowProps & { readonly hole: Hole }) {
  const shape = holeShape(hole, scale);
  if (shape === undefined) return null;
  const { finding, resolvedAt } = hole;
  const middle = row.top + row.height / 2;
  const state = resolvedAt === null ? '' : ' is-resolved';
  return (
    <a href={findingLink(finding)} tabindex={-1}>
      <title>{holeInWords(finding)}</title>
      <rect class={`hole${state}`} x={shape.x} y={row.top} width={shape.width} height={row.height} rx="3" />
      <path class={`hole-figure${state}`} d={figurePath(finding.eventType, shape.at, middle, RADIUS)} />
    </a>
  );
}

/** A triangle that stands on the lower edge of the row. */
export const notePath = (x: number, bottom: number): string =>
  `M${Math.round(x * 10) / 10} ${bottom - 8}l5 8h-10z`;

const findingLink = ({ id }: TimelineFinding): string =>
  fragmentOf({ view: 'finding', id, cluster: null, node: null });
