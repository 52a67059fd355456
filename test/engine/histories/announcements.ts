/*
 * The announcements of the runtime of a history, and what becomes of it. For tests.
 *
 *   announcement   is built, waits (a slow runtime), is sent; then it is dropped, delivered, or lost with its session
 *   delivery       an announcement as the reader takes it; one that is repeated has several
 */
import { EVENT_TYPES, type EventType } from '../../../src/protocol/record.ts';
import { type HistoryContainer, isListedEarly, stageOfType } from './containers.ts';
import { type History, type HistoryRuntime, HORIZON, isContainerd, MISSED_AFTER } from './history.ts';

export interface HistorySession {
  readonly number: number;
  readonly opened: number;
  readonly registered: number;
  readonly closed: number;
}

export interface Announcement {
  readonly container: HistoryContainer;
  readonly type: EventType;
  /** When what it announces happened; of a sandbox's DELETED when it leaves the list. Null where it did not happen. */
  readonly happened: number | null;
  readonly built: number;
  readonly sent: number;
  /** Only its digest could be kept: its id and its type. */
  readonly digest: boolean;
  readonly fate: 'dropped' | 'delivered' | 'lost' | 'unsubscribed';
  /** The session that it was sent to, or waited for; 0 for none. */
  readonly session: number;
}

export interface Delivery {
  readonly of: Announcement;
  readonly session: number;
  /** When the reader took it. */
  readonly received: number;
}

export function sessionsOf({ sessions }: History): HistorySession[] {
  let at = 500;
  return sessions.map(({ after, down, register }, i) => {
    const opened = at;
    const closed = i === sessions.length - 1 ? Number.POSITIVE_INFINITY : opened + 500 + after;
    at = closed + down;
    return { number: i + 1, opened, registered: opened + register, closed };
  });
}

export interface HistoryEvents {
  readonly announcements: readonly Announcement[];
  /** In the order in which the reader takes them. */
  readonly deliveries: readonly Delivery[];
}

export function eventsOf(
  history: History,
  containers: readonly HistoryContainer[],
  sessions: readonly HistorySession[],
): HistoryEvents {
  const planned = [...plannedOf(history, containers), ...spuriousOf(history, containers)];
  const drops = picks(history.drops, planned.length);
  const sent = planned.map((plan, i): [Announcement, number | null] => {
    const { received, ...fate } = fateOf(history, sessions, plan.sent, drops.has(i), i);
    return [{ ...plan, ...fate }, received];
  });
  const announcements = sent.map(([each]) => each);
  const first = sent.flatMap(([of, received]) =>
    received === null ? [] : [{ of, session: of.session, received }],
  );
  const all = [
    ...first,
    ...copiesOf(history, sessions, announcements),
    ...replaysOf(history, sessions, announcements),
  ];
  const deliveries = all.filter(({ received }) => received < HORIZON).sort((a, b) => a.received - b.received);
  return { announcements, deliveries };
}

type PlannedAnnouncement = Omit<Announcement, 'fate' | 'session'>;

const picks = (numbers: readonly number[], length: number) => new Set(numbers.map((n) => n % length));

function plannedOf(history: History, containers: readonly HistoryContainer[]): PlannedAnnouncement[] {
  const due = containers.flatMap((container) =>
    EVENT_TYPES.flatMap((type) => {
      const happened = container.at[type];
      return happened === null || !announces(container, type, history.runtime)
        ? []
        : [{ container, type, happened }];
    }),
  );
  const digests = picks(history.digests, due.length);
  const swaps = picks(history.swaps, containers.length);
  const waits = new Map(history.waits.map((wait) => [wait.which % due.length, wait]));
  return due.map(({ container, type, happened }, i): PlannedAnnouncement => {
    const at = type === 'DELETED' ? happened - container.lead : happened;
    const wait = waits.get(i);
    const swapped = type === 'STARTED' && swaps.has(containers.indexOf(container)) ? swapOf(container) : 0;
    const sent = at + 1 + (wait?.ms ?? swapped);
    const built = builtAt(container, type, at, wait?.builtLate === false ? at + 1 : sent);
    return { container, type, happened, built, sent, digest: digests.has(i) };
  });
}

/** In 4 of 17 STOPPED of iSulad the container's own status still says RUNNING. */
export const isShownRunning = (
  { runtime, salt }: History,
  { container, type, sent }: Pick<Announcement, 'container' | 'type' | 'sent'>,
): boolean => runtime === 'isulad' && type === 'STOPPED' && !container.isSandbox && (salt + sent) % 17 < 4;

/**
 * A runtime that announces the end of a failed start also sends its status, which it collects while there is one. CRI-O may have
 * removed the container by then.
 */
const builtAt = (
  { failed, isSandbox }: HistoryContainer,
  type: EventType,
  at: number,
  usual: number,
): number => (failed !== null && failed !== 'later' && !isSandbox && type === 'STOPPED' ? at : usual);

/** How long a STARTED waits to be sent after the STOPPED. */
function swapOf({ at }: HistoryContainer): number {
  const ran = (at.STOPPED ?? 0) - (at.STARTED ?? 0);
  return at.STARTED !== null && ran < MISSED_AFTER / 2 ? ran + 5 : 0;
}

function announces(container: HistoryContainer, type: EventType, runtime: HistoryRuntime): boolean {
  const { isSandbox, restoredSilently, stopsSilently, removedSilently, failed } = container;
  if (failed !== null && (isSandbox || type === 'STOPPED')) return announcesFailure(container, type, runtime);
  if (restoredSilently.includes(type)) return false;
  if ((stopsSilently && type === 'STOPPED') || (removedSilently && type === 'DELETED')) return false;
  if (!isSandbox || isContainerd(runtime)) return true;
  return runtime === 'crio' ? type === 'STARTED' || type === 'STOPPED' : type !== 'STARTED';
}

function announcesFailure(
  { isSandbox, failureAnnounced }: HistoryContainer,
  type: EventType,
  runtime: HistoryRuntime,
): boolean {
  if (!isSandbox) return failureAnnounced;
  return (type === 'DELETED' && failureAnnounced) || (type === 'CREATED' && runtime === 'isulad');
}

/** Events of what has not happened by then. */
function spuriousOf({ spurious }: History, containers: readonly HistoryContainer[]): PlannedAnnouncement[] {
  return spurious.flatMap(({ which, type: number, at }): PlannedAnnouncement[] => {
    const container = containers[which % containers.length];
    const type = EVENT_TYPES[number];
    if (container === undefined || type === undefined) return [];
    const { CREATED, [type]: happens } = container.at;
    const already = CREATED === null || at < CREATED || (happens !== null && at >= happens);
    const gone = container.at.DELETED !== null && at >= container.at.DELETED;
    // Unknown for what never ran, or has not started and is shown as ended.
    const isSilent =
      container.failed !== null || (isListedEarly(container) && at < (container.at.STARTED ?? 0));
    return already || gone || isSilent
      ? []
      : [{ container, type, happened: null, built: at, sent: at, digest: false }];
  });
}

function copiesOf(
  history: History,
  sessions: readonly HistorySession[],
  announcements: readonly Announcement[],
): Delivery[] {
  return history.copies.flatMap(({ which, after }): Delivery[] => {
    const of = announcements[which % announcements.length];
    if (of === undefined || of.fate !== 'delivered') return [];
    const { fate, session, received } = fateOf(history, sessions, of.sent + after, false, which);
    return fate === 'delivered' && received !== null ? [{ of, session, received }] : [];
  });
}

/** The last events before a session are replayed to it. */
function replaysOf(
  history: History,
  sessions: readonly HistorySession[],
  announcements: readonly Announcement[],
): Delivery[] {
  if (history.replay === 0) return [];
  return sessions.flatMap(({ number, registered, closed }) => {
    const before = announcements.filter(({ sent }) => sent < registered).sort((a, b) => a.sent - b.sent);
    const received = readAt(history, registered);
    const again = received < closed && !isSilentSession(history, number) ? before.slice(-history.replay) : [];
    return again.map((of): Delivery => ({ of, session: number, received }));
  });
}

const isSilentSession = ({ silentSession }: History, session: number): boolean =>
  silentSession + 1 === session;

function fateOf(
  history: History,
  sessions: readonly HistorySession[],
  sent: number,
  dropped: boolean,
  number: number,
): Pick<Announcement, 'fate' | 'session'> & { readonly received: number | null } {
  const session = sessions.find(({ registered, closed }) => sent >= registered && sent < closed);
  if (session !== undefined && (dropped || isSilentSession(history, session.number))) {
    return { fate: 'dropped', session: session.number, received: null };
  }
  const next = session ?? sessions.find(({ registered, closed }) => registered > sent && registered < closed);
  const queued = history.backlog && number % 3 !== 0;
  const unsubscribed =
    session === undefined && (!queued || (next !== undefined && isSilentSession(history, next.number)));
  if (next === undefined || unsubscribed) return { fate: 'unsubscribed', session: 0, received: null };
  const received = readAt(history, Math.max(sent, next.registered) + (number % 4));
  if (received >= next.closed) return { fate: 'lost', session: next.number, received: null };
  return { fate: 'delivered', session: next.number, received };
}

/** A stalled reader takes what came when it goes on. */
const readAt = ({ readerStalls }: History, at: number): number =>
  readerStalls.reduce(
    (read, { at: from, for: length }) => (read >= from && read < from + length ? from + length : read),
    at,
  );

/** Whether one delivery is of a later stage than another. */
export const isLater = (one: Delivery, other: Delivery): boolean =>
  stageOfType(one.of.type) > stageOfType(other.of.type);
