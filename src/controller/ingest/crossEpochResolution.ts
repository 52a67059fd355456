/*
 * Misses that an event of another life of the same agent takes back. A life resolves its own misses, as long as it lives; what it
 * accused before it died, only the store can compare with what the next one hears.
 *
 *   event, then miss   the older life's backlog arrives late: the misses of a batch are held against stored events
 *   miss, then event   the events of a batch are held against stored misses
 *
 * The rule is in findMissesResolvedByEvents.sql. What it finds becomes a record like the one an agent would have written.
 *
 * Two batches of one node can be on their way into the store at once, and neither sees what the other has not committed. So the
 * caller holds the row of the node: whoever comes second waits for it, and looks after that.
 */
import { EVENT_TYPES, type EventType, type RecordOf } from '../../protocol/record.ts';
import { bare } from '../store/array.ts';
import type { Runner } from '../store/store.ts';
import { dayOf, ofKind, type Placed } from './recordValidation.ts';
import type { Place } from './recordWriters.ts';
import findEventsResolvingMisses from './sql/findEventsResolvingMisses.sql';
import findMissesResolvedByEvents from './sql/findMissesResolvedByEvents.sql';

type Found = { finding_id: string; at: string };

/** What the records of a batch that are stored now resolve: each finding once, at the receipt of its event. */
export async function resolvedByOthers(
  runner: Runner,
  place: Place,
  stored: readonly Placed[],
  retentionDays: number,
): Promise<Placed[]> {
  const found = [
    ...(await missedEarlier(runner, place, ofKind(stored, 'container_event'), retentionDays)),
    ...(await announcedLater(runner, place, ofKind(stored, 'finding'))),
  ];
  return found.map(({ finding_id: finding, at }) => ({
    // It stands for no record of this life.
    seq: 0,
    at: Number(at),
    record: { type: 'finding_resolved', t: Number(at) - place.base, findingId: finding, what: 'resolved' },
  }));
}

async function missedEarlier(
  runner: Runner,
  place: Place,
  events: readonly Placed<'container_event'>[],
  retentionDays: number,
): Promise<Found[]> {
  const named = events.flatMap(({ at, record }) => {
    const type = EVENT_TYPES[record.eventType];
    return type === undefined ? [] : [{ at, id: record.containerId, type }];
  });
  if (named.length === 0) return [];
  // Events are kept for so long: a miss from before that could not be held against them in the other order either.
  const firstDay = dayOf(Math.min(...named.map(({ at }) => at))) - retentionDays;
  const { rows } = await runner.run<Found>({ name: 'missed_before', text: findMissesResolvedByEvents }, [
    place.nodeId,
    place.epoch,
    firstDay,
    named.map(({ id }) => id),
    bare(named.map(({ type }) => type)),
    bare(named.map(({ at }) => at)),
  ]);
  return rows;
}

async function announcedLater(
  runner: Runner,
  place: Place,
  findings: readonly Placed<'finding'>[],
): Promise<Found[]> {
  const missed = findings.flatMap(({ at, record }) => accusation(place, at, record) ?? []);
  if (missed.length === 0) return [];
  const earliest = Math.min(...missed.map(({ to }) => to));
  // Planned anew each time: how much there is to read differs by far.
  const { rows } = await runner.run<Found>({ text: findEventsResolvingMisses }, [
    place.nodeId,
    place.epoch,
    missed.map(({ finding }) => finding),
    bare(missed.map(({ id }) => place.keyOf(id))),
    bare(missed.map(({ type }) => EVENT_TYPES.indexOf(type))),
    bare(missed.map(({ to }) => to)),
    earliest,
    dayOf(earliest),
  ]);
  return rows;
}

interface Accusation {
  readonly finding: string;
  readonly id: string;
  readonly type: EventType;
  readonly to: number;
}

/** Null for a finding that is no miss of an event of an id. */
function accusation(place: Place, at: number, record: RecordOf<'finding'>): Accusation | null {
  const { kind: verdict, findingId: finding, containerId: id, eventType: type, window } = record;
  if (verdict !== 'missed' || id === null || type === null) return null;
  return { finding, id, type, to: window === null ? at : place.base + window.to };
}
