/*
 * The words beside the trails of one witness in a row. Where those of two would overlap, they are words of both.
 */
import type { TimeScale } from '../drawing/timeScale.ts';
import {
  type Ghost,
  isHarmless,
  isUnobserved,
  lengthInWords,
  SHORT,
  type Trail,
  trailInWords,
  type Witness,
} from './ghosts.ts';

export interface TrailShape {
  readonly x: number;
  /** Until where it is proven, and until where it may have lasted. */
  readonly proven: number;
  readonly end: number;
  /** Nobody saw its end. */
  readonly isOpen: boolean;
}

export interface TrailLabel {
  readonly text: string;
  readonly x: number;
  readonly anchor: 'start' | 'end';
  readonly tone: 'late' | 'soft';
}

const [APART, LEAST, OPEN] = [6, 4, 18];
const CHARACTER = 6.6;

/** Undefined if it is outside the drawing. */
export function trailShape(ghost: Ghost, trail: Trail, scale: TimeScale): TrailShape | undefined {
  const { from } = ghost;
  const [least, most] = [trail.atLeast ?? 0, trail.atMost ?? trail.atLeast ?? 0];
  const { range } = scale;
  if (from > range.to || from + most < range.from) return undefined;
  const within = (ms: number) => scale.x(Math.min(range.to, Math.max(range.from, ms)));
  const x = within(from);
  const proven = Math.max(x, within(from + least));
  const isOpen = trail.atMost === null;
  const end = isOpen ? Math.min(scale.x(range.to), proven + OPEN) : within(from + most);
  return { x, proven, end: Math.max(end, x + LEAST), isOpen };
}

interface Group {
  readonly trails: readonly { readonly type: string; readonly trail: Trail }[];
  readonly from: number;
  readonly to: number;
  readonly label: TrailLabel;
  readonly x: number;
  readonly end: number;
}

export function trailLabels(
  ghosts: readonly Ghost[],
  witness: Witness,
  scale: TimeScale,
  edges: { readonly left: number; readonly right: number },
): TrailLabel[] {
  const groups: Group[] = [];
  for (const ghost of ghosts) {
    const trail = ghost.trails[witness];
    const shape = trail && trailShape(ghost, trail, scale);
    if (trail === undefined || shape === undefined) continue;
    const { x, end } = shape;
    let group = groupOf(witness, [{ type: ghost.type, trail }], x, end, edges);
    for (let last = groups.at(-1); last && last.to + APART > group.from; last = groups.at(-1)) {
      groups.pop();
      const together = [...last.trails, ...group.trails];
      group = groupOf(witness, together, Math.min(last.x, x), Math.max(last.end, end), edges);
    }
    groups.push(group);
  }
  return groups.map(({ label }) => label);
}

function groupOf(
  witness: Witness,
  trails: Group['trails'],
  x: number,
  end: number,
  { left, right }: { readonly left: number; readonly right: number },
): Group {
  const [one] = trails;
  const words =
    trails.length === 1 && one ? trailInWords(witness, one.type, one.trail) : allInWords(witness, trails);
  const places = [words.text, words.short].flatMap((text) => {
    const width = text.length * CHARACTER;
    const after = { text, x: end + APART, anchor: 'start', from: x, to: end + APART + width } as const;
    const before = { text, x: x - APART, anchor: 'end', from: x - APART - width, to: end } as const;
    return [after, before];
  });
  const placed = places.find(({ from, to }) => from >= left && to <= right) ?? {
    ...{ text: words.short, x: left, anchor: 'start', from: left },
    to: left + words.short.length * CHARACTER,
  };
  const { text, anchor, from, to } = placed;
  const isLate = trails.some(({ trail }) => !isUnobserved(trail) && !isHarmless(trail));
  return { trails, x, end, from, to, label: { text, anchor, x: placed.x, tone: isLate ? 'late' : 'soft' } };
}

/** `kubelet: 3 shown late, the longest 34 s`. */
function allInWords(witness: Witness, trails: Group['trails']): { text: string; short: string } {
  const observed = trails.filter(({ trail }) => !isUnobserved(trail));
  const late = observed.filter(({ trail }) => !isHarmless(trail));
  const longest = late.toSorted((a, b) => lengthOf(b.trail) - lengthOf(a.trail))[0];
  if (longest !== undefined) {
    const length = lengthInWords(longest.trail);
    const unknown = trails.length - observed.length;
    const rest = unknown === 0 ? '' : `, ${unknown} not observed`;
    return {
      text: `${witness}: ${late.length} shown late, the longest ${length}${rest}`,
      short: `${SHORT[witness]}: ${late.length} late, ${length}`,
    };
  }
  const [n, unknown] = [trails.length, trails.length - observed.length];
  const text =
    unknown > 0 ? `${witness}: ${unknown} of ${n} not observed` : `${witness}: showed ${n} within 2 s`;
  return { text, short: text };
}

const lengthOf = ({ atLeast, atMost }: Trail): number => atMost ?? atLeast ?? 0;
