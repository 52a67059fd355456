/*
 * Counters and records. Each transition that was due is in exactly one of the counters. Nothing is unobservable that had come
 * fresh before, spurious events and ids with wrong views aside.
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
        handedOverAt(truth, each) < reported.reportedAt &&
        isFresh(truth, each),
    ),
  );
  return { wrong: [...adds, ...contradicted.map(nameOf)], overlooked: [], clear: expected };
};
