/*
 * The rules of the comparison (src/agent/compare), each broken in one place. The name of a mutant says what it does instead.
 *
 * A mutant that no test can notice says why it survives; one that no test does notice is a test that is missing.
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
    'a list that was begun before the stream was armed is a baseline',
    'ledger.ts',
    'if (first > coverage.armed) coverage.baseline = true;',
    'if (containers.end > coverage.armed) coverage.baseline = true;',
  ),
  broken('what lies before the arming is covered', 'coverage.ts', 'from >= coverage.armed &&', ''),
  broken(
    'a new session takes over what was due to the old one',
    'ledger.ts',
    "this.unsubscribed('down');\n    this.coverage = openSession(",
    'this.coverage = openSession(',
  ),
  broken(
    'what was reached before a session is due to it',
    'ledger.ts',
    'for (const life of this.lives) waiveUpTo(life, life.reached);',
    '',
  ),
  broken(
    'an event of an older session counts',
    'events.ts',
    'coverage.session !== event.session',
    'coverage.session < event.session',
  ),
  broken(
    'the last event of a session arms it',
    'events.ts',
    'session.armed ??= event.received;',
    'session.armed = event.received;',
  ),
];

const COVERAGE: readonly Mutant[] = [
  broken('what lies before a hole is covered', 'coverage.ts', 'from >= coverage.since\n', 'true\n'),
  broken(
    'a hole leaves what is due as it was',
    'ledger.ts',
    'if (expectation.from === null || until >= expectation.from) {',
    'if (false) {',
  ),
  broken(
    'a hole takes what began after it too',
    'ledger.ts',
    'if (expectation.from === null || until >= expectation.from) {',
    'if (true) {',
  ),
  broken(
    'a hole that is told late brings back what a later one took',
    'ledger.ts',
    'if (until > this.coverage.since) this.coverage.since = until;',
    'this.coverage.since = until;',
  ),
  broken(
    'a verdict does not wait until the reader has drained past its deadline',
    'ledger.ts',
    "if (coverage.is !== 'open' || coverage.watermark < deadline) return;",
    "if (coverage.is !== 'open') return;",
  ),
  broken(
    'what one session has drained is drained of another',
    'comparison.ts',
    'coverage.session === session && ',
    '',
  ),
  broken('what was drained can go back', 'comparison.ts', ' && watermark > coverage.watermark', ''),
];

const WINDOWS: readonly Mutant[] = [
  broken(
    'a window begins at the end of the list that showed the stage before',
    'relisting.ts',
    'if (next !== undefined) raiseFloors(life, next, answer.start);',
    'if (next !== undefined) raiseFloors(life, next, answer.end);',
  ),
  broken(
    'a creation is after the end of the list that lacked the id',
    'relisting.ts',
    'raiseFloors(life, CREATED, previous.start);',
    'raiseFloors(life, CREATED, previous.end);',
  ),
  broken(
    'an id that a list had not followed was not there',
    'relisting.ts',
    'return !items.has(id) && start',
    'return start',
  ),
  broken(
    'a list from before what is remembered says since when an id is there',
    'relisting.ts',
    ' && start >= shift(this.#outbox.now, -REMEMBER)',
    '',
  ),
  broken(
    'a list that could not be read whole says what is gone',
    'relisting.ts',
    'answer.whole ? this.#compareAbsences(answer, previous, sandboxes) : null',
    'this.#compareAbsences(answer, previous, sandboxes)',
  ),
  broken(
    'a list that could not be read whole says since when an id is there',
    'relisting.ts',
    'containers: containers.whole ? containers : this.#previous.containers,',
    'containers,',
  ),
  broken(
    'an answer that is older than an event says that the id is gone',
    'relisting.ts',
    'const older = life.heard !== null && answer.start <= life.heard;',
    'const older = false;',
  ),
  broken(
    'a sandbox is never announced gone before it leaves the list',
    'relisting.ts',
    'life.listed ? this.#ledger.profile.lead : 0;',
    'life.listed ? 0 : 0;',
  ),
  broken(
    'a sandbox can be announced gone before its creation',
    'relisting.ts',
    'mono(Math.max(bound.from - lead, created))',
    'mono(bound.from - lead)',
  ),
  broken(
    'the last lower bound that becomes known holds',
    'ledger.ts',
    'if (expectation.from !== null) return;',
    '',
  ),
  broken(
    'an event that comes again does not put the verdict off',
    'ledger.ts',
    'if (by !== null && by === expectation.by && to > expectation.to) expectation.to = to;',
    '',
  ),
  broken(
    'an id that is listed again was gone since it was first lacked',
    'relisting.ts',
    'life.absence = null;',
    '',
  ),
  {
    ...broken(
      'the last list that lacks an id says when it was gone',
      'relisting.ts',
      'life.absence ??= spanOf(answer);',
      'life.absence = spanOf(answer);',
    ),
    survives: 'the first is judged before a second one is compared',
  },
  broken(
    'what a list shows without a bound is bounded by its creation',
    'ledger.ts',
    'if (life.listed) return {',
    'if (life.listed && life.floors[stage] !== null) return {',
  ),
];

const PROOFS: readonly Mutant[] = [
  broken(
    'a list that shows an id exited does not prove that it started',
    'relisting.ts',
    'if (life.ran) this.#proveListed(life, STARTED, state, to);',
    "if (state === 'running') this.#proveListed(life, STARTED, state, to);",
  ),
  broken(
    'an id that is listed again stays gone',
    'relisting.ts',
    "this.#ledger.retract(life, DELETED, 'listed_again');",
    '',
  ),
  broken(
    'an accusation stands although the id is listed again',
    'ledger.ts',
    '      this.#takeBack(life, standing.finding, this.#outbox.now);\n',
    '      this.#counters.missed -= 1;\n',
  ),
  broken(
    'a later event does not prove an earlier stage',
    'events.ts',
    'if (stage > STARTED && life.ran) this.#ledger.prove(life, STARTED, proof(STARTED));',
    '',
  ),
  broken(
    'the removal of what never ran proves that it stopped',
    'events.ts',
    'if (stage > STOPPED && life.ran)',
    'if (stage > STOPPED)',
  ),
  broken(
    'a status of another id proves no end',
    'events.ts',
    "if (state === 'exited') this.#ledger.prove(life, STOPPED, proof(STOPPED));",
    '',
  ),
  broken(
    'what the first list of an agent shows is due',
    'relisting.ts',
    'if (previous === null) waiveUpTo(life, stageShown(item.state));\n    else this',
    'this',
  ),
  broken('UNKNOWN proves an end', 'relisting.ts', "if (item.state === 'unknown') return;\n", ''),
  broken(
    'a status that is UNKNOWN proves a creation',
    'events.ts',
    "life === undefined || state === 'unknown') return;",
    'life === undefined) return;',
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
    'this.#ledger.announce(life, stage, event.received);',
    'if (!replayed) this.#ledger.announce(life, stage, event.received);',
  ),
  broken(
    'an event that was built before the subscription is replayed, whatever came before it',
    'events.ts',
    'return session.replaying;',
    'return event.createdNs < session.openedNs;',
  ),
  broken(
    'an id that is listed again is past its end',
    'relisting.ts',
    'life.reached = life.shown === null ? CREATED : stageShown(life.shown);',
    '',
  ),
  {
    ...broken(
      'what lists have shown is proven again by each',
      'ledger.ts',
      "return stage > life.reached || is === 'none' || is === 'expected';",
      'return true;',
    ),
    survives: 'a proof of what is settled changes nothing: not to make it only saves time',
  },
  broken(
    'a status says before any list that a container ended',
    'events.ts',
    "const ended = life.times.finishedNs > 0n && life.shown === 'exited';",
    'const ended = life.times.finishedNs > 0n;',
  ),
  broken(
    'an event does not say who an id is',
    'events.ts',
    'if (event.object !== null) this.#ledger.lives.identify(known, completed(known.object, event.object));',
    '',
  ),
  broken(
    'a list does not say who an id is',
    'relisting.ts',
    'this.#ledger.lives.identify(life, { ...completed(life.object, item.object), isSandbox });',
    '',
  ),
];

const RUNS: readonly Mutant[] = [
  broken(
    'a start that failed is a run',
    'trackedContainer.ts',
    'times.startedNs > 0n && !startFailed(times)',
    'times.startedNs > 0n',
  ),
  broken(
    'what has not ended is a start that failed',
    'trackedContainer.ts',
    'if (finishedNs <= 0n) return false;',
    '',
  ),
  broken(
    'what started in the instant of its creation is a start that failed',
    'trackedContainer.ts',
    '(startedNs === createdNs && startedNs === finishedNs)',
    'startedNs === createdNs',
  ),
  broken(
    'the start of what failed to start is missed',
    'unobservableReason.ts',
    'startFailed(life.times)) {',
    'false) {',
  ),
  broken('a start that failed is told twice', 'ledger.ts', 'if (stage !== STOPPED) return;', ''),
  broken(
    'a STOPPED that says that the start failed says that it ran',
    'events.ts',
    'return times === null ? failedStartsUnannounced : !startFailed(times);',
    'return times === null ? failedStartsUnannounced : true;',
  ),
  broken(
    'a STOPPED without a status says that it ran, whatever the runtime',
    'events.ts',
    'return times === null ? failedStartsUnannounced : !startFailed(times);',
    'return times === null || !startFailed(times);',
  ),
  broken(
    'a STOPPED without its payload says that it ran',
    'events.ts',
    'if (event.object === null) return false;',
    '',
  ),
  broken('nobody queries whether what exited ever ran', 'relisting.ts', 'this.#outbox.ask(life.object);', ''),
  broken(
    'a sandbox that never came up was created with an event',
    'events.ts',
    'const provesCreated = !life.object.isSandbox || life.ran;',
    'const provesCreated = true;',
  ),
  broken(
    'a sandbox that is known only by its status was created with an event',
    'events.ts',
    'if (!life.object.isSandbox || life.ran) this.#ledger.prove(life, CREATED',
    'this.#ledger.prove(life, CREATED',
  ),
];

const DEADLINES: readonly Mutant[] = [
  broken(
    'what is overdue is told before the overdueAfter is over',
    'ledger.ts',
    'this.#outbox.now >= shift(expectation.to, this.#options.overdueAfter)',
    'this.#outbox.now >= expectation.to',
  ),
  broken(
    'the time to missedAfter is counted from the start of the window',
    'ledger.ts',
    'const deadline = shift(expectation.to, this.#options.missedAfter);',
    'const deadline = shift(expectation.from ?? expectation.to, this.#options.missedAfter);',
  ),
  broken(
    'of a storm everything overdue is told',
    'ledger.ts',
    'if (!this.#overdue.tryTake(now)) return;',
    '',
  ),
  broken(
    'the verdict on what was told to be overdue has another id',
    'ledger.ts',
    'expectation.finding = finding;',
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
    'an accusation stands although its event comes',
    'ledger.ts',
    '      this.#takeBack(life, standing.finding, at);\n',
    '      this.#counters.missed -= 1;\n',
  ),
  broken(
    'an event that came before anything proved its stage is not counted',
    'ledger.ts',
    "const countedNow = standing.is === 'none' && isCovered(this.coverage);",
    'const countedNow = false;',
  ),
  broken(
    'an event of an id that no list has shown yet is lost',
    'ledger.ts',
    'for (const stage of followed.early) this.announce(followed.life, stage, at);',
    '',
  ),
  broken(
    'an event that nobody understands is none that is due later',
    'ledger.ts',
    'life.tainted = true;',
    '',
  ),
  broken(
    'an event that nobody understands is none that is due already',
    'ledger.ts',
    "if (standing.is === 'expected') this.#giveUp(life, stage, standing.expectation, 'unknown_event_type');",
    '',
  ),
];

const HEARD: readonly Mutant[] = [
  {
    name: 'late comes before duplicate',
    edits: [
      inFile(
        'eventClassifier.ts',
        "  if (life.standings[stage].is === 'announced') return verdict('duplicate', 'same_type_again');\n",
        '',
      ),
      inFile(
        'eventClassifier.ts',
        '  if (life.furthest > stage) return',
        "  if (life.standings[stage].is === 'announced') return verdict('duplicate', 'same_type_again');\n  if (life.furthest > stage) return",
      ),
    ],
  },
  broken(
    'out_of_order comes before late',
    'eventClassifier.ts',
    'if (isLate(occurred, lateness, hearing)) {',
    "if (life.furthest > stage) return verdict('out_of_order', 'after_a_later_stage');\n  if (isLate(occurred, lateness, hearing)) {",
  ),
  broken(
    'stale comes before out_of_order',
    'eventClassifier.ts',
    'if (life.furthest > stage) return',
    "if (isStale(life, hearing)) return verdict('stale', 'after_the_list', true);\n  if (life.furthest > stage) return",
  ),
  broken(
    'an event after its missed is late by its true time alone',
    'eventClassifier.ts',
    "if (life.standings[stage].is === 'missed') return verdict('late', 'after_missed');",
    '',
  ),
  broken(
    'a delay that may be our own reader’s makes an event late',
    'eventClassifier.ts',
    'if (received > shift(drained, lateAfter) && drained <= shift(occurred, lateAfter)) return false;',
    '',
  ),
  broken(
    'an event is stale although we were away since it was built',
    'eventClassifier.ts',
    ' && watchedSince(built)',
    '',
  ),
  broken(
    'the last list that showed a stage passed makes its event stale',
    'relisting.ts',
    'life.passed[stage] ??= spanOf(answer)',
    'life.passed[stage] = spanOf(answer)',
  ),
  broken('what went back is told to come out of order', 'ledger.ts', 'if (life.regressed) return null;', ''),
  broken(
    'a list that lacks an id does not show its stages passed',
    'relisting.ts',
    'if (life.listed) passedBefore(life, DELETED, answer);',
    '',
  ),
  broken(
    'a list that lacks an id that none ever showed shows its stages passed',
    'relisting.ts',
    'if (life.listed) passedBefore(life, DELETED, answer);',
    'passedBefore(life, DELETED, answer);',
  ),
  broken(
    'what lists contradicted puts others out of order',
    'ledger.ts',
    'life.furthest = STAGES.findLast((each) => life.heardAt[each] !== null) ?? -1;',
    '',
  ),
];

const CLAIMS: readonly Mutant[] = [
  broken(
    'one list makes an event spurious',
    'eventConfirmation.ts',
    'const ENOUGH = 2;',
    'const ENOUGH = 1;',
  ),
  broken(
    'a list that was begun before an event contradicts it',
    'eventConfirmation.ts',
    'list.start > shift(open.received, lead) && ',
    '',
  ),
  broken(
    'a sandbox that is listed within the lead contradicts its DELETED',
    'relisting.ts',
    'const lead = life.object.isSandbox ? this.#ledger.profile.lead : millis(0);',
    'const lead = millis(0);',
  ),
  broken(
    'UNKNOWN contradicts any event',
    'eventConfirmation.ts',
    '(shown !== null || stage === DELETED)',
    '(shown === null || shown < stage)',
  ),
  broken(
    'an event that was said again is taken back with the first',
    'relisting.ts',
    'if (again) continue;',
    '',
  ),
  broken(
    'an event is spurious although its exact time bears it out',
    'relisting.ts',
    'if (hadHappened(life, stage, received)) continue;',
    '',
  ),
  broken(
    'what only a spurious event proved is due',
    'ledger.ts',
    "if (byIt) this.retract(life, earlier, 'spurious');",
    '',
  ),
  broken(
    'a spurious event discharges what it announced',
    'ledger.ts',
    "this.settle(life, stage, { is: standing.waived ? 'waived' : 'none' });",
    '',
  ),
  broken(
    'what was not due before a spurious event is due after it',
    'ledger.ts',
    "is: standing.waived ? 'waived' : 'none'",
    "is: 'none'",
  ),
  broken(
    'a spurious event says that the id ran',
    'relisting.ts',
    "life.ran = life.shown === 'running' || (life.times !== null && everRan(life.times));",
    '',
  ),
  broken(
    'what is said again while it is open was said once',
    'eventConfirmation.ts',
    'else open.again = received;',
    '',
  ),
  broken(
    'an event that comes after a spurious one is a duplicate',
    'ledger.ts',
    'life.heardAt[stage] = null;',
    '',
  ),
  broken(
    'an id stays at the stage of its spurious event',
    'relisting.ts',
    'if (shown !== null) life.reached = shown;',
    '',
  ),
];

const EXCUSES: readonly Mutant[] = [
  broken(
    'what was proven before the baseline is missed',
    'unobservableReason.ts',
    "if (!expectation.coverable) return 'before_baseline';",
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
    "if (!covers(coverage, expectation.from)) return 'window_not_covered';",
    '',
  ),
  broken(
    'what lists contradicted is missed although nothing tells which was wrong',
    'unobservableReason.ts',
    "if (exact === null && life.refuted[stage] !== null) return 'contradicted';",
    '',
  ),
  broken(
    'an end that the lists of a runtime that was started again show late is missed',
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
    'if (exact !== null && !covers(coverage, shift(exact, -STEP)))',
    'if (false)',
  ),
  broken(
    'an exact time is trusted to the microsecond',
    'unobservableReason.ts',
    '!covers(coverage, shift(exact, -STEP))',
    '!covers(coverage, exact)',
  ),
  broken(
    'something is missed on the word of an event alone',
    'ledger.ts',
    'const unconfirmed = expectation.by !== null && isOpen(life, expectation.by);',
    'const unconfirmed = false;',
  ),
  broken(
    'a list that confirms an event is waited for without end',
    'ledger.ts',
    'if (unconfirmed && this.#outbox.now < shift(deadline, PATIENCE)) return;',
    'if (unconfirmed) return;',
  ),
  broken(
    'an event that was right although lists contradicted it is missed',
    'ledger.ts',
    'if (refuted === null || !hadHappened(life, stage, refuted.received)) return false;',
    'if (true) return false;',
  ),
  broken(
    'the runtime was late itself where lists noticed within the overdueAfter',
    'unobservableReason.ts',
    'shift(exact, overdueAfter) < from',
    'exact < from',
  ),
];

const OVERLOOKED: readonly Mutant[] = [
  broken(
    'a run that no list saw lasted up to the stretch between the lists, whatever its exact times',
    'shortLife.ts',
    'most: exact ?? longest',
    'most: longest',
  ),
  broken(
    'the stretch between two lists begins at the end of the first',
    'relisting.ts',
    'longest: between(previous.start, answer.end),',
    'longest: between(previous.end, answer.end),',
  ),
  broken(
    'a life that began before the first list is one between two lists',
    'shortLife.ts',
    'if (created === null || created < before) return null;',
    'if (created === null) return null;',
  ),
  broken(
    'a life whose last event came after the second list is one between two lists',
    'shortLife.ts',
    ' || last > after) return null;',
    ') return null;',
  ),
  broken('a short life is told across a list that failed', 'relisting.ts', ' || !this.#consecutive', ''),
  broken(
    'a short life is told of a stretch that was not watched',
    'relisting.ts',
    'if (!covers(this.#ledger.coverage, previous.start)) return null;',
    '',
  ),
  broken(
    'a start that failed is a short life',
    'relisting.ts',
    'if (life.unseen === null || !life.ran || failed) return;',
    'if (life.unseen === null || !life.ran) return;',
  ),
  broken(
    'one list that shows two of a name running is a proof',
    'duplicateContainers.ts',
    '({ before, now }) => before !== null && now !== null',
    '({ now }) => now !== null',
  ),
  broken(
    'what two lists show running is not held against exact times',
    'duplicateContainers.ts',
    'const to = finished ?? now;',
    'const to = finished;',
  ),
  broken(
    'what the list before showed running has no beginning',
    'duplicateContainers.ts',
    'const from = started ?? before;',
    'const from = started;',
  ),
  broken(
    'who is of one name is found out once',
    'duplicateContainers.ts',
    'if (this.#revision !== lives.revision)',
    'if (this.#revision === null)',
  ),
  broken(
    'a name that becomes known later is nobody’s',
    'trackedContainers.ts',
    '    life.object = object;\n    this.#revision += 1;\n',
    '    life.object = object;\n',
  ),
  broken(
    'what went back ran all the time',
    'duplicateContainers.ts',
    ' || to === null || regressed',
    ' || to === null',
  ),
  broken('any overlap of exact times makes twins', 'duplicateContainers.ts', '> LEAST_OVERLAP', '> 0'),
  broken(
    'a state that went back over UNKNOWN did not go back',
    'relisting.ts',
    "if (item.state === 'unknown') return;",
    "if (item.state === 'unknown') life.shown = null;\n    if (item.state === 'unknown') return;",
  ),
  broken(
    'the end of what went back is due once its event is spurious',
    'relisting.ts',
    '{ ...standing, waived: true }',
    'standing',
  ),
  broken(
    'the start and the end of what went back are due',
    'relisting.ts',
    "this.#ledger.settle(life, stage, { is: 'waived' });",
    '',
  ),
  broken(
    'what a list saw running before it was lacked ran unseen',
    'relisting.ts',
    'life.shown === null && previous',
    'previous',
  ),
  broken(
    'what the list before showed as UNKNOWN ran unseen',
    'relisting.ts',
    ' && previous?.items.has(life.object.id) === false',
    ' && previous !== null',
  ),
  broken(
    'twins are told at every relist',
    'duplicateContainers.ts',
    'one.twins.has(other.object.id) ? null : proofOf(one, other, runs)',
    'proofOf(one, other, runs)',
  ),
];

const SILENT_REMOVALS: readonly Mutant[] = [
  broken(
    'a container that went with its sandbox is missed, although the runtime says nothing of it',
    'relisting.ts',
    'if (life.object.isSandbox || this.#ledger.profile.announcesRemovedWithSandbox)',
    'if (true)',
  ),
  {
    name: 'a sandbox that is up in the same relist took nothing along',
    edits: [
      inFile('relisting.ts', ' && sandboxes.start > life.absence.end) this', ') this'),
      inFile('relisting.ts', '    this.#judgeAbsences(sandboxes);\n', ''),
      inFile(
        'relisting.ts',
        '    this.#recordTwins(relist);\n',
        '    this.#judgeAbsences(sandboxes);\n    this.#recordTwins(relist);\n',
      ),
    ],
  },
  {
    ...broken(
      'whether a sandbox was up before a container was gone is not asked',
      'relisting.ts',
      ' && sandboxes.start > life.absence.end) this',
      ') this',
    ),
    survives:
      'absences are judged before the containers of the same relist are compared: by its sandboxes alone',
  },
  broken(
    'a sandbox on its way out took nothing along',
    'relisting.ts',
    "?.state === 'running';\n      if (up",
    ' !== undefined;\n      if (up',
  ),
  broken(
    'what never ran is missed where it may go silently',
    'relisting.ts',
    'if (up && life.ran && sandboxes',
    'if (up && sandboxes',
  ),
];

const CLOCKS: readonly Mutant[] = [
  broken(
    'a bound that was read off the wall clock outlives a step',
    'ledger.ts',
    'if (stepped) this.#clockStepped();',
    '',
  ),
  broken(
    'a time that was placed just before a step was seen stays',
    'monotonicTimes.ts',
    '        life.moments.fill(null);\n',
    '',
  ),
  broken(
    'a finding that rests on the wall clock outlives a step',
    'emitter.ts',
    'if (stepped) undo();\n      else this',
    'this',
  ),
  broken(
    'what a step took back is never told',
    'emitter.ts',
    'if (stepped) undo();\n      else',
    'if (!stepped)',
  ),
  broken(
    'an overlap of times outlives a step',
    'relisting.ts',
    'if (together === null) this',
    'if (together !== undefined) this',
  ),
  broken(
    'a time of another clock is placed when it lies ahead no longer',
    'monotonicTimes.ts',
    'if (!life.foreign[i]) life',
    'life',
  ),
  broken(
    'a time from before a step says that an event is late',
    'ledger.ts',
    'this.#moments.holdsSince(at) && ',
    '',
  ),
  broken(
    'a clock that was set little by little was not set',
    'wallClock.ts',
    'this.#distance = distance;\n    this.#least = Math.min(this.#least, distance);\n    this.#most = Math.max(this.#most, distance);',
    'this.#least = Math.min(this.#distance ?? distance, distance);\n    this.#most = Math.max(this.#distance ?? distance, distance);\n    this.#distance = distance;',
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
    'created === null ? null : shift(created, -STEP);',
    'created;',
  ),
  broken(
    'an older status makes a known time unknown',
    'monotonicTimes.ts',
    'times[key] > 0n ? times[key] : (known?.[key] ?? 0n)',
    'times[key]',
  ),
  broken(
    'an older status makes a known exit code unknown',
    'monotonicTimes.ts',
    'times.finishedNs > 0n ? times : (known ?? times)',
    'times',
  ),
];

const MEMORY: readonly Mutant[] = [
  broken(
    'time in which ids are left out is covered',
    'ledger.ts',
    'if (!this.lives.isShedding)',
    'if (this.lives.isShedding !== null)',
  ),
  broken(
    'what has ended is forgotten at once',
    'trackedContainers.ts',
    'if (ended && life.lastSign < horizon)',
    'if (ended)',
  ),
  broken('what is waited for is forgotten', 'trackedContainers.ts', ' && !isWaiting(life);', ';'),
  broken(
    'what is running is forgotten when lists fail',
    'trackedContainers.ts',
    "(life.state === 'non-existent' || unlisted) && ",
    '',
  ),
  broken(
    'what no list shows is forgotten by when it was first heard of',
    'events.ts',
    'known.lastSign = event.received;',
    '',
  ),
  broken(
    'a creation from before what is remembered is a bound',
    'monotonicTimes.ts',
    'from === null || from < shift(now, -REMEMBER) ? null : from',
    'from',
  ),
  broken(
    'any number of ids is followed',
    'trackedContainers.ts',
    'if (this.#lives.size >= MAX_LIVES) {',
    'if (false) {',
  ),
  broken(
    'an event that no memory is left for is no hole',
    'ledger.ts',
    "if (!this.lives.keepUnplaced(id, stage, at)) this.streamGap(at, 'too_many_ids');",
    'this.lives.keepUnplaced(id, stage, at);',
  ),
  broken(
    'the gap of too many ids ends with any list',
    'trackedContainers.ts',
    'this.#shedding !== null && this.#shedding.last < end',
    'this.#shedding !== null',
  ),
  broken(
    'what is listed is forgotten by when it was first listed',
    'relisting.ts',
    'life.lastSign = answer.end;\n  const next',
    'const next',
  ),
  broken(
    'what is listed as unknown is forgotten by when it was last listed otherwise',
    'relisting.ts',
    'life.lastSign = answer.end;\n    this.#change(',
    'this.#change(',
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
    'this.#unplaced.delete(object.id);',
    '',
  ),
];

const REST: readonly Mutant[] = [
  broken(
    'a claim waits for a list that shows something else',
    'relisting.ts',
    ' && !hasOpen(life)) life.rest = item;',
    ') life.rest = item;',
  ),
  broken(
    'the first list says all that lists can say of an id',
    'relisting.ts',
    'if (previous !== null && !hasOpen(life))',
    'if (!hasOpen(life))',
  ),
  broken('an id rests whatever came of it', 'trackedContainers.ts', 'life.rest = null;\n      this', 'this'),
  broken('a node stays quiet whatever comes of its ids', 'trackedContainers.ts', 'this.#entries += 1;', ''),
  broken(
    'a node stays quiet whoever comes or goes',
    'trackedContainers.ts',
    'return this.#revision + this.#entries;',
    'return this.#entries;',
  ),
  broken('a node stays quiet whatever lists show', 'unchangedLists.ts', 'items === this.#items && ', ''),
  broken('a node is quiet though an id is absent', 'unchangedLists.ts', 'absent === 0 && ', ''),
  broken('a node is quiet though an id is not', 'unchangedLists.ts', ' && resting.length === items.size', ''),
  broken(
    'an id rests whatever lists show of it',
    'trackedContainers.ts',
    'return life?.rest === item ? life : undefined;',
    'return life?.rest ? life : undefined;',
  ),
  broken(
    'an id rests though a list lacked it',
    'relisting.ts',
    'life.rest = null;\n    this.#recordShortLife(',
    'this.#recordShortLife(',
  ),
];

const SILENCE: readonly Mutant[] = [
  broken(
    'a runtime that nothing is known of never sends what it is not known to send',
    'ledger.ts',
    'if (sandboxEvents.length === 0 && containerEvents.length === 0) return;',
    '',
  ),
  broken(
    'what may have happened before a stream was opened makes it silent',
    'ledger.ts',
    ' || from === null || from < session.opened) return;',
    ') return;',
  ),
  broken('a stream that was silent stays silent', 'events.ts', 'session.silent = false;', ''),
  broken(
    'what a runtime never sends is due',
    'ledger.ts',
    "if (coverage.is === 'absent' || !this.#announces(life, stage)) {",
    "if (coverage.is === 'absent') {",
  ),
  broken(
    'what a runtime never sends is told where it was not watched',
    'ledger.ts',
    'if (proof.from !== null && covers(coverage, proof.from)) this',
    'if (proof.from !== null) this',
  ),
  broken(
    'a stream that was heard of is silent',
    'ledger.ts',
    'if (session.events > 0 || session.silent',
    'if (session.silent',
  ),
  broken(
    'what happens while there is no stream is due to the next',
    'ledger.ts',
    "if (coverage.is === 'down') {",
    'if (false) {',
  ),
];

export const MUTANTS: readonly Mutant[] = [
  { name: 'nothing', edits: [], survives: 'it is the tree as it is: what fails here fails by itself' },
  ...SESSIONS,
  ...COVERAGE,
  ...WINDOWS,
  ...PROOFS,
  ...RUNS,
  ...DEADLINES,
  ...DISCHARGES,
  ...HEARD,
  ...CLAIMS,
  ...EXCUSES,
  ...OVERLOOKED,
  ...SILENT_REMOVALS,
  ...CLOCKS,
  ...MEMORY,
  ...REST,
  ...SILENCE,
];
