/*
 * The rules of the comparison (src/agent/compare), each broken in one place. The name of a mutant says what it does instead.
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

const inFile = (file: string, from: string, to: string): Edit => ({
  file: `src/agent/compare/${file}`,
  from,
  to,
});

const broken = (name: string, ...edit: Parameters<typeof inFile>): Mutant => ({
  name,
  edits: [inFile(...edit)],
});

const SESSIONS: readonly Mutant[] = [
  broken('a stream is armed as soon as it is opened', 'coverage.ts', 'armed: null,', 'armed: opened,'),
  broken(
    'a list that began before the stream was armed is a baseline',
    'relisting.ts',
    'coverage.relisted(mono(Math.min(sandboxes.start, containers.start)))',
    'coverage.relisted(containers.end)',
  ),
  broken('what lies before the arming is covered', 'coverage.ts', 'from >= session.armed &&', ''),
  broken(
    'a new session takes over what was due to the old one',
    'comparison.ts',
    "    this.unsubscribed('down');\n",
    '',
  ),
  broken(
    'what was reached before a session is due to it',
    'expectations.ts',
    'for (const { stages } of this.#parts.containers) stages.waiveUpTo(stages.reached);',
    '',
  ),
  broken(
    'an event of an older session counts',
    'coverage.ts',
    'if (session?.session !== event.session) return null;',
    'if (session === null || session.session < event.session) return null;',
  ),
  broken(
    'the last event of a session arms it',
    'coverage.ts',
    'session.armed ??= event.received;',
    'session.armed = event.received;',
  ),
];

const COVERAGE: readonly Mutant[] = [
  broken('what lies before a stream gap is covered', 'coverage.ts', 'from >= session.since\n', 'true\n'),
  broken(
    'a stream gap leaves expectations open',
    'expectations.ts',
    'if (expectation.from === null || until >= expectation.from) {',
    'if (false) {',
  ),
  broken(
    'a stream gap ends expectations that began after it too',
    'expectations.ts',
    'if (expectation.from === null || until >= expectation.from) {',
    'if (true) {',
  ),
  broken(
    'a stream gap that is reported late brings back what a later one ended',
    'coverage.ts',
    'if (this.#session !== null && until > this.#session.since)',
    'if (this.#session !== null)',
  ),
  broken(
    'a judgement does not wait until the reader has drained past its deadline',
    'judgements.ts',
    'if (session === null || session.watermark < deadline) return;',
    'if (session === null) return;',
  ),
  broken(
    'what one session has drained is drained in another',
    'coverage.ts',
    'current?.session === session && watermark',
    'current !== null && watermark',
  ),
  broken('the watermark can go back', 'coverage.ts', ' && watermark > current.watermark', ''),
];

const WINDOWS: readonly Mutant[] = [
  broken(
    'a window begins at the end of the list that showed the stage before',
    'trackedContainer.ts',
    'this.lists.recordStillShown(answer.start);',
    'this.lists.recordStillShown(answer.end);',
  ),
  broken(
    'a creation is after the end of the list that lacked the id',
    'relisting.ts',
    'lists.raiseLowerBounds(CREATED, previous.start);',
    'lists.raiseLowerBounds(CREATED, previous.end);',
  ),
  broken(
    'an id that a list showed while it was not tracked did not exist',
    'relisting.ts',
    'return !items.has(id) && start',
    'return start',
  ),
  broken(
    'a list from before what is remembered bounds a creation',
    'relisting.ts',
    ' && start >= shift(this.#parts.emitter.now, -REMEMBERED_FOR)',
    '',
  ),
  broken(
    'a list that could not be read whole proves what is gone',
    'relisting.ts',
    'answer.whole ? this.#compareAbsent(answer, previous, sandboxes) : null',
    'this.#compareAbsent(answer, previous, sandboxes)',
  ),
  broken(
    'a list that could not be read whole bounds a creation',
    'relisting.ts',
    'containers: containers.whole ? containers : this.#previous.containers,',
    'containers,',
  ),
  broken(
    'an answer that is older than an event proves that the id is gone',
    'absences.ts',
    'const older = events.last !== null && answer.start <= events.last;',
    'const older = false;',
  ),
  broken(
    'a sandbox is never announced gone before it leaves the list',
    'absences.ts',
    'lists.isListed ? expectations.profile.lead : 0;',
    'lists.isListed ? 0 : 0;',
  ),
  broken(
    'a sandbox can be announced gone before its creation',
    'absences.ts',
    'mono(Math.max(bound.from - lead, created))',
    'mono(bound.from - lead)',
  ),
  broken(
    'the last lower bound that becomes known holds',
    'expectation.ts',
    'if (this.#from !== null) return;',
    '',
  ),
  broken(
    'an event that comes again does not defer the judgement',
    'expectation.ts',
    'if (by !== null && by === this.by && to > this.#to) this.#to = to;',
    '',
  ),
  broken(
    'an id that is listed again was gone since it was first lacked',
    'listHistory.ts',
    'this.#absence = null;',
    '',
  ),
  {
    ...broken(
      'the last list that lacks an id bounds its removal',
      'listHistory.ts',
      'this.#absence ??= spanOf(answer);',
      'this.#absence = spanOf(answer);',
    ),
    survives: 'the first is judged before a second one is compared',
  },
  broken(
    'what a list shows without a bound is bounded by its creation',
    'expectations.ts',
    'if (lists.isListed) return {',
    'if (lists.isListed && lists.lowerBound(stage) !== null) return {',
  ),
];

const PROOFS: readonly Mutant[] = [
  broken(
    'a list that shows an id exited does not prove that it started',
    'relisting.ts',
    'if (stages.ran) this.#proveListed(container, STARTED, state, to);',
    "if (state === 'running') this.#proveListed(container, STARTED, state, to);",
  ),
  broken(
    'an id that is listed again stays gone',
    'relisting.ts',
    "this.#parts.expectations.retract(container, DELETED, 'listed_again');",
    '',
  ),
  broken(
    'a miss stands although the id is listed again',
    'expectations.ts',
    '      this.#resolveMissed(container, standing.findingId, this.#parts.emitter.now);\n',
    '      this.#counters.missed -= 1;\n',
  ),
  broken(
    'a later event does not prove an earlier stage',
    'events.ts',
    'if (stage > STARTED && stages.ran) prove(STARTED);',
    '',
  ),
  broken(
    'the removal of what never ran proves that it stopped',
    'events.ts',
    'if (stage > STOPPED && stages.ran)',
    'if (stage > STOPPED)',
  ),
  broken('a status of another id proves no end', 'events.ts', "if (state === 'exited') prove(STOPPED);", ''),
  broken(
    'what the first list of an agent shows is due',
    'relisting.ts',
    'if (previous === null) stages.waiveUpTo(stageShown(state));\n    else this',
    'this',
  ),
  broken('UNKNOWN proves an end', 'relisting.ts', "if (state === 'unknown') return;\n", ''),
  broken(
    'a status that is UNKNOWN proves a creation',
    'events.ts',
    "container === undefined || state === 'unknown') return;",
    'container === undefined) return;',
  ),
  broken(
    'a replayed event proves earlier stages',
    'events.ts',
    '    if (replayed) return;\n    this.#concludeFromEvent(',
    '    this.#concludeFromEvent(',
  ),
  broken(
    'what a replayed event announces is still due',
    'events.ts',
    'expectations.announce(container, stage, event.received);',
    'if (!replayed) expectations.announce(container, stage, event.received);',
  ),
  broken(
    'an event that was built before the subscription is replayed, whatever came before it',
    'coverage.ts',
    'return session.replaying;',
    'return event.createdNs < session.openedNs;',
  ),
  broken('an id that is listed again is past its end', 'relisting.ts', 'stages.goBackTo(lists.stage);', ''),
  {
    ...broken(
      'what lists have shown is proven again by each',
      'stageProgress.ts',
      "return stage > this.#reached || is === 'none' || is === 'expected';",
      'return true;',
    ),
    survives: 'a proof of what is settled changes nothing: not to make it only saves time',
  },
  broken(
    'a status proves before any list that a container ended',
    'events.ts',
    "const ended = exact.finishedNs > 0n && container.lists.shown === 'exited';",
    'const ended = exact.finishedNs > 0n;',
  ),
  broken(
    'an event does not identify an id',
    'events.ts',
    'if (event.object !== null) containers.identify(known, completed(known.identity, event.object));',
    '',
  ),
  broken(
    'a list does not identify an id',
    'relisting.ts',
    'containers.identify(container, { ...completed(container.identity, item.object), isSandbox });',
    '',
  ),
];

const RUNS: readonly Mutant[] = [
  broken(
    'a failed start is a run',
    'containerTimes.ts',
    'this.#exact.startedNs > 0n && !this.proveFailedStart',
    'this.#exact.startedNs > 0n',
  ),
  broken(
    'what has not ended is a failed start',
    'containerTimes.ts',
    'if (finishedNs <= 0n) return false;',
    '',
  ),
  broken(
    'what started in the instant of its creation is a failed start',
    'containerTimes.ts',
    '(startedNs === createdNs && startedNs === finishedNs)',
    'startedNs === createdNs',
  ),
  broken(
    'the start of what failed to start is missed',
    'unobservableReason.ts',
    'container.times.proveFailedStart) {',
    'false) {',
  ),
  broken('a failed start is reported twice', 'judgements.ts', 'if (stage !== STOPPED) return;', ''),
  broken(
    'a STOPPED whose status shows a failed start proves a run',
    'events.ts',
    'return !times.proveFailedStart;',
    'return true;',
  ),
  broken(
    'a STOPPED without a status proves a run, whatever the runtime',
    'events.ts',
    'if (times.exact === null) return this.#parts.expectations.profile.failedStartsUnannounced;',
    'if (times.exact === null) return true;',
  ),
  broken(
    'a STOPPED without its payload proves a run',
    'events.ts',
    'if (event.object === null) return false;',
    '',
  ),
  broken(
    'the times of what exited without proof of a run are not queried',
    'relisting.ts',
    'if (container.claimTimesQuery()) this.#parts.emitter.query(container.identity);',
    '',
  ),
  broken(
    'a sandbox that never came up was created with an event',
    'events.ts',
    'const provesCreated = !container.isSandbox || stages.ran;',
    'const provesCreated = true;',
  ),
  broken(
    'a sandbox that is known only by its status was created with an event',
    'events.ts',
    'if (!container.isSandbox || stages.ran) prove(CREATED);',
    'prove(CREATED);',
  ),
];

const DEADLINES: readonly Mutant[] = [
  broken(
    'an expectation is reported overdue at once',
    'judgements.ts',
    'emitter.now >= shift(expectation.to, options.overdueAfter)',
    'emitter.now >= expectation.to',
  ),
  broken(
    'the time until a judgement is counted from the start of the window',
    'judgements.ts',
    'const deadline = shift(expectation.to, options.missedAfter);',
    'const deadline = shift(expectation.from ?? expectation.to, options.missedAfter);',
  ),
  broken(
    'overdue reports have no limit',
    'judgements.ts',
    'if (!this.#overdueLimit.tryTake(now)) return;',
    '',
  ),
  broken(
    'the finding on what was reported overdue has another id',
    'judgements.ts',
    'expectation.reportedAs(findingId);',
    '',
  ),
  broken(
    'the limit of overdue reports is never renewed',
    '../../platform/tokenBucket.ts',
    'mono(Math.max(this.#fullAt, now) + this.#interval)',
    'mono(Number.POSITIVE_INFINITY)',
  ),
];

const DISCHARGES: readonly Mutant[] = [
  broken(
    'a miss stands although its event comes',
    'expectations.ts',
    '      this.#resolveMissed(container, standing.findingId, at);\n',
    '      this.#counters.missed -= 1;\n',
  ),
  broken(
    'an event that came before anything proved its stage is not counted',
    'expectations.ts',
    "const countedNow = standing.is === 'none' && this.#parts.coverage.isCovered;",
    'const countedNow = false;',
  ),
  broken(
    'an event of an id that no list has shown yet is lost',
    'expectations.ts',
    'for (const stage of added.early) this.announce(added.container, stage, at);',
    '',
  ),
  broken(
    'an event of an unknown type cannot be one that is due later',
    'expectations.ts',
    '    container.taint();\n',
    '',
  ),
  broken(
    'an event of an unknown type cannot be one that is due already',
    'expectations.ts',
    "this.giveUp(container, stage, standing.expectation, 'unknown_event_type');",
    '',
  ),
];

const CLASSIFICATION: readonly Mutant[] = [
  {
    name: 'late takes precedence over duplicate',
    edits: [
      inFile(
        'eventClassifier.ts',
        "  if (is === 'announced') return classified('duplicate', 'same_type_again');\n",
        '',
      ),
      inFile(
        'eventClassifier.ts',
        '  if (container.events.furthest > stage) return',
        "  if (is === 'announced') return classified('duplicate', 'same_type_again');\n  if (container.events.furthest > stage) return",
      ),
    ],
  },
  broken(
    'out_of_order takes precedence over late',
    'eventClassifier.ts',
    'if (isLate(occurred, lateness, context)) {',
    "if (container.events.furthest > stage) return classified('out_of_order', 'after_a_later_stage');\n  if (isLate(occurred, lateness, context)) {",
  ),
  broken(
    'stale takes precedence over out_of_order',
    'eventClassifier.ts',
    'if (container.events.furthest > stage) return',
    "if (isStale(container, context)) return classified('stale', 'after_the_list', true);\n  if (container.events.furthest > stage) return",
  ),
  broken(
    'an event after its missed is late by its true time alone',
    'eventClassifier.ts',
    "if (is === 'missed') return classified('late', 'after_missed');",
    '',
  ),
  broken(
    'a delay that may be our own reader’s makes an event late',
    'eventClassifier.ts',
    'if (received > shift(drained, lateAfter) && drained <= shift(occurred, lateAfter)) return false;',
    '',
  ),
  broken(
    'an event is stale although the time since it was built is not covered',
    'eventClassifier.ts',
    ' && coveredSince(built)',
    '',
  ),
  broken(
    'the last list that showed a stage passed makes its event stale',
    'listHistory.ts',
    'this.#passed[stage] ??= spanOf(answer)',
    'this.#passed[stage] = spanOf(answer)',
  ),
  broken(
    'events of a container that regressed come out of order',
    'events.ts',
    'if (container.hasRegressed) return null;',
    '',
  ),
  broken(
    'a list that lacks an id does not show its stages passed',
    'absences.ts',
    'if (lists.isListed) lists.recordPassedBefore(DELETED, answer);',
    '',
  ),
  broken(
    'a list that lacks an id that none ever showed shows its stages passed',
    'absences.ts',
    'if (lists.isListed) lists.recordPassedBefore(DELETED, answer);',
    'lists.recordPassedBefore(DELETED, answer);',
  ),
  broken(
    'a spurious event puts others out of order',
    'eventHistory.ts',
    'this.#furthest = STAGES.findLast((each) => this.#first[each] !== null) ?? -1;',
    '',
  ),
];

const CONFIRMATIONS: readonly Mutant[] = [
  broken(
    'one list makes an event spurious',
    'eventConfirmation.ts',
    'const CONTRADICTIONS_NEEDED = 2;',
    'const CONTRADICTIONS_NEEDED = 1;',
  ),
  broken(
    'a list that began before an event contradicts it',
    'eventConfirmation.ts',
    'list.start > shift(event.received, lead) && ',
    '',
  ),
  broken(
    'a sandbox that is listed within the lead contradicts its DELETED',
    'contradictions.ts',
    'const lead = container.isSandbox ? expectations.profile.lead : millis(0);',
    'const lead = millis(0);',
  ),
  broken(
    'UNKNOWN contradicts any event',
    'eventConfirmation.ts',
    '(shown !== null || stage === DELETED)',
    '(shown === null || shown < stage)',
  ),
  broken(
    'an event that came again is retracted with the first',
    'contradictions.ts',
    'if (event.again) continue;',
    '',
  ),
  broken(
    'an event is spurious although its exact time confirms it',
    'contradictions.ts',
    'if (hadHappened(container, stage, received)) continue;',
    '',
  ),
  broken(
    'what only a spurious event proved is due',
    'expectations.ts',
    "if (byIt) this.retract(container, earlier, 'spurious');",
    '',
  ),
  broken(
    'a spurious event discharges what it announced',
    'expectations.ts',
    "this.settle(container, stage, { is: standing.waived ? 'waived' : 'none' });",
    '',
  ),
  broken(
    'what was not due before a spurious event is due after it',
    'expectations.ts',
    "is: standing.waived ? 'waived' : 'none'",
    "is: 'none'",
  ),
  broken(
    'a spurious event proves that the id ran',
    'contradictions.ts',
    "stages.retractRun(lists.shown === 'running' || times.proveRun);",
    '',
  ),
  broken(
    'an event that comes again while it is unconfirmed came once',
    'eventConfirmation.ts',
    'else known.again = received;',
    '',
  ),
  broken(
    'an event that comes after a spurious one is a duplicate',
    'eventHistory.ts',
    'this.#first[stage] = null;',
    '',
  ),
  broken(
    'an id stays at the stage of its spurious event',
    'contradictions.ts',
    'if (shown !== null) stages.goBackTo(shown);',
    '',
  ),
];

const UNOBSERVABLE: readonly Mutant[] = [
  broken(
    'what was proven before the baseline is missed',
    'unobservableReason.ts',
    "if (!expectation.isCoverable) return 'before_baseline';",
    '',
  ),
  broken(
    'what has no lower bound is missed',
    'unobservableReason.ts',
    "if (expectation.from === null) return 'no_lower_bound';",
    'if (expectation.from === null) return null;',
  ),
  broken(
    'what may have happened while nobody watched is missed',
    'unobservableReason.ts',
    "if (!coverage.covers(expectation.from)) return 'window_not_covered';",
    '',
  ),
  broken(
    'what lists contradicted is missed although nothing shows which was wrong',
    'unobservableReason.ts',
    "if (exact === null && container.events.contradicted(stage) !== null) return 'contradicted';",
    '',
  ),
  broken(
    'an end that the lists of a restarted runtime show late is missed',
    'unobservableReason.ts',
    'const SETTLING: Micros = millis(6 * 60_000);',
    'const SETTLING: Micros = millis(0);',
  ),
  broken(
    'the end of what started in the session may have been before it',
    'unobservableReason.ts',
    'return !startedSince && runningAt',
    'return runningAt',
  ),
  broken(
    'what ended before the session by its exact time is missed',
    'unobservableReason.ts',
    'if (exact !== null && !coverage.covers(shift(exact, -CLOCK_STEP)))',
    'if (false)',
  ),
  broken(
    'an exact time is trusted to the microsecond',
    'unobservableReason.ts',
    '!coverage.covers(shift(exact, -CLOCK_STEP))',
    '!coverage.covers(exact)',
  ),
  broken(
    'something is missed because of an event alone',
    'judgements.ts',
    'const unconfirmed = expectation.by !== null && container.confirmations.isUnconfirmed(expectation.by);',
    'const unconfirmed = false;',
  ),
  broken(
    'a list that confirms an event is waited for without end',
    'judgements.ts',
    'if (unconfirmed && emitter.now < shift(deadline, CONFIRMATION_TIMEOUT)) return;',
    'if (unconfirmed) return;',
  ),
  broken(
    'an event that was right although lists contradicted it is missed',
    'judgements.ts',
    'if (contradiction === null || !hadHappened(container, stage, contradiction.received)) return false;',
    'if (true) return false;',
  ),
  broken(
    'the runtime was late itself where lists noticed before the event was overdue',
    'unobservableReason.ts',
    'shift(exact, overdueAfter) < from',
    'exact < from',
  ),
];

const OVERLOOKED: readonly Mutant[] = [
  broken(
    'a run that no list saw lasted up to the stretch between the lists, whatever its exact times',
    'shortLife.ts',
    'max: exact ?? longest',
    'max: longest',
  ),
  broken(
    'the stretch between two lists begins at the end of the first',
    'shortLife.ts',
    'longest: between(previous.start, answer.end),',
    'longest: between(previous.end, answer.end),',
  ),
  broken(
    'a container from before the first list has a short life between two lists',
    'shortLife.ts',
    'if (created === null || created < before) return null;',
    'if (created === null) return null;',
  ),
  broken(
    'a container whose last event came after the second list has a short life between two lists',
    'shortLife.ts',
    ' || last > after) return null;',
    ') return null;',
  ),
  broken('a short life is reported across a failed list', 'shortLife.ts', ' || !this.#consecutive', ''),
  broken(
    'a short life is reported for a stretch that was not covered',
    'shortLife.ts',
    'if (!this.#parts.coverage.covers(previous.start)) return null;',
    '',
  ),
  broken(
    'a failed start is a short life',
    'shortLife.ts',
    'if (interval === null || !stages.ran || times.proveFailedStart) return;',
    'if (interval === null || !stages.ran) return;',
  ),
  broken(
    'one list that shows two of a name running is proof',
    'duplicateContainers.ts',
    '({ before, now }) => before !== null && now !== null',
    '({ now }) => now !== null',
  ),
  broken(
    'what two lists show running is not compared with exact times',
    'duplicateContainers.ts',
    'const to = finished ?? now;',
    'const to = finished;',
  ),
  broken(
    'what the list before showed running has no start',
    'duplicateContainers.ts',
    'const from = started ?? before;',
    'const from = started;',
  ),
  broken(
    'the containers of one name are determined once',
    'duplicateContainers.ts',
    'if (this.#identityVersion !== identityVersion)',
    'if (this.#identityVersion === null)',
  ),
  broken(
    'a name that becomes known later is ignored',
    'trackedContainers.ts',
    '    container.identify(identity);\n    this.#identityVersion += 1;\n',
    '    container.identify(identity);\n',
  ),
  broken(
    'a container that regressed ran all the time',
    'duplicateContainers.ts',
    ' || to === null || hasRegressed',
    ' || to === null',
  ),
  broken('any overlap of exact times proves duplicates', 'duplicateContainers.ts', '> MIN_OVERLAP', '> 0'),
  broken(
    'a state that went back over UNKNOWN did not go back',
    'relisting.ts',
    "if (state === 'unknown') return;",
    "if (state === 'unknown') lists.recordShown(null as unknown as 'created');\n    if (state === 'unknown') return;",
  ),
  broken(
    'the end of what regressed is due once its event is spurious',
    'contradictions.ts',
    '{ ...standing, waived: true }',
    'standing',
  ),
  broken(
    'the start and the end of what regressed are due',
    'contradictions.ts',
    'expectations.waive(container, stage);',
    '',
  ),
  broken(
    'what a list saw running before it was lacked ran unseen',
    'shortLife.ts',
    'container.lists.shown === null && previous',
    'previous',
  ),
  broken(
    'what the list before showed as UNKNOWN ran unseen',
    'shortLife.ts',
    ' && previous?.items.has(container.id) === false',
    ' && previous !== null',
  ),
  broken(
    'duplicates are reported at every relist',
    'duplicateContainers.ts',
    'one.duplicates.has(other.id) ? null : proofOf(one, other, running)',
    'proofOf(one, other, running)',
  ),
];

const SILENT_REMOVALS: readonly Mutant[] = [
  broken(
    'a container that went with its sandbox is missed, although the runtime does not announce it',
    'absences.ts',
    'if (container.isSandbox || this.#parts.expectations.profile.announcesRemovedWithSandbox)',
    'if (true)',
  ),
  {
    name: 'a sandbox that is up in the same relist took nothing along',
    edits: [
      inFile('absences.ts', ' && sandboxes.start > absence.end) this', ') this'),
      inFile('relisting.ts', '    this.#absences.decide(sandboxes);\n', ''),
      inFile(
        'relisting.ts',
        '    this.#duplicates.report(relist, this.#previous);\n',
        '    this.#absences.decide(sandboxes);\n    this.#duplicates.report(relist, this.#previous);\n',
      ),
    ],
  },
  {
    ...broken(
      'it does not matter whether a sandbox was up before a container was gone',
      'absences.ts',
      ' && sandboxes.start > absence.end) this',
      ') this',
    ),
    survives:
      'absences are decided before the containers of the same relist are compared: by its sandboxes alone',
  },
  broken(
    'a sandbox on its way out took nothing along',
    'absences.ts',
    "?.state === 'running';\n      if (up",
    ' !== undefined;\n      if (up',
  ),
  broken(
    'what never ran is missed where it may be removed silently',
    'absences.ts',
    'if (up && stages.ran && sandboxes',
    'if (up && sandboxes',
  ),
];

const CLOCKS: readonly Mutant[] = [
  broken(
    'a bound that was computed from the wall clock outlives a step',
    'comparison.ts',
    'if (stepped) expectations.clockStepped();',
    '',
  ),
  broken(
    'a time that was placed just before a step was seen stays',
    'containerTimes.ts',
    '    this.#positions.fill(null);\n',
    '',
  ),
  broken(
    'a finding that rests on the wall clock outlives a step',
    'emitter.ts',
    'if (stepped) undo();\n      else this',
    'this',
  ),
  broken(
    'what a step took back is never reported',
    'emitter.ts',
    'if (stepped) undo();\n      else',
    'if (!stepped)',
  ),
  broken(
    'the bounds of a short life outlive a step',
    'shortLife.ts',
    'emitter.emitUnlessStepped(container.identity, finding(short), () => {',
    'emitter.emitUnlessStepped(container.identity, finding(short), () => emitter.emit(container.identity, finding(short)));\n    void (() => {',
  ),
  broken(
    'a short life is not reported where the clock was stepped',
    'shortLife.ts',
    'if (left !== null) emitter.emit(container.identity, finding(left));',
    '',
  ),
  broken(
    'an overlap of times outlives a step',
    'duplicateContainers.ts',
    'if (together === null) this',
    'if (together !== undefined) this',
  ),
  broken(
    'a time of another clock is placed once it lies ahead no longer',
    'containerTimes.ts',
    'if (!this.#foreign[i]) this',
    'this',
  ),
  broken('a time from before a step makes an event late', 'events.ts', 'times.holdsSince(at) && ', ''),
  broken(
    'a clock that was set little by little was not set',
    'wallClock.ts',
    'this.#distance = distance;\n    this.#min = Math.min(this.#min, distance);\n    this.#max = Math.max(this.#max, distance);',
    'this.#min = Math.min(this.#distance ?? distance, distance);\n    this.#max = Math.max(this.#distance ?? distance, distance);\n    this.#distance = distance;',
  ),
  broken(
    'a time that the clock showed twice is placed',
    'wallClock.ts',
    ' || this.#past.some(({ from, to }) => micros >= from && micros <= to)',
    '',
  ),
  broken(
    'a creation is placed to the microsecond',
    'monotonicTimes.ts',
    'created === null ? null : shift(created, -CLOCK_STEP);',
    'created;',
  ),
  broken(
    'an older status makes a known time unknown',
    'containerTimes.ts',
    'times[key] > 0n ? times[key] : (known?.[key] ?? 0n)',
    'times[key]',
  ),
  broken(
    'an older status makes a known exit code unknown',
    'containerTimes.ts',
    'times.finishedNs > 0n ? times : (known ?? times)',
    'times',
  ),
];

const MEMORY: readonly Mutant[] = [
  broken(
    'time in which ids are left out is covered',
    'comparison.ts',
    'coverage.tick(now, !containers.isLeavingOut);',
    'coverage.tick(now, true);',
  ),
  broken(
    'what has ended is forgotten at once',
    'trackedContainers.ts',
    'if (ended && container.lastSign < horizon)',
    'if (ended)',
  ),
  broken('what is waited for is forgotten', 'trackedContainers.ts', ' && !isWaiting(container);', ';'),
  broken(
    'what is running is forgotten when lists fail',
    'trackedContainers.ts',
    "(container.lists.state === 'non-existent' || unlisted) && ",
    '',
  ),
  broken(
    'what no list shows is forgotten by its first event',
    'events.ts',
    'known.recordSign(event.received);',
    '',
  ),
  broken(
    'a creation from before what is remembered is a bound',
    'monotonicTimes.ts',
    'from === null || from < shift(now, -REMEMBERED_FOR) ? null : from',
    'from',
  ),
  broken(
    'any number of ids is tracked',
    'trackedContainers.ts',
    'if (this.#containers.size >= MAX_CONTAINERS) {',
    'if (false) {',
  ),
  broken(
    'an event that no memory is left for is no stream gap',
    'expectations.ts',
    "if (!this.#parts.containers.keepEarly(id, stage, at)) this.streamGap(at, 'too_many_ids');",
    'this.#parts.containers.keepEarly(id, stage, at);',
  ),
  broken(
    'the gap of too many ids ends with any list',
    'trackedContainers.ts',
    'this.#gap !== null && this.#gap.last < end',
    'this.#gap !== null',
  ),
  broken(
    'what is listed is forgotten by when it was first listed',
    'trackedContainer.ts',
    '    this.#lastSign = answer.end;\n',
    '',
  ),
  broken(
    'what is listed as UNKNOWN is forgotten by when it was last listed otherwise',
    'relisting.ts',
    '    container.recordSign(answer.end);\n',
    '',
  ),
  broken(
    'an event of an unknown id is forgotten by the first one of that id',
    'trackedContainers.ts',
    'known.at = at;',
    '',
  ),
  broken(
    'an event of an unknown id is kept although a list shows the id',
    'trackedContainers.ts',
    'this.#early.delete(identity.id);',
    '',
  ),
];

const SKIPPING: readonly Mutant[] = [
  broken(
    'an unconfirmed event waits for a list that shows something else',
    'relisting.ts',
    'previous !== null && !confirmations.isAnyUnconfirmed) container.skip',
    'previous !== null) container.skip',
  ),
  broken(
    'the first list proves all that lists can prove of an id',
    'relisting.ts',
    'if (previous !== null && !confirmations.isAnyUnconfirmed)',
    'if (!confirmations.isAnyUnconfirmed)',
  ),
  broken(
    'an id is skipped whatever is received of it',
    'trackedContainers.ts',
    'container.compareAgain();\n      this',
    'this',
  ),
  broken('lists are skipped whatever is received of ids', 'trackedContainers.ts', 'this.#updates += 1;', ''),
  broken(
    'lists are skipped whoever comes or goes',
    'trackedContainers.ts',
    'return this.#identityVersion + this.#updates;',
    'return this.#updates;',
  ),
  broken('lists are skipped whatever they show', 'unchangedLists.ts', 'items === this.#items && ', ''),
  broken('lists are skipped though an id is absent', 'unchangedLists.ts', 'absent === 0 && ', ''),
  broken(
    'lists are skipped though an id may not be',
    'unchangedLists.ts',
    ' && unchanged.length === items.size',
    '',
  ),
  broken(
    'an id is skipped whatever lists show of it',
    'trackedContainer.ts',
    'return this.#unchangedItem === item;',
    'return this.#unchangedItem !== null;',
  ),
  broken(
    'an id is skipped though a list lacked it',
    'relisting.ts',
    'container.compareAgain();\n      this.#shortLives.absent(',
    'this.#shortLives.absent(',
  ),
];

const SILENCE: readonly Mutant[] = [
  broken(
    'an unknown runtime never sends what it is not known to send',
    'expectations.ts',
    'if (sandboxEvents.length === 0 && containerEvents.length === 0) return;',
    '',
  ),
  broken(
    'what may have happened before a stream was opened makes it silent',
    'coverage.ts',
    'if (from === null || from < session.opened) return false;',
    '',
  ),
  broken('a stream that was silent stays silent', 'coverage.ts', 'session.silent = false;', ''),
  broken(
    'what a runtime never sends is due',
    'expectations.ts',
    'if (coverage.isAbsent || !this.#announces(container, stage)) {',
    'if (coverage.isAbsent) {',
  ),
  broken(
    'what a runtime never sends is reported where it was not covered',
    'expectations.ts',
    'if (proof.from !== null && coverage.covers(proof.from)) this',
    'if (proof.from !== null) this',
  ),
  broken(
    'a stream that had events is silent',
    'coverage.ts',
    'session.events > 0 || session.silent',
    'session.silent',
  ),
  broken(
    'what happens while there is no stream is due to the next',
    'expectations.ts',
    'if (coverage.session === null) {',
    'if (false) {',
  ),
];

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'nothing',
    edits: [],
    survives: 'it is the unedited tree: a test that fails here fails for another reason',
  },
  ...SESSIONS,
  ...COVERAGE,
  ...WINDOWS,
  ...PROOFS,
  ...RUNS,
  ...DEADLINES,
  ...DISCHARGES,
  ...CLASSIFICATION,
  ...CONFIRMATIONS,
  ...UNOBSERVABLE,
  ...OVERLOOKED,
  ...SILENT_REMOVALS,
  ...CLOCKS,
  ...MEMORY,
  ...SKIPPING,
  ...SILENCE,
];
