/*
 * No drop is left out: each dropped event that lists or later events show, and that was said to be decided, has a finding, or happened
 * or was sent within a gap. Such evidence of a plain id, whatever disturbed us meanwhile, is of
 *
 *   CREATED   if a list shows it, a sandbox running: what was never up may have failed
 *   STARTED   if a list shows it running
 *   STOPPED   if a list shows it exited after another showed it running; or if a later list lacks it
 *   DELETED   if a list shows it, and a later one lacks it; on CRI-O, which removes what failed to start, if a list shows it running
 */
import type { EventType } from '../../../src/protocol/record.ts';
import type { Announcement } from '../histories/announcements.ts';
import type { GroundTruth } from '../histories/groundTruth.ts';
import { HORIZON, MISSED_AFTER } from '../histories/history.ts';
import { wasDropped } from './missed.ts';
import { callOf, type HistoryRun, isFresh, isPlain, nameOf, type Oracle, shownBy } from './oracle.ts';

export const drops: Oracle = (run) => {
  const { truth, outcome } = run;
  const reported = new Set(
    outcome.reported
      .filter(({ finding: { findingId, kind } }) => DECISIONS.has(kind) && !outcome.resolved.has(findingId))
      .map(nameOf),
  );
  const gaps = gapsOf(run);
  const shown = truth.announcements.filter((each) => wasDropped(truth, each) && isShown(run, each));
  const overlooked = shown.filter((each) => {
    const { from, to } = spanOf(each);
    if (outcome.pending > 0 && cameLate(truth, each)) return false;
    return !reported.has(nameOfEvent(each)) && !gaps.some((gap) => gap.from <= to && gap.to >= from);
  });
  return { wrong: [], overlooked: overlooked.map(nameOfEvent), clear: shown.length };
};

const DECISIONS: ReadonlySet<string> = new Set(['missed', 'unobservable']);

const nameOfEvent = ({ container, type }: Announcement): string => `${container.id} ${type}`;

/** From when it happened to when it was sent: the removal of a sandbox is announced before it. */
function spanOf({ happened, sent }: Announcement): { readonly from: number; readonly to: number } {
  return { from: Math.min(sent, happened ?? sent), to: Math.max(sent, happened ?? sent) };
}

function gapsOf({ truth, outcome }: HistoryRun): { readonly from: number; readonly to: number }[] {
  const ofStream = outcome.streamGaps.map(({ from, to }) => ({ from: from / 1000, to: to / 1000 }));
  const unproven = truth.sessions.map(({ number, closed }, i) => {
    const first = truth.deliveries.find(({ session, received }) => session === number && received < closed);
    return { from: truth.sessions[i - 1]?.closed ?? 0, to: Math.min(first?.received ?? closed, HORIZON) };
  });
  const declared = outcome.emissions.flatMap(({ record }) =>
    record.type === 'gap' && record.to !== null ? [{ from: record.from / 1000, to: record.to / 1000 }] : [],
  );
  return [...ofStream, ...unproven, ...declared];
}

/** Whether an event of its id came so late that what it proved may still be pending. */
const cameLate = ({ deliveries }: GroundTruth, { container }: Announcement): boolean =>
  deliveries.some(
    ({ of, received }) => of.container.id === container.id && received > HORIZON - 4 * MISSED_AFTER,
  );

function isShown({ truth, outcome }: HistoryRun, event: Announcement): boolean {
  const { container, type, happened } = event;
  const until = outcome.decidedUntil / 1000;
  if (happened === null || spanOf(event).to >= until || !isPlain(truth, container)) return false;
  const sightings = truth.lists
    .filter((list) => list.whole && callOf(list, container).end <= until)
    .map((list) => shownBy(list, container));
  const first = (...states: readonly string[]) => sightings.findIndex((state) => states.includes(state));
  const listed = first('created', 'running', 'exited');
  const ran = first('running');
  const lacks = sightings.findLastIndex((state) => state !== 'absent') + 1 < sightings.length;
  const isGone = listed !== -1 && lacks;
  const byType: Readonly<Record<EventType, boolean>> = {
    CREATED: listed !== -1 && container.failed === null && (!container.isSandbox || ran !== -1),
    STARTED: ran !== -1,
    STOPPED: ran !== -1 && (first('exited') > ran || (isGone && isRemovalFresh(truth, event))),
    DELETED: isGone && container.failed === null && (ran !== -1 || truth.history.runtime !== 'crio'),
  };
  return byType[type];
}

/** A DELETED that came was live: a replayed one shows nothing of an end before the session. */
function isRemovalFresh(truth: GroundTruth, { container }: Announcement): boolean {
  const came = truth.deliveries.filter(({ of }) => of.container.id === container.id && of.type === 'DELETED');
  return came.length === 0 || came.some((each) => isFresh(truth, each));
}
