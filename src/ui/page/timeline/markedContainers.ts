/*
 * The containers of the timeline, a row for each: what was received, what lists showed, and the holes where an event was due.
 */
import type { Container, TimelineAnswer, TimelineFinding } from '../../api.ts';
import type { Range } from '../drawing/timeScale.ts';
import { msOf, visible } from '../text.ts';

export interface MarkedContainer {
  /** Of the container in the answer: hostile ids may be the same. */
  readonly place: number;
  readonly container: Container;
  readonly events: readonly EventMark[];
  readonly windows: readonly WindowMark[];
  readonly holes: readonly Hole[];
}

export interface EventMark {
  readonly at: number;
  readonly type: string;
  readonly replayed: boolean;
  readonly exit: string | null;
}

/** The change happened somewhere within it: after a list that showed the old state began, before one that showed the new one ended. */
export interface WindowMark {
  readonly from: number;
  readonly to: number;
  readonly oldState: string;
  readonly newState: string;
}

/** Where an event was due. */
export interface Hole {
  readonly finding: TimelineFinding;
  readonly from: number;
  readonly to: number;
  /** When it was due at the latest estimate: the runtime's own time where it knows it. */
  readonly at: number;
  readonly resolvedAt: number | null;
}

export interface MarkedContainers {
  readonly shown: readonly MarkedContainer[];
  /** How many containers there was no room for. */
  readonly leftOut: number;
}

/**
 * Containers with a hole come first into the room that there is, then the latest. Those that are shown are in the order of their first
 * sign.
 */
export function markedContainers(
  answer: TimelineAnswer,
  range: Range,
  only: string,
  room: number,
): MarkedContainers {
  const search = only.trim().toLowerCase();
  const all = answer.containers
    .map((container, place) => ({ place, container, ...marksOf(answer, place, range) }))
    .filter((marked) => !isEmpty(marked) && (search === '' || matches(marked.container, search)))
    .map((marked) => ({ marked, first: firstOf(marked), hasHole: marked.holes.length > 0 }));
  all.sort((a, b) => Number(b.hasHole) - Number(a.hasHole) || b.first - a.first);
  const shown = all.slice(0, room).sort((a, b) => a.first - b.first);
  return { shown: shown.map(({ marked }) => marked), leftOut: all.length - shown.length };
}

type Marks = Pick<MarkedContainer, 'events' | 'windows' | 'holes'>;

/** The rows of an answer by their container, once for each answer. */
const INDEXES = new WeakMap<TimelineAnswer, ReadonlyMap<number, Marks>>();

function marksOf(answer: TimelineAnswer, container: number, range: Range): Marks {
  const index = INDEXES.get(answer) ?? indexOf(answer);
  INDEXES.set(answer, index);
  const { events, windows, holes } = index.get(container) ?? { events: [], windows: [], holes: [] };
  const isWithin = ({ from, to }: Range) => to >= range.from && from <= range.to;
  return {
    events: events.filter(({ at }) => isWithin({ from: at, to: at })),
    windows: windows.filter(isWithin),
    holes: holes.filter(isWithin),
  };
}

/** What was due and did not come: an event, or the kubelet's own status. */
const HOLES: ReadonlySet<string> = new Set(['missed', 'kubelet_late']);

function indexOf(answer: TimelineAnswer): ReadonlyMap<number, Marks> {
  const index = new Map<number, { events: EventMark[]; windows: WindowMark[]; holes: Hole[] }>();
  const marks = (container: number) => {
    const found = index.get(container) ?? { events: [], windows: [], holes: [] };
    index.set(container, found);
    return found;
  };
  for (const { container, at, type, replayed, exit } of answer.events.rows) {
    if (container !== null) marks(container).events.push({ at: msOf(at), type, replayed, exit });
  }
  for (const { container, from, to, oldState, newState } of answer.changes.rows) {
    if (container !== null)
      marks(container).windows.push({ from: msOf(from), to: msOf(to), oldState, newState });
  }
  for (const finding of answer.findings.rows) {
    if (finding.container !== null && HOLES.has(finding.kind))
      marks(finding.container).holes.push(holeOf(finding));
  }
  return index;
}

export function holeOf(finding: TimelineFinding): Hole {
  const found = msOf(finding.at);
  const from = finding.from === null ? found : msOf(finding.from);
  const to = finding.to === null ? Math.max(from, found) : msOf(finding.to);
  const occurred = finding.occurredAt === null ? (from + to) / 2 : msOf(finding.occurredAt);
  const resolvedAt = finding.resolvedAt === null ? null : msOf(finding.resolvedAt);
  return { finding, from: Math.min(from, occurred), to: Math.max(to, occurred), at: occurred, resolvedAt };
}

const isEmpty = ({ events, windows, holes }: Marks): boolean =>
  events.length + windows.length + holes.length === 0;

const firstOf = ({ events, windows, holes }: Marks): number =>
  Math.min(...[...events.map(({ at }) => at), ...[...windows, ...holes].map(({ from }) => from)]);

const podOf = ({ podNamespace, podName }: Container): string =>
  visible([podNamespace, podName].filter((part) => part !== null && part !== '').join('/'));

/** What to call it: pod and container, or its id where nothing else is known. */
export function nameOf(container: Container): string {
  const pod = podOf(container);
  const own = container.isSandbox ? 'sandbox' : visible(container.name ?? '');
  return pod === '' ? container.id.slice(0, 12) : `${pod} ${own}`.trim();
}

const matches = ({ id, name, podUid, ...container }: Container, search: string): boolean =>
  [id, name ?? '', podUid ?? '', `${container.podNamespace ?? ''}/${container.podName ?? ''}`].some((text) =>
    text.toLowerCase().includes(search),
  );
