/*
 * The rules of the comparison (src/agent/compare) and the facts about versions that it rests on, each broken in one place. The name of a mutant says what it does instead.
 *
 * A mutant that no test can notice says why it survives; any other that is not noticed shows that a test is missing.
 */
import type { Edit } from '../../support/brokenTree.ts';

export interface Mutant {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** Why no test notices it. */
  readonly survives?: string;
}

type Replacement = readonly [from: string, to: string];

/** By file: the name of each mutant and what it replaces. */
const SINGLE_EDITS: Readonly<Record<string, Readonly<Record<string, Replacement>>>> = {
  '../../platform/tokenBucket.ts': {
    'the limit of overdue reports is never renewed': [
      'mono(Math.max(this.#fullAt, now) + this.#interval)',
      'mono(Number.POSITIVE_INFINITY)',
    ],
  },
  '../../protocol/fallback.ts': {
    'pods of a kubelet 1.30 do not stay wrong': [
      'const FIRST_WITH_RIGHT_TIMES = 32;',
      'const FIRST_WITH_RIGHT_TIMES = 30;',
    ],
    'a kubelet 1.37 fills its pod cache from events': [
      'export const FIRST_WITH_HINTS = 37;',
      'export const FIRST_WITH_HINTS = 38;',
    ],
  },
  '../observe/kubelet/modeInference.ts': {
    'a kubelet gives up at the fourth error': [
      'export const LAST_ERROR = 5;',
      'export const LAST_ERROR = 4;',
    ],
  },
  '../../cri/profiles.ts': {
    'containerd 1.7 gives every subscriber every event': [
      "name: 'containerd-1.7',\n    subscription: 'steals',",
      "name: 'containerd-1.7',\n    subscription: 'safe',",
    ],
    'containerd 2 does not announce the end of a sandbox': [
      "name: 'containerd-2',\n  sandboxEvents: ALL,",
      "name: 'containerd-2',\n  sandboxEvents: ['CREATED', 'STARTED', 'DELETED'],",
    ],
    'containerd 2.4 has no streaming lists': [
      'failedStartsMayBeUnknown: true,\n  streamingLists: true,',
      'failedStartsMayBeUnknown: true,\n  streamingLists: false,',
    ],
  },
  'absences.ts': {
    'a sandbox that is gone was announced as stopped where its removal is not': [
      'if (isSandbox && stages.ran && !announcesSandboxRemoval)',
      'if (false as boolean)',
    ],
    'the end of what a DELETED announced before its id was known is left out': [
      "expectations.endNotShown(container, { to: end, evidence: 'no longer listed' });",
      '',
    ],
    'a DELETED proves the end of what never ran': [
      'if (deleted === null || !stages.ran) return;',
      'if (deleted === null) return;',
    ],
    'a DELETED that came before anything showed a run proves no end': [
      'if (!older) this.#proveStopped(container, answer);',
      '',
    ],
    'an answer that is older than an event proves that the id is gone': [
      'const older = events.last !== null && answer.start <= events.last;',
      'const older = false;',
    ],
    'a sandbox is never announced gone before it leaves the list': [
      'lists.isListed ? expectations.profile.lead : 0;',
      'lists.isListed ? 0 : 0;',
    ],
    'a sandbox can be announced gone before its creation': [
      'mono(Math.max(bound.from - lead, created))',
      'mono(bound.from - lead)',
    ],
    'a list that lacks an id does not show its stages passed': [
      'if (lists.isListed) lists.recordPassedBefore(DELETED, answer);',
      '',
    ],
    'a list that lacks an id that none ever showed shows its stages passed': [
      'if (lists.isListed) lists.recordPassedBefore(DELETED, answer);',
      'lists.recordPassedBefore(DELETED, answer);',
    ],
    'what an event showed after the list that lacks it is settled as gone': [
      'if (events.last !== null && events.last >= answer.start) return false;',
      '',
    ],
  },
  'decided.ts': {
    'the end that a DELETED proved is decided before a list lacks its id': [
      "if (isEndOpen && stages.standing(STOPPED).is === 'none') undecided.push(STOPPED);",
      '',
    ],
    'what a list shows of a sandbox is decided although its DELETED may have come before': [
      'shift(this.#listed, -expectations.profile.lead)',
      'this.#listed',
    ],
    'what may have run is decided before its status says so': [' && awaitsTimes;', ' && false;'],
    'that a later stage is open decides whether it ran': [
      'if (mayHaveRun && stages',
      'if (mayHaveRun && undecided.length === 0 && stages',
    ],
    'a sandbox that never came up is undecided as long as it is remembered': [
      'const mayHaveRun = !isSandbox && lists',
      'const mayHaveRun = lists',
    ],
    'what may have run is undecided whatever its status says': [' && awaitsTimes;', ';'],
    'what an event proves is decided before another one can date it': [
      '(by === null ? until : this.#until)',
      'until',
    ],
    'what lists prove is undecided although nothing can date it': [
      '(by === null ? until : this.#until)',
      'this.#until',
    ],
    'what is due is decided': ['until = Math.min(until, from ?? (by === null ? until : this.#until));', ''],
    'what is listed is decided before the events until then were received': [
      'if (end <= drained) this.#listed = start;',
      'this.#listed = start;',
    ],
    'a list that leaves something out decides': ['if (!sandboxes.whole || !containers.whole) return;', ''],
    'the removal of what a list lacks is decided although an event came while it was made': [
      "if (isAbsent && stages.standing(DELETED).is === 'none') undecided.push(DELETED);",
      '',
    ],
    'an id is decided that lists only showed UNKNOWN': [
      "if (lists.isListed && lists.shown === null && stages.standing(CREATED).is === 'none')\n    undecided.push(CREATED);",
      '',
    ],
    'what happens to an id while a list shows it UNKNOWN is decided': [
      'if (lists.isUnknown && next !== undefined) undecided.push(next);',
      '',
    ],
    'what was decided is undecided again': ['mono(Math.max(this.#until, until))', 'mono(until)'],
  },
  'comparison.ts': {
    'a new session takes over what was due to the old one': ["    this.unsubscribed(at, 'down');\n", ''],
    'a bound that was computed from the wall clock outlives a step': [
      'if (stepped) expectations.clockStepped();',
      '',
    ],
    'time in which ids are left out is covered': [
      'coverage.tick(now, !containers.isLeavingOut);',
      'coverage.tick(now, true);',
    ],
    'an event that cannot be read does not end a starvation': [
      '    this.#parts.starvation.eventReceived(until);\n',
      '',
    ],
    'an event that cannot be read is no event': ['    this.#parts.coverage.eventLost(until);\n', ''],
    'the end of a session does not end a starvation': ['    this.#parts.starvation.sessionEnded();\n', ''],
  },
  'containerTimes.ts': {
    'what a status once said of its namespaces or its log is forgotten': [
      'times.trait ?? known?.trait',
      'times.trait',
    ],
    'a failed start is a run': [
      'this.#exact.startedNs > 0n && !this.#isOfFailedStart',
      'this.#exact.startedNs > 0n',
    ],
    'finished_at is exact, whatever the runtime': [
      'this.#isEndExact = !profile.exitsDatedWhenNoticed;',
      'this.#isEndExact = true;',
    ],
    'what has not ended is a failed start': [
      'this.#exact.finishedNs > 0n && this.#isOfFailedStart',
      'this.#isOfFailedStart',
    ],
    'a failed start on CRI-O is a run, as its end is later than its creation': [
      '(profile.failedStartsEndLater || startedNs === finishedNs)',
      'startedNs === finishedNs',
    ],
    'what started in the instant of its creation is a failed start': [
      '(profile.failedStartsEndLater || startedNs === finishedNs)',
      'true',
    ],
    'a time that was placed just before a step was seen stays': ['    this.#positions.fill(null);\n', ''],
    'a time of another clock is placed once it lies ahead no longer': ['if (!this.#foreign[i]) this', 'this'],
    'an older status makes a known time unknown': [
      'times[key] > 0n ? times[key] : (known?.[key] ?? 0n)',
      'times[key]',
    ],
    'an older status makes a known exit code unknown': [
      'times.finishedNs > 0n ? times : (known ?? times)',
      'times',
    ],
  },
  'contradictions.ts': {
    'a sandbox that is listed within the lead contradicts its DELETED': [
      'const lead = container.isSandbox ? expectations.profile.lead : millis(0);',
      'const lead = millis(0);',
    ],
    'an event that came again is retracted with the first': ['if (event.again) continue;', ''],
    'an event is spurious although its exact time confirms it': [
      'if (hadHappened(container, stage, received)) continue;',
      '',
    ],
    'a spurious event proves that the id ran': [
      "stages.ran = lists.shown === 'running' || times.proveRun;",
      '',
    ],
    'an id stays at the stage of its spurious event': ['if (shown !== null) stages.reached = shown;', ''],
    'the end of what regressed is due once its event is spurious': [
      'expectations.waive(container, stage);',
      'if (!came) expectations.waive(container, stage);',
    ],
    'the start and the end of what regressed are due': [
      'expectations.waive(container, stage);',
      'if (came) expectations.waive(container, stage);',
    ],
  },
  'coverage.ts': {
    'a stream is armed as soon as it is opened': ['armed: null,', 'armed: opened,'],
    'what lies before the arming is covered': ['from >= session.armed &&', ''],
    'an event of an older session counts': [
      'if (session?.session !== event.session) return null;',
      'if (session === null || session.session < event.session) return null;',
    ],
    'the last event of a session arms it': [
      'session.armed ??= event.received;',
      'session.armed = event.received;',
    ],
    'what lies before a stream gap is covered': ['from >= session.since\n', 'true\n'],
    'a stream gap that is reported late brings back what a later one ended': [
      'if (this.#session !== null && until > this.#session.since)',
      'if (this.#session !== null)',
    ],
    'what one session has drained is drained in another': [
      'current?.session === session && watermark',
      'current !== null && watermark',
    ],
    'the watermark can go back': [' && watermark > current.watermark', ''],
    'an event that was built before the subscription is replayed, whatever came before it': [
      'return session.replaying;',
      'return event.createdNs < session.openedNs;',
    ],
    'what may have happened before a stream was opened makes it silent': [
      'if (from === null || from < session.opened) return false;',
      '',
    ],
    'a stream that was silent stays silent': ['session.silent = false;', ''],
    'a stream that had events is silent': ['session.events > 0 || session.silent', 'session.silent'],
    'the last event of a session is its first': [
      'session.lastEvent = event.received;',
      'session.lastEvent ??= event.received;',
    ],
  },
  'duplicateContainers.ts': {
    'one list that shows two of a name running is proof': [
      '({ before, now }) => before !== null && now !== null',
      '({ now }) => now !== null',
    ],
    'what two lists show running is not compared with exact times': [
      'const to = ranUntil ?? now;',
      'const to = ranUntil;',
    ],
    'what the list before showed running has no start': [
      'const from = started ?? before;',
      'const from = started;',
    ],
    'the containers of one name are determined once': [
      'if (this.#identityVersion !== identityVersion)',
      'if (this.#identityVersion === null)',
    ],
    'a container that regressed ran all the time': [
      'const ran = !hasRegressed && !proveFailedStart;',
      'const ran = !proveFailedStart;',
    ],
    'a container that failed to start ran until its end': [
      'const ran = !hasRegressed && !proveFailedStart;',
      'const ran = !hasRegressed;',
    ],
    'any overlap of exact times proves duplicates': ['> MIN_OVERLAP', '> 0'],
    'duplicates are reported at every relist': [
      'one.duplicates.has(other.id) ? null : proofOf(one, other, running)',
      'proofOf(one, other, running)',
    ],
    'an overlap of times outlives a step': [
      'if (together === null) this',
      'if (together !== undefined) this',
    ],
  },
  'emitter.ts': {
    'a finding that rests on the wall clock outlives a step': [
      'if (stepped) undo();\n      else this',
      'this',
    ],
    'what a step took back is never reported': ['if (stepped) undo();\n      else', 'if (!stepped)'],
  },
  'eventClassifier.ts': {
    'out_of_order takes precedence over late': [
      'if (isLate(occurred, lateness, context)) {',
      "if (container.events.furthest > stage) return classified('out_of_order', 'after_a_later_stage');\n  if (isLate(occurred, lateness, context)) {",
    ],
    'stale takes precedence over out_of_order': [
      'if (container.events.furthest > stage) return',
      "if (isStale(container, context)) return classified('stale', 'after_the_list', true);\n  if (container.events.furthest > stage) return",
    ],
    'an event after its missed is late by its true time alone': [
      "if (is === 'missed') return classified('late', 'after_missed');",
      '',
    ],
    'a delay that may be our own reader’s makes an event late': [
      'if (received > shift(drained, lateAfter) && drained <= shift(occurred, lateAfter)) return false;',
      '',
    ],
    'an event is stale although the time since it was built is not covered': [' && coveredSince(built)', ''],
  },
  'eventConfirmation.ts': {
    'one list makes an event spurious': [
      'const CONTRADICTIONS_NEEDED = 2;',
      'const CONTRADICTIONS_NEEDED = 1;',
    ],
    'a list that began before an event contradicts it': ['list.start > shift(event.received, lead) && ', ''],
    'UNKNOWN contradicts any event': [
      '(shown !== null || stage === DELETED)',
      '(shown === null || shown < stage)',
    ],
    'an event that comes again while it is unconfirmed came once': ['else known.again = received;', ''],
  },
  'eventHistory.ts': {
    'a spurious event puts others out of order': [
      'this.#furthest = STAGES.findLast((each) => this.#first[each] !== null) ?? -1;',
      '',
    ],
    'an event that comes after a spurious one is a duplicate': ['this.#first[stage] = null;', ''],
  },
  'events.ts': {
    'a status that was under way when a list showed the end is about the end': [
      'container.statusAsked = answer.asked;',
      'container.statusAsked = answer.at;',
    ],
    'a query that fails is waited for': [
      'container.statusAsked = answer.asked;',
      'if (answer.found) container.statusAsked = answer.asked;',
    ],
    'a status from before a start proves the start': [
      'if (times.startedNs > 0n && container.times.proveRun)',
      'if (container.times.proveRun)',
    ],
    'a status from before an end proves the end': [
      "times.finishedNs > 0n && container.lists.shown === 'exited'",
      "(container.times.finished ?? 0) > 0 && container.lists.shown === 'exited'",
    ],
    'a STOPPED without a status proves a run although it may be the end of a failed start': [
      'failedStartsUnannounced && !failedStartsMayBeUnknown',
      'failedStartsUnannounced',
    ],
    'every event of a session has first lists of its own': ['if (coverage.session?.events === 1) ', ''],
    'an end that a list showed is not due when the start is announced after it': [
      "if (stage === STARTED && lists.shown === 'exited') {",
      'if (false as boolean) {',
    ],
    'a later event does not prove an earlier stage': [
      'if (stage > STARTED && stages.ran) prove(STARTED);',
      '',
    ],
    'the removal of what never ran proves that it stopped': [
      'if (stage > STOPPED && stages.ran)',
      'if (stage > STOPPED)',
    ],
    'a status of another id proves no end': ["if (state === 'exited') prove(STOPPED);", ''],
    'a status that is UNKNOWN proves a creation': [
      "container === undefined || state === 'unknown') return;",
      'container === undefined) return;',
    ],
    'a replayed event proves earlier stages': [
      '    if (replayed) return;\n    this.#concludeFromEvent(',
      '    this.#concludeFromEvent(',
    ],
    'what a replayed event announces is still due': [
      'expectations.announce(container, stage, event.received);',
      'if (!replayed) expectations.announce(container, stage, event.received);',
    ],
    'a status proves before any list that a container ended': [
      "const ended = times.finishedNs > 0n && container.lists.shown === 'exited';",
      'const ended = times.finishedNs > 0n;',
    ],
    'an event does not identify an id': [
      'if (event.object !== null) containers.identify(known, completed(known.identity, event.object));',
      '',
    ],
    'a STOPPED whose status shows a failed start proves a run': [
      'if (times.proveFailedStart) return false;',
      '',
    ],
    'a STOPPED without a status proves a run, whatever the runtime': [
      'return failedStartsUnannounced && !failedStartsMayBeUnknown;',
      'return true;',
    ],
    'a STOPPED without its payload proves a run': ['if (event.object === null) return false;', ''],
    'a sandbox that never came up was created with an event': [
      'const provesCreated = !container.isSandbox || stages.ran;',
      'const provesCreated = true;',
    ],
    'a sandbox that is known only by its status was created with an event': [
      'if (!container.isSandbox || stages.ran) prove(CREATED);',
      'prove(CREATED);',
    ],
    'events of a container that regressed come out of order': [
      'if (container.hasRegressed) return null;',
      '',
    ],
    'a time from before a step makes an event late': ['times.holdsSince(at) && ', ''],
    'what no list shows is forgotten by its first event': ['known.lastSign = event.received;', ''],
    'an event does not end a starvation': ['    starvation.eventReceived(event.received);\n', ''],
  },
  'expectation.ts': {
    'the last lower bound that becomes known holds': ['if (this.#proof.from !== null) return;', ''],
    'an event that comes again does not defer the judgement': [
      'if (isLater) this.#proof = { ...this.#proof, to };',
      '',
    ],
  },
  'expectations.ts': {
    'what never ran owes a DELETED where the runtime removes it silently': [
      'return stage !== DELETED || isSandbox || stages.ran || this.#profile.announcesSandboxRemoval;',
      'return true;',
    ],
    'what was gone before a session owes it no STOPPED, whatever turns out later': [
      'stages.waiveUpTo(stages.reached, stages.reached === DELETED ? STOPPED : null);',
      'stages.waiveUpTo(stages.reached);',
    ],
    'an end that its DELETED shows is left out where the stream ends before a list lacks it': [
      "this.#endNotAnnounced(container, { to: deleted, evidence: 'DELETED received' }, 'stream_gap');",
      '',
    ],
    'after a gap within a session the first lists decide everything': [
      'if (coverage.session.armed !== null) firstLists.watchedAgain(until);',
      '',
    ],
    'a gap before the first event of a session has first lists': [
      'if (coverage.session.armed !== null) firstLists.watchedAgain(until);',
      'firstLists.watchedAgain(until);',
    ],
    'an end that no list shows is left out where its removal is unobservable': [
      'if (stage === DELETED) this.endNotShown(container, expectation.proof);',
      '',
    ],
    'what never ran has an end that no list shows': [
      "if (!stages.ran || stages.standing(STOPPED).is !== 'none'",
      "if (stages.standing(STOPPED).is !== 'none'",
    ],
    'an end whose event came is unobservable where that of its removal is not': [
      "if (!stages.ran || stages.standing(STOPPED).is !== 'none') return;",
      'if (!stages.ran) return;',
    ],
    'a removal that lists take back leaves an end that nobody saw': [
      'this.#reportUnobservable(container, stage, standing.expectation, cause);',
      'this.becomeUnobservable(container, stage, standing.expectation, cause);',
    ],
    'what a runtime never announces is reported for each pod': [
      'if (last !== undefined && between(last, emitter.now) < BLIND_SPOT_AGAIN) return;',
      '',
    ],
    'what another runtime never announces is not reported after a replacement': [
      'this.#blindSpots.clear();',
      '',
    ],
    'what was reached before a session is due to it': [
      'stages.waiveUpTo(stages.reached, stages.reached === DELETED ? STOPPED : null);',
      '',
    ],
    'a stream gap leaves expectations open': ['if (from === null || until >= from) {', 'if (false) {'],
    'a stream gap ends expectations that began after it too': [
      'if (from === null || until >= from) {',
      'if (true) {',
    ],
    'what a list shows without a bound is bounded by its creation': [
      'if (lists.isListed) return {',
      'if (lists.isListed && lists.lowerBound(stage) !== null) return {',
    ],
    'a miss stands although the id is listed again': [
      '      this.#resolveMissed(container, standing.findingId, this.#parts.emitter.now);\n',
      '      this.#counters.missed -= 1;\n',
    ],
    'a miss stands although its event comes': [
      '      this.#resolveMissed(container, standing.findingId, at);\n',
      '      this.#counters.missed -= 1;\n',
    ],
    'an event that came before anything proved its stage is not counted': [
      "const countedNow = standing.is === 'none' && this.#parts.coverage.isCovered;",
      'const countedNow = false;',
    ],
    'an event of an id that no list has shown yet is lost': [
      'for (const stage of added.early) this.announce(added.container, stage, at);',
      '',
    ],
    'an event of an unknown type cannot be one that is due later': ['    container.isTainted = true;\n', ''],
    'an event of an unknown type cannot be one that is due already': [
      "this.becomeUnobservable(container, stage, standing.expectation, 'unknown_event_type');",
      '',
    ],
    'what lists show by themselves is not due where a spurious event proved it first': [
      'if (!concluded.expectation.withoutEvent()) this.retractProof(',
      'this.retractProof(',
    ],
    'what only a spurious event proved is due': [
      "if (!concluded.expectation.withoutEvent()) this.retractProof(container, earlier, 'spurious');",
      '',
    ],
    'a spurious event discharges what it announced': [
      "this.#setStanding(container, stage, { is: standing.waived ? 'waived' : 'none' });",
      '',
    ],
    'what was not due before a spurious event is due after it': [
      "is: standing.waived ? 'waived' : 'none'",
      "is: 'none'",
    ],
    'an event that no memory is left for is no stream gap': [
      "if (!this.#parts.containers.keepEarly(id, stage, at)) this.streamGap(at, 'too_many_ids');",
      'this.#parts.containers.keepEarly(id, stage, at);',
    ],
    'an unknown runtime never sends what it is not known to send': [
      'if (sandboxEvents.length === 0 && containerEvents.length === 0) return;',
      '',
    ],
    'what a runtime never sends is due': [
      'if (coverage.isAbsent || !this.#announces(container, stage)) {',
      'if (coverage.isAbsent) {',
    ],
    'what a runtime never sends is reported where it was not covered': [
      'if (proof.from !== null && coverage.covers(proof.from)) this',
      'if (proof.from !== null) this',
    ],
    'what happens while there is no stream is due to the next': [
      'if (coverage.session === null) {',
      'if (false) {',
    ],
  },
  'judgements.ts': {
    'what a list confirms late is missed as if it had been confirmed at once': [
      'return mono(Math.max(to, Math.min(confirmed, shownAt ?? confirmed)));',
      'return to;',
    ],
    'what lists show by themselves is missed only after they have confirmed the event that proved it first': [
      'Math.min(confirmed, shownAt ?? confirmed)',
      'confirmed',
    ],
    'an end that no list shows is left out where its removal is missed': [
      'if (stage === DELETED) expectations.endNotShown(container, expectation.proof);',
      '',
    ],
    'the end of a failed start is a blind spot although the runtime announces it': [
      "reason === 'start_failed' && !this.#endOfFailureIsAnnounced(stage)",
      "reason === 'start_failed'",
    ],
    'a judgement does not wait until the reader has drained past its deadline': [
      'if (session === null || session.watermark < deadline) return;',
      'if (session === null) return;',
    ],
    'what a runtime never announces makes its stream silent': [
      'if (mayBeUnannounced(container, stage, expectations.profile)) return;',
      '',
    ],
    'what was restored makes its stream silent': [
      '(container, stage, expectations.profile)) return;',
      "(container, stage, { ...expectations.profile, restores: 'all' })) return;",
    ],
    'the time until a judgement is counted from the start of the window': [
      'const deadline = shift(provenAt(container, expectation), options.missedAfter);',
      'const deadline = shift(expectation.proof.from ?? expectation.proof.to, options.missedAfter);',
    ],
    'overdue reports have no limit': ['if (!this.#overdueLimit.tryTake(now)) return;', ''],
    'the finding on what was reported overdue has another id': ['expectation.findingId = findingId;', ''],
    'what lists show by themselves is not judged as long as an event that proved it first is unconfirmed': [
      'const mustBeConfirmed = isOfEvent && !expectation.withoutEvent();',
      'const mustBeConfirmed = isOfEvent;',
    ],
    'something is missed because of an event alone': [
      'const mustBeConfirmed = isOfEvent && !expectation.withoutEvent();',
      'const mustBeConfirmed = false;',
    ],
    'a list that a judgement needs is waited for without end': [
      'mustBeConfirmed && emitter.now < shift(deadline, CONFIRMATION_TIMEOUT)',
      'mustBeConfirmed',
    ],
    'an event that was right although lists contradicted it is missed': [
      'if (contradiction === null || !hadHappened(container, stage, contradiction.received)) return false;',
      'if (true) return false;',
    ],
  },
  'firstLists.ts': {
    'lists that began before the first event of a session are its first lists': [
      'if (watched === null || sandboxes.start <= watched.last || containers.start <= watched.last) return;',
      'if (watched === null) return;',
    ],
    'the lists of sandboxes alone may begin before the first event': [
      'sandboxes.start <= watched.last || ',
      '',
    ],
    'a session that ends before its first lists leaves no gap': ['mono(Math.min(from, at))', 'at'],
    'lists between two gaps that nothing separates are the first lists': ['mono(Math.max(last, at))', 'last'],
    'a gap that is reported late moves the begin of the first lists back': ['mono(Math.max(last, at))', 'at'],
    'all lists after the first event are its first lists': ['    this.#watched = null;\n', ''],
    'the gap of the first lists ends with the one that ends first': [
      'Math.max(sandboxes.end, containers.end)',
      'Math.min(sandboxes.end, containers.end)',
    ],
  },
  'listHistory.ts': {
    'the last list that showed a stage passed makes its event stale': [
      'this.#passed[stage] ??= spanOf(answer)',
      'this.#passed[stage] = spanOf(answer)',
    ],
  },
  'monotonicTimes.ts': {
    'a creation is placed to the microsecond': [
      'created === null ? null : shift(created, -CLOCK_STEP);',
      'created;',
    ],
    'a creation from before what is remembered is a bound': [
      'from === null || from < shift(now, -REMEMBERED_FOR) ? null : from',
      'from',
    ],
  },
  'relisting.ts': {
    'a sandbox that a list lacked wrongly has stopped': [
      "    if (lists.isListed && old === 'non-existent' && state === 'running') this.#retractEnd(container);\n",
      '',
    ],
    'what a list lacked wrongly owes no DELETED when it goes': [
      "else stages.setStanding(DELETED, { is: 'none' });",
      'else return;',
    ],
    'first lists may leave something out': [
      'const { sandboxes: first, containers: second } = this.#previous;',
      'const [first, second] = [sandboxes, containers];',
    ],
    'a sandbox that is listed before it starts has ended': [
      'return lists.shown === null && ended > list.start;',
      'return false;',
    ],
    'a sandbox may be listed before it starts, whatever the runtime': [
      'if (!sandboxesListedBeforeStart || !isSandbox',
      'if (!isSandbox',
    ],
    'a sandbox that was up may be starting': [
      'return lists.shown === null && ended > list.start;',
      'return true;',
    ],
    'a list shows that a sandbox ended which none showed up, once any event of it came': [
      'return lists.shown === null && ended > list.start;',
      'return lists.shown === null && events.last === null;',
    ],
    'a sandbox that may be starting is not known to exist': [
      'if (state !== item.state) lists.raiseLowerBounds(DELETED, answer.start);',
      '',
    ],
    'a list that is older than the STOPPED of a sandbox shows its end': [
      'events.first(STOPPED) ?? list.end;',
      'events.first(STOPPED) === null ? list.end : list.start;',
    ],
    'a list that began before the stream was armed is a baseline': [
      'coverage.relisted(mono(Math.min(sandboxes.start, containers.start)))',
      'coverage.relisted(containers.end)',
    ],
    'a creation is after the end of the list that lacked the id': [
      'lists.raiseLowerBounds(CREATED, previous.start);',
      'lists.raiseLowerBounds(CREATED, previous.end);',
    ],
    'an id that a list showed while it was not tracked did not exist': [
      'return !items.has(id) && start',
      'return start',
    ],
    'a list from before what is remembered bounds a creation': [
      ' && start >= shift(this.#parts.emitter.now, -REMEMBERED_FOR)',
      '',
    ],
    'a list that could not be read whole proves what is gone': [
      'answer.whole ? this.#compareAbsent(answer, previous, sandboxes) : null',
      'this.#compareAbsent(answer, previous, sandboxes)',
    ],
    'a list that could not be read whole bounds a creation': [
      'containers: containers.whole ? containers : this.#previous.containers,',
      'containers,',
    ],
    'a list that shows an id exited does not prove that it started': [
      'if (stages.ran) this.#proveListed(container, STARTED, state, to);',
      "if (state === 'running') this.#proveListed(container, STARTED, state, to);",
    ],
    'an id that is listed again stays gone': [
      "this.#parts.expectations.retractProof(container, DELETED, 'listed_again');",
      'return;',
    ],
    'what the first list of an agent shows is due': [
      'if (previous === null) stages.waiveUpTo(stageShown(state));\n    else this',
      'this',
    ],
    'UNKNOWN proves an end': ["if (state === 'unknown') return;\n", ''],
    'an id that is listed again is past its end': ['stages.reached = lists.stage;', ''],
    'a list does not identify an id': [
      'containers.identify(container, { ...completed(container.identity, item.object), isSandbox });',
      '',
    ],
    'the times of what exited without proof of a run are not queried': [
      'if (container.claimTimesQuery(listEnd)) this.#parts.emitter.query(container.identity);',
      '',
    ],
    'a state that went back over UNKNOWN did not go back': [
      "if (state === 'unknown') return;",
      "if (state === 'unknown') lists.shown = null;\n    if (state === 'unknown') return;",
    ],
    'what is listed as UNKNOWN is forgotten by when it was last listed otherwise': [
      '    container.lastSign = answer.end;\n',
      '',
    ],
    'an unconfirmed event waits for a list that shows something else': [
      'previous !== null && !confirmations.isAnyUnconfirmed) container.un',
      'previous !== null) container.un',
    ],
    'the first list proves all that lists can prove of an id': [
      'if (previous !== null && !confirmations.isAnyUnconfirmed)',
      'if (!confirmations.isAnyUnconfirmed)',
    ],
    'an id is skipped though a list lacked it': [
      'container.unchangedItem = null;\n      this.#shortLives.absent(',
      'this.#shortLives.absent(',
    ],
    'lists are skipped whatever they show': ['items === this.#items && ', ''],
    'lists are skipped though an id is absent': ['absent === 0 && ', ''],
    'lists are skipped though an id may not be': [' && unchanged.length === items.size', ''],
    'all relists are one': ['    this.#parts.expectations.relistBegan();\n', ''],
  },
  'kubeletLag.ts': {
    'a miss takes an answer from before its proof as one that did not show it': [
      'if (notShown !== null && notShown.asked >= proven)',
      'if (notShown !== null)',
    ],
    'the kubelet is not asked again before a miss is judged': [
      'if (notShown !== null && notShown.asked >= due.to) return;',
      'if (notShown !== null) return;',
    ],
    'a sandbox can be late': [
      'if (container.isSandbox || container.hasRegressed ||',
      'if (container.hasRegressed ||',
    ],
    'an answer is about every pod': ['if (wait.container.identity.podUid !== podUid) continue;', ''],
    'an answer proves something whatever is in doubt': [
      'wasShown || this.#witness.whyUnknown(wait, wait.proof ?? wait.due) !== null)',
      'wasShown)',
    ],
    'a verdict does not ask again what is in doubt': [
      'if (this.#witness.whyUnknown(wait, proof) !== null) return;',
      '',
    ],
    'a step of the clock leaves the bounds that were computed from it': [
      'if (stepped && wait.proof?.byWallClock) wait.proof = { ...wait.proof, from: null };',
      '',
    ],
    'no list confirms an answer that lacks the container': [
      '    wait.confirm(wait.container.lists.lowerBound(DELETED));\n',
      '',
    ],
    'a late stop stays open when its container went back to running': [
      'if (wait.container.hasRegressed) return true;',
      '',
    ],
    'the kubelet is asked for ever': ['return now > shift(opened, REMEMBERED_FOR);', 'return false;'],
    'a late stop is waited for when its container is forgotten': [
      'return this.#parts.containers.find(container.id) !== container;',
      'return false;',
    ],
    'what was not reported because of the limit is reported later': [
      'if (proof === null || isSuppressed) return;',
      'if (proof === null) return;',
    ],
    'a question that is not answered is never asked again': [
      'if (asked !== undefined && now < shift(asked, ANSWERED_WITHIN)) return;',
      'if (asked !== undefined) return;',
    ],
    'a status was late until the answer came': [
      'lateness: between(proof.to, asked)',
      'lateness: between(proof.to, at)',
    ],
    'the kubelet is asked as soon as an event is due': [
      '|| now < shift(deadline, -ASK_AHEAD)) return;',
      ') return;',
    ],
    'the status of a sandbox is shown': [
      'if (container.isSandbox || !isShownStage(stage)) return null;',
      'if (!isShownStage(stage)) return null;',
    ],
    'a miss that the kubelet showed is measured from its proof': [
      '?? bounds.from ?? epochStart;',
      '?? bounds.to;',
    ],
    'a miss that the kubelet showed is measured from its lower bound, whatever its exact time': [
      'const began = dateOf({ container, stage }) ?? bounds.from',
      'const began = bounds.from',
    ],
    'the kubelet did not show a miss until the answer came': [
      "return { is: 'not_shown', until: since(epochStart, notShown.asked) };",
      "return { is: 'not_shown', until: since(epochStart, notShown.at) };",
    ],
    'what is dated after it was shown is not counted': [
      'if (exact === null && now < shift(watched, DATED_WITHIN)) return;',
      '',
    ],
    'what an answer showed is not brought at once': [
      'if (now < shift(answered ?? now, BROUGHT_WITHIN)) return;',
      '',
    ],
    'the end of a start that failed is counted': [
      'container.hasRegressed || !container.times.proveRun) return false;',
      'container.hasRegressed) return false;',
    ],
    'what went back to running is counted': [
      'if (whileTerminating || container.hasRegressed ||',
      'if (whileTerminating ||',
    ],
    'what was shown before it happened is counted': [
      ' || watched < shift(exact, -CLOCK_STEP)) return false;',
      ') return false;',
    ],
    'that no message came makes a start or stop late': [
      'if (notShown !== null && notShown.asked >= deadline && !notShown.isStarting) {',
      'if (notShown === null || (notShown.asked >= deadline && !notShown.isStarting)) {',
    ],
    'a start is late while the pod is still being started': [' && !notShown.isStarting', ''],
    'a container that is itself still to be created excuses its start': [
      'uncreated.some((name) => name !== identity.container)',
      'uncreated.length > 0',
    ],
    'an answer to a question from before the deadline makes a stop late': [
      'notShown.asked >= deadline',
      'notShown.asked >= proof.to',
    ],
    'a verdict does not wait for the watch to break after the answer': [
      'if (now >= shift(quietSince, SETTLING)) this',
      'if (true) this',
    ],
    'a verdict does not wait for the watch to break after a stall': [
      'mono(Math.max(notShown.at, this.#stalled ?? notShown.at))',
      'mono(notShown.at)',
    ],
    'late reports have no limit': [
      'if (!this.#lateLimit.tryTake(emitter.now)) {',
      'if (!this.#lateLimit.tryTake(emitter.now) && wait.isSuppressed) {',
    ],
    'a late stop stays open when its pod has ended': ['return pod.ended !== null || (', 'return ('],
    'a late stop stays open when a later container has replaced it': [
      '(wait.findingId !== null && this.#witness.isReplaced(wait.container))',
      'false',
    ],
    'a late stop is never resolved': ['this.#resolve(wait, firstOf(shown));', ''],
    'what the runtime took back is resolved as what the status showed': [
      "this.#resolve(wait, now, wait.container.hasRegressed ? 'state_went_back' : undefined);",
      'this.#resolve(wait, now);',
    ],
    'whatever resolves a late stop, the runtime took it back': [
      "wait.container.hasRegressed ? 'state_went_back' : undefined",
      "'state_went_back'",
    ],
    'a container that the kubelet no longer shows running is still shown to run': [
      'if (podState === null || wasShown ||',
      'if (podState === null ||',
    ],
    'the kubelet is asked for a pod as often as it has containers': [
      'if (asked !== undefined && now < shift(asked, ANSWERED_WITHIN)) return;',
      '',
    ],
    'what was shown while its pod was terminating is counted': [
      'if (whileTerminating || container.hasRegressed',
      'if (container.hasRegressed',
    ],
    'what the watch did not cover is counted': [
      'if (!this.#sights.covers(shift(exact, -CLOCK_STEP)) || watched',
      'if (watched',
    ],
    'what waited for this process is counted': ['return !waitedForUs && (', 'return ('],
    'what may have been shown by a message that could not be read is counted': [
      '(unknown === null || unknown < exact)',
      '(unknown === null || unknown !== null)',
    ],
    'what only an answer shows is counted': [
      'const isBrought = watched !== null && (answered === null || watched <= shift(answered, BROUGHT_WITHIN));',
      'const isBrought = watched !== null;',
    ],
    'what an answer shows is not brought, however soon a message does': [
      'watched <= shift(answered, BROUGHT_WITHIN)',
      'watched <= answered',
    ],
    'a stop is counted as a start': ['this.#counts.add(wait.stage,', 'this.#counts.add(STARTED,'],
    'a miss that the kubelet showed has no lower bound': [
      'const atLeast = notShown === null ? 0',
      'const atLeast = true ? 0',
    ],
    'the kubelet is not asked before a miss is judged': [
      'if (!isUnknown && wait.isDue(now, now)) this.#ask(container, now);',
      '',
    ],
  },
  'kubeletWitness.ts': {
    'a watch that broke is one that began too late': [
      "return from < firstSince ? 'before_watch' : 'watch_gap';",
      "return 'before_watch';",
    ],
    'an exact time alone bounds a change': [
      'if (from === null || bounds === null || bounds.from === null) return',
      'if (from === null || bounds === null) return',
    ],
    'a pod that has ended can accuse': ['pod.ended !== null || ', ''],
    'a pod that ended, and shows again, can accuse of what may have happened before': [
      ' || (pod.lastEnded !== null && pod.lastEnded >= from)',
      '',
    ],
    'a container that was created before this one replaced it': [
      'attempt !== null && attempt > container.identity.attempt',
      'attempt !== null',
    ],
    'a container that was created later is before this one': [
      ' || attempt === null || attempt >= identity.attempt;',
      ' || attempt === null;',
    ],
    'a watch that began after the list before can accuse': [
      'if (!this.#sights.covers(from)) return',
      'if (this.#sights.since === null) return',
    ],
    'the exact time of a change may be from before the watch': [
      'return known.length === 0 ? null : mono(Math.min(...known));',
      'return known.length === 0 ? null : mono(Math.max(...known));',
    ],
    'a start that failed is late': ["if (container.times.proveFailedStart) return 'start_failed';", ''],
    'a pod that was first reported after the change was proven can accuse': [
      '|| pod.first > to) return',
      '|| false) return',
    ],
    'a pod of which the last message could not be read can accuse': [
      'pod === undefined || pod.isUnknown ||',
      'pod === undefined ||',
    ],
    'a pod that is terminating can accuse': [
      "return pod.isTerminating ? 'pod_terminating' : null;",
      'return null;',
    ],
    'a container that was replaced can accuse': [
      "if (this.#mayBeReplaced(transition, bounds)) return 'superseded';",
      '',
    ],
    'a container whose state the runtime does not know can accuse': [
      "if (lists.isUnknown) return 'state_unknown';",
      '',
    ],
    'a container that lists lack can accuse': [
      "return lists.state === 'non-existent' ? 'container_gone' : null;",
      'return null;',
    ],
    'a container of which nothing else is known is before this one': [
      'return !isShownBefore || attempt === null ||',
      'return !isShownBefore || attempt !== null &&',
    ],
    'the container before is taken for the one that replaced it': [
      'return !isShownBefore || attempt',
      'return true || attempt',
    ],
    'a container of another name replaces this one': [
      'if (otherId === id || name !== identity.container) return [];',
      'if (otherId === id) return [];',
    ],
    'an end that the runtime dates by when it noticed it is exact': [
      'stage === STARTED ? times.started : times.ranUntil',
      'stage === STARTED ? times.started : times.finished',
    ],
  },
  'kubeletWait.ts': {
    'a container that an answer lacks is not shown, whether lists still have it or not': [
      "if (answer.podState !== 'absent') {",
      'if (true) {',
    ],
    'the first answer that lacks the container waits for a list, however early it was asked for': [
      'if (this.#unconfirmed === null || (deadline !== null && this.#unconfirmed.asked < deadline)) {',
      'if (this.#unconfirmed === null) {',
    ],
    'the last answer that lacks the container waits for a list': [
      'if (this.#unconfirmed === null || (deadline !== null && this.#unconfirmed.asked < deadline)) {',
      'if (true) {',
    ],
    'a list confirms an answer from before the last one': [
      'this.#notShown = answer;\n      this.#unconfirmed = null;',
      'this.#notShown = answer;',
    ],
    'a list from between question and answer confirms that the container was there at the answer': [
      'listed < answer.at) return;',
      'listed < answer.asked) return;',
    ],
    'an answer to a question from before the deadline puts off the next one': [
      'if (provesFrom === null || asked < provesFrom) return;',
      'if (provesFrom === null) return;',
    ],
    'an answer to a question for another container puts off the one before a miss': [
      'if (provesFrom === null || asked < provesFrom) return;',
      'if (provesFrom !== null && asked < provesFrom) return;',
    ],
    'a later proof replaces the first': ['    if (this.proof !== null) return;\n', ''],
    'an answer from before the proof puts off the question after it': [
      '    this.#askFrom = null;\n    this.#pause = this.#firstPause;\n',
      '',
    ],
    'questions come in equal pauses': ['2 * this.#pause', 'this.#pause'],
    'the pause between questions has no limit': ['Math.min(MAX_PAUSE, 2 * this.#pause)', '2 * this.#pause'],
  },
  'kubeletSights.ts': {
    'a waiting container has started': ["if (state === 'waiting') continue;", ''],
    'a pod whose end only an answer shows goes on': [
      'if (answer.pod.hasEnded) this.#end(answer.podUid, answer.at);',
      '',
    ],
    'a pod whose end only a status shows goes on': ['if (seen.hasEnded) this.#end(seen.podUid, at);', ''],
    'a watch that broke covers what comes': [
      "      case 'broken':\n        this.#since = null;\n",
      "      case 'broken':\n",
    ],
    'a watch that is opened again covers what the last one did': [
      'this.#opened = sight.at;\n        this.#since = null;',
      'this.#opened = sight.at;',
    ],
    'a pod of which a message could not be read stays unknown': [
      '    this.isUnknown = false;\n    if (this.ended',
      '    if (this.ended',
    ],
    'a pod that comes back has ended': ['    this.ended = null;\n    this.see(', '    this.see('],
    'a pod that comes back is still terminating': [
      'if (this.ended !== null) this.isTerminating = false;',
      '',
    ],
    'containers that no status names are remembered for ever': [
      'if (each.last < before && each.last < last) this.containers.delete(id);',
      ';',
    ],
    'the containers of the last status are forgotten': [
      'if (each.last < before && each.last < last)',
      'if (each.last < before)',
    ],
    'of the containers of a pod none is forgotten before five minutes': [
      'this.#forgetBeyond(MAX_CONTAINERS, at);',
      '',
    ],
    'ended pods count as present': [
      'this.#pods.size - this.#ended.size >= MAX_PODS',
      'this.#pods.size >= MAX_PODS',
    ],
    'a watch covers changes before it has reported every pod': [
      "        this.#since = null;\n        break;\n      case 'synced'",
      "        this.#since = sight.at;\n        break;\n      case 'synced'",
    ],
    'what an old watch reported is there when a new one begins without it': [
      'if (ended === null && watched < opened) this.#end(podUid, at);',
      ';',
    ],
    'the last message that shows a stage counts': ['[by]: known[by] ?? at', '[by]: at'],
    'a terminated container has not started': [
      "      container.show(STARTED, by, at, this.isTerminating);\n      if (state === 'terminated')",
      "      if (state === 'running') container.show(STARTED, by, at, this.isTerminating);\n      if (state === 'terminated')",
    ],
    'the end of a pod shows nothing of its containers': [
      'for (const stage of SHOWN_STAGES) container.show(',
      'for (const stage of SHOWN_STAGES) if (at < 0) container.show(',
    ],
    'a pod that was terminating no longer is': [
      'this.isTerminating ||= isTerminating;',
      'this.isTerminating = isTerminating;',
    ],
    'ended pods are remembered for ever': [
      'if ((this.#pods.get(podUid)?.ended ?? now) < before) this.#drop(podUid);',
      ';',
    ],
    'the number of pods has no limit': [
      'this.#pods.size - this.#ended.size >= MAX_PODS',
      'this.#pods.size < 0',
    ],
    "the number of a pod's containers has no limit": [
      'if (isTooMany || seen.containers.length > MAX_CONTAINERS) {',
      'if (isTooMany) {',
    ],
    'the number of ended pods has no limit': [
      'if (this.#ended.size > MAX_ENDED_PODS &&',
      'if (this.#ended.size < 0 &&',
    ],
  },
  'kubeletLagCounts.ts': {
    'what has been handed over is counted again': ['    this.#starts = [];\n', ''],
  },
  'shortLife.ts': {
    'a whole life lasted at least until its end was noticed': [
      'lasted(created, ranUntil)',
      'lasted(created, times.finished)',
    ],
    'a run lasted at least until its end was noticed': [
      'lasted(times.started, times.ranUntil)',
      'lasted(times.started, times.finished)',
    ],
    'a run that no list saw lasted up to the stretch between the lists, whatever its exact times': [
      'max: lasted(times.started, times.finished) ?? longest',
      'max: longest',
    ],
    'the stretch between two lists begins at the end of the first': [
      'longest: between(previous.start, answer.end),',
      'longest: between(previous.end, answer.end),',
    ],
    'a container from before the first list has a short life between two lists': [
      'if (created === null || created < before) return null;',
      'if (created === null) return null;',
    ],
    'a container whose last event came after the second list has a short life between two lists': [
      ' || last > after) return null;',
      ') return null;',
    ],
    'a short life is reported across a failed list': [' || !this.#consecutive', ''],
    'a short life is reported for a stretch that was not covered': [
      'if (!this.#parts.coverage.covers(previous.start)) return null;',
      '',
    ],
    'a failed start is a short life': [
      'if (interval === null || !stages.ran || times.proveFailedStart) return;',
      'if (interval === null || !stages.ran) return;',
    ],
    'what a list saw running before it was lacked ran unseen': [
      'container.lists.shown === null && previous',
      'previous',
    ],
    'what the list before showed as UNKNOWN ran unseen': [
      ' && previous?.items.has(container.id) === false',
      ' && previous !== null',
    ],
    'the bounds of a short life outlive a step': [
      'emitter.emitUnlessStepped(container.identity, finding(short), () => {',
      'emitter.emitUnlessStepped(container.identity, finding(short), () => emitter.emit(container.identity, finding(short)));\n    void (() => {',
    ],
    'a short life is not reported where the clock was stepped': [
      'if (left !== null) emitter.emit(container.identity, finding(left));',
      '',
    ],
  },
  'starvation.ts': {
    'a stream is starved by four changes': ['const MIN_CHANGES = 5;', 'const MIN_CHANGES = 4;'],
    'a stream is starved only by more than six changes': ['const MIN_CHANGES = 5;', 'const MIN_CHANGES = 7;'],
    'the changes of one id starve a stream': ['const MIN_IDS = 2;', 'const MIN_IDS = 1;'],
    'the changes of one relist starve a stream': ['const MIN_RELISTS = 2;', 'const MIN_RELISTS = 1;'],
    'a change before the last event counts for a starvation': [
      'from !== null && from > lastEvent;',
      'from !== null;',
    ],
    'a change counts for a starvation before its event is overdue': [
      'session.watermark >= shift(expectation.proof.to, this.#overdueAfter)',
      'true',
    ],
    'an unobservable change counts for a starvation': [
      'if (reason === null) changes.add(container, expectation);',
      'changes.add(container, expectation);',
    ],
    'what was missed before is forgotten when a starvation is proven': [
      '    this.#missed.add(container, expectation);\n',
      '',
    ],
    'what is missed in a starved stream has no hint': [
      'if (this.#present !== null) return HINT;',
      'if (this.#present !== null) return {};',
    ],
    'a miss that began before the last event has the hint': [
      'if (!this.#beganSince(expectation)) return {};',
      'if (!this.#beganSince(expectation)) return this.#present === null ? {} : HINT;',
    ],
    'a starvation is reported again at each miss': [
      'if (this.#present !== null || this.#countedAt',
      'if (this.#countedAt',
    ],
    'the end of a starvation does not resolve its finding': [
      'this.#parts.emitter.resolve(null, this.#present.findingId, at);',
      'this.#countedAt = at;',
    ],
    'what was missed in one starvation counts in the next': [
      '    this.#present = null;\n    this.#missed = new Changes();\n',
      '    this.#present = null;\n',
    ],
    'an event that was held back has no hint': ['return heldBack ? HINT : {};', 'return {};'],
    'every event after a starvation has the hint': ['built > from && built <= to;', 'built > from;'],
  },
  'trackedContainer.ts': {
    'a window begins at the end of the list that showed the stage before': [
      'this.lists.recordStillShown(answer.start);',
      'this.lists.recordStillShown(answer.end);',
    ],
    'what is listed is forgotten by when it was first listed': ['    this.lastSign = answer.end;\n', ''],
    'a status from before a start decides that what ended never ran': [
      'statusAsked === null || statusAsked < (this.#timesQueriedFor ?? statusAsked)',
      'statusAsked === null',
    ],
  },
  'trackedContainers.ts': {
    'a name that becomes known later is ignored': [
      '    container.identify(identity);\n    this.#identityVersion += 1;\n',
      '    container.identify(identity);\n',
    ],
    'what has ended is forgotten at once': ['if (ended && container.lastSign < horizon)', 'if (ended)'],
    'what is waited for is forgotten': [' && !isWaiting(container);', ';'],
    'what is running is forgotten when lists fail': [
      "(container.lists.state === 'non-existent' || unlisted) && ",
      '',
    ],
    'any number of ids is tracked': ['if (this.#containers.size >= MAX_CONTAINERS) {', 'if (false) {'],
    'the gap of too many ids ends with any list': [
      'if (gap === null || gap.last >= end) return;',
      'if (gap === null) return;',
    ],
    'an event of an unknown id is forgotten by the first one of that id': ['known.at = at;', ''],
    'an event of an unknown id is kept although a list shows the id': [
      'this.#early.delete(identity.id);',
      '',
    ],
    'an id is skipped whatever lists show of it': [
      'return container?.unchangedItem === item ? container : undefined;',
      'return container?.unchangedItem == null ? undefined : container;',
    ],
    'an id is skipped whatever is received of it': ['container.unchangedItem = null;\n      this', 'this'],
    'lists are skipped whatever is received of ids': ['this.#updates += 1;', ''],
    'lists are skipped whoever comes or goes': [
      'return this.#identityVersion + this.#updates;',
      'return this.#updates;',
    ],
  },
  'unobservableReason.ts': {
    'the STOPPED of a sandbox is missed although it may have been removed while it ran': [
      'return isSandbox ? stage === STOPPED && !times.hasSharedPid : stage === DELETED;',
      'return !isSandbox && stage === DELETED;',
    ],
    'the STOPPED of a sandbox with a process of its own is not due where it may have been removed': [
      'stage === STOPPED && !times.hasSharedPid :',
      'stage === STOPPED :',
    ],
    'a container that may have been removed with its sandbox is missed': [
      'return isSandbox ? stage === STOPPED && !times.hasSharedPid : stage === DELETED;',
      'return isSandbox && stage === STOPPED && !times.hasSharedPid;',
    ],
    'what may have been restored is missed': [
      'if (stage <= STARTED && mayHaveBeenRestored(container, profile))',
      'if (false as boolean)',
    ],
    'what was announced as created may have been restored': [
      "restores === 'all' || stages.standing(CREATED).is === 'announced'",
      "restores === 'all'",
    ],
    'what is not announced as created was not restored if it was announced as started, whatever the runtime':
      [
        "if (restores === 'unknown') return !isSandbox || sandboxEvents.includes('CREATED');\n",
        "if (restores === 'unknown' && stages.standing(STARTED).is !== 'announced') return true;\n",
      ],
    'a container whose log was named may have been restored': [
      "times.exact === null || times.exact.trait === 'unnamed_log'",
      'true as boolean',
    ],
    'a container of which no status is known was not restored': [
      "times.exact === null || times.exact.trait === 'unnamed_log'",
      "times.exact?.trait === 'unnamed_log'",
    ],
    'the sandbox of CRI-O may have been restored': [
      '!isSandbox && (times.exact === null',
      '(times.exact === null',
    ],
    'a sandbox may have been stopped by its removal, whatever the runtime': [
      'if (announcesSandboxRemoval) return false;',
      '',
    ],
    'what ended while the runtime was down ended when that noticed it': [
      'stage === STOPPED && container.times.ranUntil === null;',
      'stage === STOPPED && exact === null;',
    ],
    'the start of what failed to start is missed': [
      "return hasFailedToStart(container, stage) ? 'start_failed' : null;",
      'return null;',
    ],
    'what was proven before the baseline is missed': [
      "if (!expectation.isCoverable) return 'before_baseline';",
      '',
    ],
    'what has no lower bound is missed': [
      "if (from === null) return 'no_lower_bound';",
      'if (from === null) return null;',
    ],
    'what may have happened while nobody watched is missed': [
      "if (!coverage.covers(from)) return 'window_not_covered';",
      '',
    ],
    'what lists contradicted is missed although nothing shows which was wrong': [
      "if (exact === null && container.events.contradicted(stage) !== null) return 'contradicted';",
      '',
    ],
    'an end that the lists of a restarted runtime show late is missed': [
      'const SETTLING: Micros = millis(6 * 60_000);',
      'const SETTLING: Micros = millis(0);',
    ],
    'the end of what started in the session may have been before it': [
      'return !startedSince && runningAt',
      'return runningAt',
    ],
    'what was created in the session may have ended before it': ['events.first(CREATED), ', ''],
    'what ended before the session by its exact time is missed': [
      'if (exact !== null && !coverage.covers(shift(exact, -CLOCK_STEP)))',
      'if (false)',
    ],
    'an exact time is trusted to the microsecond': [
      '!coverage.covers(shift(exact, -CLOCK_STEP))',
      '!coverage.covers(exact)',
    ],
    'the runtime was late itself where lists noticed before the event was overdue': [
      'shift(exact, overdueAfter) < from',
      'exact < from',
    ],
  },
  'wallClock.ts': {
    'a clock that was set little by little was not set': [
      'this.#distance = distance;\n    this.#min = Math.min(this.#min, distance);\n    this.#max = Math.max(this.#max, distance);',
      'this.#min = Math.min(this.#distance ?? distance, distance);\n    this.#max = Math.max(this.#distance ?? distance, distance);\n    this.#distance = distance;',
    ],
    'a time that the clock showed twice is placed': [
      ' || this.#past.some(({ from, to }) => micros >= from && micros <= to)',
      '',
    ],
  },
};

const inFile = (file: string, [from, to]: Replacement): Edit => ({
  file: `src/agent/compare/${file}`,
  from,
  to,
});

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'nothing',
    edits: [],
    survives: 'it is the unedited tree: a test that fails here fails for another reason',
  },
  {
    name: 'what lists have shown is proven again by each',
    edits: [
      inFile('stageProgress.ts', [
        "return stage > this.reached || is === 'none' || is === 'expected';",
        'return true;',
      ]),
    ],
    survives: 'a proof of what is settled changes nothing: not to make it only saves time',
  },
  {
    name: 'late takes precedence over duplicate',
    edits: [
      inFile('eventClassifier.ts', [
        "  if (is === 'announced') return classified('duplicate', 'same_type_again');\n",
        '',
      ]),
      inFile('eventClassifier.ts', [
        '  if (container.events.furthest > stage) return',
        "  if (is === 'announced') return classified('duplicate', 'same_type_again');\n  if (container.events.furthest > stage) return",
      ]),
    ],
  },
  ...Object.entries(SINGLE_EDITS).flatMap(([file, mutants]) =>
    Object.entries(mutants).map(([name, edit]) => ({ name, edits: [inFile(file, edit)] })),
  ),
];
