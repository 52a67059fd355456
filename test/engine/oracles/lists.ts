/*
 * What lists alone say.
 *
 * Regressions: told once for each time that a list shows an id running and the last one that showed it, UNKNOWN aside,
 *   showed it exited; neither more nor less.
 * Unannounced: not wrong where the runtime never sends that type of such an id, or the start of that container failed, and
 *   its end was not announced; told once. Not overlooked: a failed start of a plain container whose `created` and `exited`
 *   two whole lists in a row show, with every question answered while it is still there, and all watched until the time to
 *   confirm is over. That begins with the answer, and not with the list: only the answer says that it ended without a run.
 * Silent stream: not wrong where the session had heard nothing by then.
 */
import { CONFIRM } from '../histories/history.ts';
import { handedAt, type Said } from '../histories/playing.ts';
import type { Subject } from '../histories/subjects.ts';
import type { Truth } from '../histories/truth.ts';
import {
  compared,
  isPlain,
  isWatched,
  nameOf,
  type Oracle,
  pairsOf,
  SLACK,
  type Story,
  saidOf,
  shownBy,
  subjectOf,
} from './story.ts';

export const regression: Oracle = (story) => {
  const told = saidOf(story, 'regression').map(({ finding }) => String(finding.containerId));
  const due = story.truth.subjects.flatMap((subject) => {
    const shown = story.truth.lists.map((list) => shownBy(list, subject));
    const known = shown.filter((state) => state !== 'unknown' && state !== 'absent');
    return known.flatMap((state, i) => (state === 'running' && known[i - 1] === 'exited' ? subject.id : []));
  });
  const same = JSON.stringify([...told].sort()) === JSON.stringify([...due].sort());
  return { wrong: same ? [] : [`told of ${told}, due of ${due}`], overlooked: [], clear: due.length };
};

export const unannounced: Oracle = (story) => {
  const { truth } = story;
  const told = saidOf(story, 'unannounced');
  const twice = told.filter((said, i) => told.findIndex((each) => nameOf(each) === nameOf(said)) < i);
  const wrong = [...told.filter((said) => !isBlindSpot(story, said)), ...twice];
  const due = truth.subjects.filter((subject) => failedInSight(truth, subject));
  return compared(
    wrong.map(nameOf),
    due.map(({ id }) => `${id} STOPPED`),
    told.map(nameOf),
  );
};

function isBlindSpot(story: Story, said: Said): boolean {
  const { truth } = story;
  const subject = subjectOf(story, said);
  const { eventType: type, cause } = said.finding;
  if (subject === undefined || type === null || subject.at[type] === null) return false;
  if (cause === 'never_sent') {
    return truth.history.crio && subject.isSandbox && (type === 'CREATED' || type === 'DELETED');
  }
  const came = truth.deliveries.some(
    (each) => `${each.of.subject.id} ${each.of.type}` === nameOf(said) && handedAt(truth, each) < said.turn,
  );
  return type === 'STOPPED' && subject.failed !== null && !came;
}

function failedInSight(truth: Truth, subject: Subject): boolean {
  const { history } = truth;
  const silent = subject.failed !== null && !subject.failureTold && !subject.isSandbox;
  if (!silent || !isPlain(truth, subject)) return false;
  if (history.steps.length > 0 || history.answers.some(({ lost }) => lost)) return false;
  const slowest = Math.max(...history.answers.map(({ lag }) => lag));
  return pairsOf(truth).some(([before, after]) => {
    const answered = after.compared + slowest;
    return (
      (shownBy(before, subject) === 'created' || shownBy(before, subject) === 'absent') &&
      shownBy(after, subject) === 'exited' &&
      (subject.at.DELETED ?? 0) > answered &&
      isWatched(truth, before.sandboxes.start, answered + CONFIRM + SLACK)
    );
  });
}

export const silentStream: Oracle = (story) => {
  const { truth } = story;
  const told = saidOf(story, 'silent_stream');
  const wrong = told.filter(({ turn }) => {
    const session = truth.sessions.find(
      ({ opened, closed }) => turn >= opened && turn <= closed + truth.history.pipe,
    );
    return truth.deliveries.some((each) => each.session === session?.number && handedAt(truth, each) < turn);
  });
  return { wrong: wrong.map(({ turn }) => `at ${turn}`), overlooked: [], clear: told.length };
};
