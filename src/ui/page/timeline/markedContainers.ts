/*
 * The containers of the timeline, a row for each: what was received, what lists showed, and the holes where an event was due.
 */
import type { Container, TimelineAnswer, TimelineFinding } from '../../api.ts';
import type { Range } from '../drawing/timeScale.ts';
import { msOf, visible } from '../text.ts';

export interface MarkedContainer {
  /** Place of the container in the answer: hostile ids may be the same. */
  readonly place: number;
  readonly container: Container;
  readonly events: readonly EventMark[];
  readonly windows: readonly WindowMark[];
  readonly holes: readonly Hole[];
  /** Findings of other kinds. */
  readonly notes: readonly Note[];
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

interface Note {
  readonly finding: TimelineFinding;
  readonly at: number;
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

/** The containers with a mark in the period. */
export function markedContainers(answer: TimelineAnswer, range: Range, only: string): MarkedContainer[] {
  const search = only.trim().toLowerCase();
  return answer.containers
    .map((container, place) => ({ place, container, ...marksOf(answer, place, range) }))
    .filter((marked) => !isEmpty(marked) && matches(marked.container, search));
}

/** The findings of the containers that are named; all, those of the stream as a whole included, if none is. */
export function findingsOfContainers(
  { containers, findings }: Pick<TimelineAnswer, 'containers' | 'findings'>,
  only: string,
): TimelineFinding[] {
  const search = only.trim().toLowerCase();
  return findings.rows.filter(({ container }) => {
    if (search === '') return true;
    const named = container === null ? undefined : containers[container];
    return named !== undefined && matches(named, search);
  });
}

type Marks = Pick<MarkedContainer, 'events' | 'windows' | 'holes' | 'notes'>;
const noMarks = () => ({ events: [], windows: [], holes: [], notes: [] });

/** The rows of an answer by their container, once for each answer. */
const INDEXES = new WeakMap<TimelineAnswer, ReadonlyMap<number, Marks>>();

function marksOf(answer: TimelineAnswer, container: number, range: Range): Marks {
  const index = INDEXES.get(answer) ?? indexOf(answer);
  INDEXES.set(answer, index);
  const { events, windows, holes, notes } = index.get(container) ?? noMarks();
  const isWithin = ({ from, to }: Range) => to >= range.from && from <= range.to;
  return {
    events: events.filter(({ at }) => isWithin({ from: at, to: at })),
    windows: windows.filter(isWithin),
    holes: holes.filter(isWithin),
    notes: notes.filter(({ at }) => isWithin({ from: at, to: at })),
  };
}

/** Things that were due and did not come: an event, or the kubelet's own status. */
const HOLES: ReadonlySet<string> = new Set(['missed', 'kubelet_late']);

function indexOf(answer: TimelineAnswer): ReadonlyMap<number, Marks> {
  const index = new Map<
    number,
    { events: EventMark[]; windows: WindowMark[]; holes: Hole[]; notes: Note[] }
  >();
  const marks = (container: number) => {
    const found = index.get(container) ?? noMarks();
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
    if (finding.container === null) continue;
    if (HOLES.has(finding.kind)) marks(finding.container).holes.push(holeOf(finding));
    else marks(finding.container).notes.push({ finding, at: msOf(finding.at) });
  }
  return index;
}

export function holeOf(finding: TimelineFinding): Hole {
  const found = msOf(finding.at);
  const from = finding.from === null ? found : msOf(finding.from);
  const to = finding.to === null ? Math.max(from, found) : msOf(finding.to);
  // The clock of a runtime that is wrong may say that it happened after it was found.
  const occurred =
    finding.occurredAt === null
      ? (from + to) / 2
      : Math.min(msOf(finding.occurredAt), msOf(finding.detectedAt));
  const resolvedAt = finding.resolvedAt === null ? null : msOf(finding.resolvedAt);
  return { finding, from: Math.min(from, occurred), to: Math.max(to, occurred), at: occurred, resolvedAt };
}

const isEmpty = ({ events, windows, holes, notes }: Marks): boolean =>
  events.length + windows.length + holes.length + notes.length === 0;

/** `namespace/name`; empty where it is not known. */
export const podOf = ({ podNamespace, podName }: Container): string =>
  visible([podNamespace, podName].filter((part) => part !== null && part !== '').join('/'));

/** The name of a container: pod and container, or its id where nothing else is known. */
export function nameOf(container: Container): string {
  const pod = podOf(container);
  const own = container.isSandbox ? 'sandbox' : visible(container.name ?? '');
  return pod === '' ? container.id.slice(0, 12) : `${pod} ${own}`.trim();
}

/** Whether its name or id contains `search`, in small letters. */
export const matches = ({ id, name, podUid, ...container }: Container, search: string): boolean =>
  search === '' ||
  [id, name ?? '', podUid ?? '', `${container.podNamespace ?? ''}/${container.podName ?? ''}`].some((text) =>
    text.toLowerCase().includes(search),
  );
