/*
 * The evidence of a session as SPEC.md describes it, by the real coverage.
 */
import { Coverage } from '../../src/agent/compare/coverage.ts';
import { mono } from '../../src/protocol/units.ts';
import { drive } from './specification.ts';

const START = mono(0);
const OPENED = mono(10);
const EVENT = mono(20);
const LATER = mono(30);

const receive = (coverage: Coverage, session: number) =>
  coverage.received({
    ...{ session, received: EVENT, id: 'c1', type: 1, createdNs: 0n },
    ...{ hasSandboxStatus: true, object: null, times: null, others: [] },
  });

function unannounced(coverage: Coverage): void {
  for (let changes = 0; changes < 10; changes += 1) coverage.countUnannounced(LATER);
}

/** A coverage after these steps. */
const after =
  (...steps: ((coverage: Coverage) => unknown)[]) =>
  () => {
    const coverage = new Coverage(START);
    for (const step of steps) step(coverage);
    return coverage;
  };
const open = (coverage: Coverage) => coverage.open(1, OPENED, 0n);
const arm = (coverage: Coverage) => receive(coverage, 1);

drive('The evidence', {
  states: {
    absent: after(),
    down: after(open, (coverage) => coverage.close('down')),
    arming: after(open),
    silent: after(open, unannounced),
    armed: after(open, arm),
    covered: after(open, arm, (coverage) => coverage.relisted(LATER)),
  },
  events: {
    opened: (coverage) => coverage.open(2, LATER, 0n),
    event: (coverage) => receive(coverage, 1),
    'event of an older session': (coverage) => receive(coverage, 0),
    'unreadable event': (coverage) => coverage.eventLost(LATER),
    'list begun after the first event': (coverage) => coverage.relisted(LATER),
    'list begun before': (coverage) => coverage.relisted(OPENED),
    'ten changes without an event': unannounced,
    'gap within the session': (coverage) => coverage.streamGap(LATER),
    ended: (coverage) => coverage.close('down'),
    'policy forbids': (coverage) => coverage.close('absent'),
  },
  stateOf: ({ isAbsent, session }) => {
    if (session === null) return isAbsent ? 'absent' : 'down';
    if (session.silent) return 'silent';
    if (session.armed === null) return 'arming';
    return session.baseline ? 'covered' : 'armed';
  },
});
