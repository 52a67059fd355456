/*
 * The pods of the timeline: a row for the sandbox of each, and one for each of its containers, in which runs of one name follow each other. Pods that *matter*
 * have a missed or late event, another finding that matters, or a ghost that lasted long; they come first, and the others are folded.
 */
import type { Container, TimelineAnswer } from '../../api.ts';
import type { Range } from '../drawing/timeScale.ts';
import { msOf, shortId, visible } from '../text.ts';
import { endOf, type Ghost, ghostsOf, isLong, WITNESSES, type Witness } from './ghosts.ts';
import { type Life, type LifeEvidence, type LifePart, lifeOf, listedIn, STAGES } from './lives.ts';
import {
  type EventMark,
  type MarkedContainer,
  markedContainers,
  matches,
  podOf,
} from './markedContainers.ts';

export interface LifeRow {
  readonly key: string;
  /** `namespace/name` of the pod, or the name of the container. */
  readonly name: string;
  readonly isPod: boolean;
  readonly parts: readonly LifePart[];
  /** Where a life is drawn from that began before, and until that goes on. */
  readonly openStarts: readonly number[];
  readonly ghosts: readonly Ghost[];
  /** The witnesses of these. */
  readonly witnesses: readonly Witness[];
  readonly marked: Omit<MarkedContainer, 'place' | 'container'>;
  /** Events of a run that were received after the next one had begun. */
  readonly past: readonly EventMark[];
}

export interface PodLives {
  readonly key: string;
  readonly rows: readonly LifeRow[];
}

export interface ShownPods {
  readonly shown: readonly PodLives[];
  /** How many pods that matter there was no room for, and how many others. */
  readonly leftOut: Room;
}

export interface Room {
  readonly mattering: number;
  readonly others: number;
}

/** These say of nobody that something went wrong. */
const NO_MATTER: ReadonlySet<string> = new Set(['unannounced', 'unobservable', 'short_life', 'duplicate']);

/** Pods with a sign in the period, the latest into the room that there is. Those that are shown are in the order of their first sign. */
export function podLives(answer: TimelineAnswer, range: Range, only: string, room: Room): ShownPods {
  const pods = podsOf(answer, range, only).sort((a, b) => b.last - a.last);
  const mattering = pods.filter(({ matters }) => matters);
  const others = pods.filter(({ matters }) => !matters);
  // An empty drawing says less than one of what is well; and who names a pod wants to see it.
  const few = only.trim() !== '' ? NAMED : mattering.length === 0 ? FEW : 0;
  const fill = Math.max(room.others, few);
  const shown = [...mattering.slice(0, room.mattering), ...others.slice(0, fill)];
  return {
    shown: shown.sort((a, b) => a.first - b.first).map(({ key, seen }) => ({ key, rows: rowsOf(key, seen) })),
    leftOut: {
      mattering: Math.max(0, mattering.length - room.mattering),
      others: Math.max(0, others.length - fill),
    },
  };
}

const [FEW, NAMED] = [6, 12];

/** A container of which something is to be seen in the period. */
interface Seen {
  readonly container: Container;
  readonly marked: MarkedContainer | undefined;
  readonly life: Life | undefined;
  readonly ghosts: readonly Ghost[];
}

interface SeenPod {
  readonly key: string;
  readonly seen: readonly Seen[];
  readonly matters: boolean;
  readonly first: number;
  readonly last: number;
}

function podsOf(answer: TimelineAnswer, range: Range, only: string): SeenPod[] {
  const index = indexOf(answer);
  const marks = new Map(markedContainers(answer, range, only).map((marked) => [marked.place, marked]));
  const groups = new Map<string, { readonly seen: Seen[]; readonly signs: number[]; matters: boolean }>();
  const isWithin = ({ from, to }: Range) => from <= range.to && to >= range.from;
  for (const [place, container] of answer.containers.entries()) {
    const { life, ghosts, findings } = index.get(place) ?? NOTHING;
    const marked = marks.get(place);
    const ghostsWithin = ghosts.filter((ghost) => isWithin({ from: ghost.from, to: endOf(ghost) }));
    const isSeen = marked !== undefined || ghostsWithin.length > 0 || life?.parts.some(isWithin) === true;
    if (!isSeen || !matches(container, only.trim().toLowerCase())) continue;
    const key = podKey(container);
    const group = groups.get(key) ?? { seen: [], signs: [], matters: false };
    groups.set(key, group);
    group.seen.push({ container, marked, life, ghosts: ghostsWithin });
    group.signs.push(
      ...(marked === undefined ? [] : signsOf(marked)),
      ...ghostsWithin.map(({ from }) => from),
    );
    group.matters ||= findings.some(isWithin) || ghostsWithin.some(isLong);
  }
  return [...groups].flatMap(([key, { signs, ...group }]) => {
    const sorted = signs.sort((a, b) => a - b);
    const [first, last] = [sorted[0], sorted.at(-1)];
    return first === undefined || last === undefined ? [] : [{ key, first, last, ...group }];
  });
}

const signsOf = ({ events, windows, holes, notes }: MarkedContainer): number[] => [
  ...[...events, ...notes].map(({ at }) => at),
  ...[...windows, ...holes].map(({ from }) => from),
];

interface Known {
  readonly life: Life | undefined;
  readonly ghosts: readonly Ghost[];
  /** When findings were that matter. */
  readonly findings: readonly Range[];
}

const NOTHING: Known = { life: undefined, ghosts: [], findings: [] };

/** The facts of an answer about each container, once for each answer. */
const INDEXES = new WeakMap<TimelineAnswer, ReadonlyMap<number, Known>>();

function indexOf(answer: TimelineAnswer): ReadonlyMap<number, Known> {
  const found = INDEXES.get(answer);
  if (found !== undefined) return found;
  const listed = listedIn(answer);
  const ghosts = ghostsOf(answer);
  const [evidence, findings] = [evidenceOf(answer), matteringOf(answer)];
  const index = new Map(
    answer.containers.map((_, place): [number, Known] => {
      const known = evidence.get(place);
      const life = known === undefined ? undefined : lifeOf(known, listed);
      // Without its start or stop, a ghost would be one of nothing: a runtime may take back what it announced.
      const own = (ghosts.get(place) ?? []).filter(({ type }) => {
        const stage = STAGES[type];
        return stage !== undefined && life?.edges[stage] !== undefined;
      });
      return [place, { life, ghosts: own, findings: findings.get(place) ?? [] }];
    }),
  );
  INDEXES.set(answer, index);
  return index;
}

type Collected = { readonly [K in keyof LifeEvidence]: LifeEvidence[K][number][] };

function evidenceOf({
  events,
  changes,
  earlier,
  findings,
  lags,
}: TimelineAnswer): ReadonlyMap<number, LifeEvidence> {
  const all = new Map<number, Collected>();
  const of = (place: number) => {
    const known = all.get(place) ?? { events: [], changes: [], findings: [] };
    all.set(place, known);
    return known;
  };
  // An event that lists contradict is no evidence.
  const spurious = new Set(
    findings.rows
      .filter(({ kind }) => kind === 'spurious')
      .map(({ container, eventType }) => `${container} ${eventType}`),
  );
  for (const event of [...earlier.events, ...events.rows]) {
    if (event.container !== null && !spurious.has(`${event.container} ${event.type}`))
      of(event.container).events.push(event);
  }
  for (const change of [...earlier.changes, ...changes.rows]) {
    if (change.container !== null) of(change.container).changes.push(change);
  }
  // A late status that was shown at last: the runtime did not take the change back.
  const shown = new Set(
    lags.rows.flatMap(({ kind, findingId }) => (kind === 'kubelet_late' ? findingId : [])),
  );
  for (const finding of findings.rows) {
    const isProof = PROVES.has(finding.kind) && (finding.resolvedAt === null || shown.has(finding.id));
    if (finding.container !== null && isProof) of(finding.container).findings.push(finding);
  }
  return all;
}

/** A resolved finding may be so because the runtime took the change back. */
const PROVES: ReadonlySet<string> = new Set(['missed', 'kubelet_late']);

function matteringOf({ findings }: TimelineAnswer): ReadonlyMap<number, readonly Range[]> {
  const all = new Map<number, Range[]>();
  for (const { container, kind, from, to, at } of findings.rows) {
    if (container === null || NO_MATTER.has(kind)) continue;
    const found = msOf(at);
    const period = { from: Math.min(found, msOf(from ?? at)), to: Math.max(found, msOf(to ?? at)) };
    all.set(container, [...(all.get(container) ?? []), period]);
  }
  return all;
}

/** A pod that was made again under its name has another UID. */
const podKey = ({ id, podUid, podNamespace, podName }: Container): string =>
  podName === null || podName === '' ? (podUid ?? id) : `${podNamespace}/${podName}/${podUid}`;

/** The pod's own row, and one for each container, or more where runs of one name overlap. */
function rowsOf(key: string, seen: readonly Seen[]): LifeRow[] {
  const [first] = seen;
  const names = new Map<string, Seen[][]>();
  for (const each of [...seen].sort((a, b) => startOf(a) - startOf(b))) {
    const { container } = each;
    if (container.isSandbox) continue;
    const name = visible(container.name ?? '') || shortId(container.id);
    const rows = names.get(name) ?? [];
    names.set(name, rows);
    const free = rows.find((row) => row.every((other) => ranUntil(other) <= startOf(each)));
    if (free === undefined) rows.push([each]);
    else free.push(each);
  }
  const containers = [...names].sort(([a], [b]) => (a < b ? -1 : 1));
  const sandboxes = seen.filter(({ container }) => container.isSandbox);
  return [
    rowOf(
      {
        key,
        name: first === undefined ? key : podOf(first.container) || shortId(first.container.id),
        isPod: true,
      },
      sandboxes,
    ),
    ...containers.flatMap(([name, rows]) =>
      rows.map((row, n) => rowOf({ key: `${key} ${name} ${n}`, name, isPod: false }, row)),
    ),
  ];
}

const startOf = ({ life, ghosts }: Seen): number => life?.parts[0]?.from ?? ghosts[0]?.from ?? 0;

/** An end that is only kept does not keep the next run from its row. */
const ranUntil = ({ life }: Seen): number =>
  life?.parts.findLast(({ state }) => state === 'running' || state === 'turning')?.to ?? 0;

function rowOf(row: Pick<LifeRow, 'key' | 'name' | 'isPod'>, seen: readonly Seen[]): LifeRow {
  const ghosts = seen.flatMap((each) => each.ghosts).sort((a, b) => a.from - b.from);
  const runs = seen.map((each, n) => {
    const later = seen[n + 1];
    return { ...each, until: later === undefined ? Number.POSITIVE_INFINITY : startOf(later) };
  });
  const events = runs.flatMap(({ marked, until }) =>
    (marked?.events ?? []).map((event) => ({ event, isPast: event.at >= until })),
  );
  return {
    ...row,
    parts: runs.flatMap(({ life, until }) =>
      (life?.parts ?? []).flatMap((part) =>
        part.from < until ? [{ ...part, to: Math.min(part.to, until) }] : [],
      ),
    ),
    openStarts: runs.flatMap(({ life }) => (life?.isOpenStart ? (life.parts[0]?.from ?? []) : [])),
    ghosts,
    witnesses: WITNESSES.filter((witness) => ghosts.some(({ trails }) => trails[witness] !== undefined)),
    marked: {
      events: events.flatMap(({ event, isPast }) => (isPast ? [] : event)),
      windows: runs.flatMap(({ marked, until }) =>
        (marked?.windows ?? []).filter(({ from }) => from < until),
      ),
      holes: runs.flatMap(({ marked }) => marked?.holes ?? []),
      notes: runs.flatMap(({ marked }) => marked?.notes ?? []),
    },
    past: events.flatMap(({ event, isPast }) => (isPast ? event : [])),
  };
}
