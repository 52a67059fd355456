/*
 * No kubelet is accused falsely. A change that is reported late had happened by the end of its window, and the kubelet's status did not show it until
 * it was asked, nor had the pod begun to terminate, ended, or got a later container of that name; the watch had been there from before it happened
 * until then.
 *
 * No clear lag is overlooked. It is clear that a stage of a plain container is late if two lists in a row prove it, the watch was there
 * from before the first of them, every question is answered, and the status still does not show it, and lists still show the
 * container, well after it can be judged; and there is no other container of its name.
 *
 * Lags are counted as the watch brought them. Each bucket has no fewer than the clear ones, and no more than the possible ones.
 *
 * A miss says only true things of the kubelet.
 */
import { KUBELET_LAG_BOUNDS_MS, type RecordOf } from '../../../src/protocol/record.ts';
import type { ReportedFinding } from '../histories/comparisonRun.ts';
import type { HistoryContainer } from '../histories/containers.ts';
import type { GroundTruth } from '../histories/groundTruth.ts';
import { HORIZON, KUBELET_LATE_AFTER } from '../histories/history.ts';
import { firstShownAt, replacedAt, terminatingAt } from '../histories/kubelet.ts';
import {
  callOf,
  compared,
  containerOf,
  findingsOf,
  type HistoryRun,
  isFresh,
  isPlain,
  nameOf,
  type Oracle,
  type OracleResult,
  shownBy,
  unnoticedClockSteps,
} from './oracle.ts';

type ShownType = 'STARTED' | 'STOPPED';
const TYPES: readonly ShownType[] = ['STARTED', 'STOPPED'];

/** An answer comes within this, and so does the verdict on it. */
const ANSWERED = 1_500;
const SETTLED = 3_500;
/** The wall clock may have moved this far without being noticed. */
const CLOCK_ERROR = 501;

export const kubeletLate: Oracle = (run) => {
  const { truth } = run;
  const late = findingsOf(run, 'kubelet_late');
  const wrong = late.filter((reported) => !isTrulyLate(run, reported)).map(nameOf);
  const due = transitionsOf(truth).filter((each) => isClearlyLate(truth, each));
  return compared(
    [...wrong, ...falselyResolved(run, late)],
    due.map(({ container, type }) => `${container.id} ${type}`),
    late.map(nameOf),
  );
};

interface Transition {
  readonly container: HistoryContainer;
  readonly type: ShownType;
  readonly happened: number;
}

const transitionsOf = ({ containers }: GroundTruth): Transition[] =>
  containers.flatMap((container) =>
    container.isSandbox || container.failed !== null
      ? []
      : TYPES.flatMap((type) => {
          const happened = container.at[type];
          return happened === null ? [] : [{ container, type, happened }];
        }),
  );

function transitionOf(run: HistoryRun, reported: ReportedFinding): Transition | null {
  const container = containerOf(run, reported);
  const { eventType } = reported.finding;
  if (container === undefined || container.failed !== null || container.isSandbox) return null;
  if (eventType !== 'STARTED' && eventType !== 'STOPPED') return null;
  const happened = container.at[eventType];
  return happened === null ? null : { container, type: eventType, happened };
}

/** When the kubelet's status had shown it, or something that means that the kubelet knew of it, from a moment on. */
function knownAt(
  { kubelet, containers }: GroundTruth,
  { container, type }: Transition,
  from: number,
): number {
  // For a container whose state the runtime does not know, a status takes back what it showed.
  if (container.wrongViews.some(({ shown }) => shown === 'unknown')) return Number.POSITIVE_INFINITY;
  const replaced = replacedAt(kubelet, containers, container, from);
  return Math.min(firstShownAt(kubelet, container, type, from), replaced);
}

/**
 * Since when the kubelet can have known of what is reported late. A change that the runtime hides, or goes on to show as running, has not happened
 * for the kubelet either, and a status of the kubelet takes back what it showed before. An answer may be of any moment until
 * it came.
 */
function changedAt(
  { container, happened }: Transition,
  { finding: { window, proof } }: ReportedFinding,
): number {
  const misled = container.wrongViews.filter(({ shown }) => shown !== 'unknown');
  if (misled.length === 0) return happened;
  const answered = Number(proof['answered']) / 1000;
  const ends = misled.filter(({ from }) => from <= answered).map(({ to }) => Math.min(to, answered));
  return Math.max(happened, (window?.from ?? 0) / 1000, ...ends);
}

function isTrulyLate(run: HistoryRun, reported: ReportedFinding): boolean {
  const { truth } = run;
  const transition = transitionOf(run, reported);
  const { window, lateness, proof } = reported.finding;
  if (transition === null || window === null) return false;
  const asked = Number(proof['asked']) / 1000;
  const to = window.to / 1000;
  const { podUid } = transition.container.object;
  const from = changedAt(transition, reported);
  const isWatched = truth.kubelet.watches.some(
    ({ synced, closed }) => synced <= from && closed > Number(proof['answered']) / 1000,
  );
  return (
    transition.happened <= to &&
    truth.kubelet.pods.some((pod) => pod.podUid === podUid) &&
    knownAt(truth, transition, from) > asked &&
    terminatingAt(truth.kubelet, podUid) > asked &&
    isWatched &&
    asked - to >= KUBELET_LATE_AFTER &&
    lateness === Math.round((asked - to) * 1000)
  );
}

/** Resolved before the kubelet knew. */
function falselyResolved(run: HistoryRun, late: readonly ReportedFinding[]): string[] {
  return late.flatMap((reported) => {
    const at = run.outcome.resolved.get(reported.finding.findingId);
    const transition = transitionOf(run, reported);
    const goesBack = transition?.container.wrongViews.some(({ shown }) => shown === 'running') ?? false;
    if (at === undefined || transition === null || goesBack) return [];
    const known = knownAt(run.truth, transition, changedAt(transition, reported));
    return known === Number.POSITIVE_INFINITY || at >= known ? [] : [`${nameOf(reported)} resolved`];
  });
}

function isClearlyLate(truth: GroundTruth, transition: Transition): boolean {
  const { history, kubelet, lists } = truth;
  const { container, type } = transition;
  const { podUid } = container.object;
  const isOnlyOne = !truth.containers.some(
    ({ id, object }) =>
      id !== container.id && object.podUid === podUid && object.container === container.object.container,
  );
  const pod = kubelet.pods.find((each) => each.podUid === podUid);
  if (!isOnlyOne || pod === undefined || !isPlain(truth, container)) return false;
  if (history.clockSteps.length > 0 || history.kubelet.answers.some(({ lost }) => lost)) return false;
  const at = lists.findIndex((list) => proves(type, shownBy(list, container)));
  const [before, after] = [lists[at - 1], lists[at]];
  if (before === undefined || after === undefined || !before.whole || !after.whole) return false;
  // A run that is first shown exited is proven by its status, which comes later.
  const isShown = shownBy(after, container) === (type === 'STARTED' ? 'running' : 'exited');
  if (!isShown || !precedes(type, shownBy(before, container))) return false;
  const answered = callOf(after, container).end + KUBELET_LATE_AFTER + ANSWERED;
  const confirmed = lists.find(({ sandboxes, whole }) => whole && sandboxes.start > answered);
  if (confirmed === undefined) return false;
  const until = confirmed.compared + SETTLED;
  const stays = lists
    .filter((list) => list.compared > after.compared && list.sandboxes.start <= until)
    .every((list) => list.whole && ['running', 'exited'].includes(shownBy(list, container)));
  const watch = kubelet.watches.find(
    ({ synced, closed }) =>
      synced + CLOCK_ERROR < Math.min(before.sandboxes.start, transition.happened) && closed > until,
  );
  // A kubelet that was restarted may have an old status again, and then it does not say that what it has shown to run still does.
  const isOldAgain =
    watch !== undefined &&
    history.kubelet.watches.some(({ restarts }) => restarts) &&
    type === 'STOPPED' &&
    firstShownAt(kubelet, container, 'STARTED') < watch.opened;
  // A status may prove it before the list does.
  const reported = kubelet.sights.some(
    ({ received, sight }) =>
      sight.is === 'pod' && sight.pod.podUid === podUid && received <= transition.happened,
  );
  // The verdict waits for some time after a stall.
  const isStalled = history.streamGaps.some((ms) => ms > callOf(after, container).end && ms <= until);
  const isUnknown = firstShownAt(kubelet, container, type) > until && terminatingAt(kubelet, podUid) > until;
  const isWatched = watch !== undefined && !isOldAgain && reported && !isStalled;
  return stays && isWatched && isUnknown && until < HORIZON;
}

const proves = (type: ShownType, shown: string): boolean =>
  shown === 'exited' || (type === 'STARTED' && shown === 'running');

const precedes = (type: ShownType, shown: string): boolean =>
  type === 'STARTED' ? shown === 'absent' || shown === 'created' : shown === 'running';

// Counts.

export const kubeletLag: Oracle = (run) => {
  const { truth, outcome } = run;
  const results = TYPES.map((type): OracleResult => {
    const transitions = transitionsOf(truth).filter((each) => each.type === type);
    const lags = transitions.flatMap((each) => lagsOf(truth, each));
    const clear = lags.filter((each) => each.isClear);
    const counted = type === 'STARTED' ? outcome.kubeletLag.starts : outcome.kubeletLag.stops;
    const sum = counted.reduce((total, count) => total + count, 0);
    // Where the clock was stepped a lag may be counted in another bucket.
    if (truth.history.clockSteps.length > 0) {
      const isTooMany = sum > lags.length;
      return { wrong: isTooMany ? [`${type}: ${sum} counted`] : [], overlooked: [], clear: 0 };
    }
    const buckets = [...KUBELET_LAG_BOUNDS_MS, Number.POSITIVE_INFINITY].map((_, bucket) => ({
      name: `${type} bucket ${bucket}`,
      is: counted[bucket] ?? 0,
      atLeast: clear.filter(({ ms }) => bucketOf(ms) === bucket).length,
      atMost: lags.filter(({ ms }) => bucketOf(ms) === bucket).length,
    }));
    return {
      wrong: buckets.flatMap(({ name, is, atMost }) => (is > atMost ? [`${name}: ${is} of ${atMost}`] : [])),
      overlooked: buckets.flatMap(({ name, is, atLeast }) =>
        is < atLeast ? [`${name}: ${is} of ${atLeast}`] : [],
      ),
      clear: clear.length,
    };
  });
  return {
    wrong: results.flatMap(({ wrong }) => wrong),
    overlooked: results.flatMap(({ overlooked }) => overlooked),
    clear: results.reduce((total, { clear }) => total + clear, 0),
  };
};

function bucketOf(ms: number): number {
  const bucket = KUBELET_LAG_BOUNDS_MS.findIndex((bound) => ms <= bound);
  return bucket === -1 ? KUBELET_LAG_BOUNDS_MS.length : bucket;
}

interface Lag {
  readonly ms: number;
  readonly isClear: boolean;
}

/** The lags of a stage that may be counted: the time until the first message that showed it. */
function lagsOf(truth: GroundTruth, transition: Transition): Lag[] {
  const { history, kubelet } = truth;
  const { container, type, happened } = transition;
  // It is dated by when it was noticed.
  if (type === 'STOPPED' && history.runtime === 'isulad') return [];
  const showing = kubelet.sights.filter(({ sight }) => shows(sight, container, type));
  const [first] = showing;
  if (first === undefined) return [];
  // The end of a pod shows the end of what has been named, if only in an answer; a message that is overtaken by it may name more.
  const isNamed = isNamedBy(kubelet, container, first.received);
  const next = isNamed ? undefined : showing.find(({ sight }) => sight.is === 'pod');
  return [first, next].flatMap((each) => {
    if (each === undefined) return [];
    const ms = Math.max(0, each.received - happened);
    return [{ ms, isClear: isNamed && isClearlyCounted(truth, transition, each.received) }];
  });
}

const isNamedBy = ({ sights }: GroundTruth['kubelet'], { id }: HistoryContainer, at: number): boolean =>
  sights.some(
    ({ received, sight }) =>
      received <= at && sight.is === 'pod' && sight.pod.containers.some((each) => each.id === id),
  );

function shows(
  sight: GroundTruth['kubelet']['sights'][number]['sight'],
  { id, object }: HistoryContainer,
  type: ShownType,
): boolean {
  if (sight.is === 'removed') return sight.podUid === object.podUid;
  if (sight.is !== 'pod') return false;
  return sight.pod.containers.some(
    (each) =>
      each.id === id && (each.state === 'terminated' || (each.state === 'running' && type === 'STARTED')),
  );
}

function isClearlyCounted(
  truth: GroundTruth,
  { container, type, happened }: Transition,
  received: number,
): boolean {
  const { deliveries, history, kubelet } = truth;
  const event = deliveries.find(({ of }) => of.container.id === container.id && of.type === type);
  // A message that is much later than the change may come after an answer.
  const isPrompt = received >= happened && received < happened + KUBELET_LATE_AFTER;
  if (event === undefined || event.of.digest || !isFresh(truth, event) || !isPlain(truth, container))
    return false;
  // The status that the event carries was made while the container was there.
  const isDated = event.of.built < (container.at.DELETED ?? HORIZON) && history.runtime !== 'isulad';
  const isInTime = event.received >= happened && event.received < received + 10_000;
  const isWatched = kubelet.watches.some(
    ({ synced, closed }) =>
      synced + CLOCK_ERROR < happened && closed > Math.max(received, event.received) + 1_000,
  );
  const isStalled = history.streamGaps.some(
    (at) => at >= happened && at <= Math.max(received, event.received) + 1_500,
  );
  const isTerminating = terminatingAt(kubelet, container.object.podUid) <= received;
  const isEarly = Math.max(received, event.received) < HORIZON - 1_000;
  return isPrompt && isDated && isInTime && isWatched && !isStalled && !isTerminating && isEarly;
}

// Misses.

export const kubeletOfMisses: Oracle = (run) => {
  const { truth } = run;
  const misses = findingsOf(run, 'missed').flatMap((reported) => {
    const transition = transitionOf(run, reported);
    return transition === null || !isPlain(truth, transition.container) ? [] : [{ reported, transition }];
  });
  const wrong = misses.filter(
    ({ reported, transition }) => !saysTheTruth(truth, reported.finding, transition),
  );
  const sure = misses.filter(({ reported }) => statementOf(reported.finding)['is'] !== 'not_observed');
  return { wrong: wrong.map(({ reported }) => nameOf(reported)), overlooked: [], clear: sure.length };
};

const statementOf = ({ proof }: RecordOf<'finding'>): Readonly<Record<string, unknown>> =>
  Object(proof['kubelet']);

function saysTheTruth(truth: GroundTruth, finding: RecordOf<'finding'>, transition: Transition): boolean {
  const { is, atLeast, atMost, until } = statementOf(finding);
  const shown = firstShownAt(truth.kubelet, transition.container, transition.type);
  if (is === 'not_shown') return shown > Number(until) / 1000;
  if (is !== 'shown') return is === 'not_observed';
  const lag = shown - transition.happened;
  return lag >= Number(atLeast) / 1000 && lag <= Number(atMost) / 1000 + unnoticedClockSteps(truth);
}
