/*
 * Figures and records. Each transition that was due is in exactly one of the figures; nothing that came fresh before is
 * said to be unobservable, spurious events and ids with wrong views aside; and at the end nothing is accused that came.
 */
import { handedAt } from '../histories/playing.ts';
import { isFresh, isPlain, nameOf, type Oracle, saidOf } from './story.ts';

export const figures: Oracle = (story) => {
  const { truth, played } = story;
  const { expected, matched, missed, unobservable } = played.figures;
  const sum = matched + missed + unobservable + played.awaited;
  const adds = expected === sum ? [] : [`${expected} expected, ${sum} accounted for`];
  const contradicted = saidOf(story, 'unobservable').filter((said) =>
    truth.deliveries.some(
      (each) =>
        `${each.of.subject.id} ${each.of.type}` === nameOf(said) &&
        isPlain(truth, each.of.subject) &&
        !each.of.digest &&
        handedAt(truth, each) < said.turn &&
        isFresh(truth, each),
    ),
  );
  return { wrong: [...adds, ...contradicted.map(nameOf)], overlooked: [], clear: expected };
};
