/*
 * ComparisonCounters and records. Each transition that was due is in exactly one of the counters; nothing that came fresh before is
 * said to be unobservable, spurious events and ids with wrong views aside; and at the end nothing is accused that came.
 */
import { handedOverAt } from '../histories/comparisonRun.ts';
import { findingsOf, isFresh, isPlain, nameOf, type Oracle } from './oracle.ts';

export const counters: Oracle = (run) => {
  const { truth, outcome } = run;
  const { expected, matched, missed, unobservable } = outcome.counters;
  const sum = matched + missed + unobservable + outcome.pending;
  const adds = expected === sum ? [] : [`${expected} expected, ${sum} accounted for`];
  const contradicted = findingsOf(run, 'unobservable').filter((reported) =>
    truth.deliveries.some(
      (each) =>
        `${each.of.container.id} ${each.of.type}` === nameOf(reported) &&
        isPlain(truth, each.of.container) &&
        !each.of.digest &&
        handedOverAt(truth, each) < reported.turn &&
        isFresh(truth, each),
    ),
  );
  return { wrong: [...adds, ...contradicted.map(nameOf)], overlooked: [], clear: expected };
};
