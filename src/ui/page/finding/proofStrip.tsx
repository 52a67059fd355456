/*
 * The window of a finding as a drawing: the list before, the list after, the event that was due between them, and the verdict.
 */
import { duration } from '../../../analysis/words.ts';
import type { FindingAnswer } from '../../api.ts';
import { Drawing } from '../drawing/drawing.tsx';
import { figurePath } from '../drawing/figures.ts';
import { TimeScale } from '../drawing/timeScale.ts';
import { useElementWidth } from '../parts/elementWidth.ts';
import { clock, msOf, visible } from '../text.ts';

const [TOP, MIDDLE] = [34, 62];
/** Widths of the two times below: on a narrow page one is below the other. */
const [FIRST, SECOND, APART] = [113, 131, 8];
const NARROW = 500;
const SIDE = 64;

export function ProofStrip({ finding }: { readonly finding: FindingAnswer }) {
  const [ref, width] = useElementWidth<HTMLDivElement>();
  const { from, to, occurredAt, eventType, resolvedAt } = finding;
  if (from === null || to === null) return null;
  const [start, end] = [msOf(from), msOf(to)];
  const length = Math.max(1, end - start);
  const scale = new TimeScale(
    { from: start - length * 0.25, to: end + length * 0.25 },
    SIDE / 2,
    width - SIDE / 2,
  );
  const [left, right] = [scale.x(start), scale.x(end)];
  const at = scale.x(occurredAt === null ? (start + end) / 2 : msOf(occurredAt));
  const state = finding.kind !== 'missed' || resolvedAt !== null ? ' is-resolved' : '';
  const isMissed = finding.kind === 'missed';
  const event = visible(eventType ?? finding.kind);
  const isNarrow = width < NARROW;
  const second = isNarrow ? SECOND : FIRST;
  return (
    <div ref={ref} class="strip">
      {width > 0 && (
        <Drawing width={width} height={second + APART} label={inWords(finding, start, end)}>
          <path class="axis-line" d={`M0 ${MIDDLE}H${width}`} />
          <rect
            class={`hole${state}`}
            x={left}
            y={TOP}
            width={right - left}
            height={2 * (MIDDLE - TOP)}
            rx="4"
          />
          <path
            class="strip-list"
            d={`M${left} ${TOP - 6}V${2 * MIDDLE - TOP + 6}M${right} ${TOP - 6}V${2 * MIDDLE - TOP + 6}`}
          />
          <path class={`hole-figure${state}`} d={figurePath(eventType, at, MIDDLE, 8)} />
          <text class={`hole-name${state}`} x={(left + right) / 2} y={TOP - 12} text-anchor="middle">
            {isMissed
              ? `${event} due within ${duration(length)}, ${resolvedAt === null ? 'not received' : 'resolved later'}`
              : `${event} within ${duration(length)}`}
          </text>
          <text class="tick" x={left} y={FIRST} text-anchor={isNarrow ? 'start' : 'middle'}>
            not yet at {clock(start)}
          </text>
          <text class="tick" x={right} y={second} text-anchor={isNarrow ? 'end' : 'middle'}>
            happened by {clock(end)}
          </text>
        </Drawing>
      )}
    </div>
  );
}

function inWords({ eventType, kind, resolvedAt }: FindingAnswer, start: number, end: number): string {
  const event = visible(eventType ?? kind);
  const outcome =
    kind !== 'missed'
      ? ''
      : resolvedAt === null
        ? ', and no such event was received'
        : ', and that was resolved later';
  const what = kind === 'missed' ? 'was due' : 'happened';
  return `${event} ${what} between ${clock(start)} and ${clock(end)} UTC${outcome}.`;
}
