import { expect, test } from 'vitest';
import { identityOf } from '../../../test/engine/timeline.ts';
import { mono } from '../../protocol/units.ts';
import { findTwins, Namesakes } from './duplicateContainers.ts';
import { Outbox } from './emitter.ts';
import { Lives, REMEMBER } from './trackedContainers.ts';

test('what is forgotten is forgotten by its twins too', () => {
  const lives = new Lives(new Outbox(mono(0), () => ''));
  const followed = (id: string) =>
    lives.follow({ ...identityOf(id), podUid: 'u', container: 'app' }, mono(0));
  const one = followed('c1');
  followed('c2');
  expect(findTwins(new Namesakes().among(lives), () => ({ before: mono(1), now: mono(2) }))).toHaveLength(1);
  expect([...(one?.life.twins ?? [])]).toEqual(['c2']);
  lives.forget(mono(REMEMBER + 1), (life) => life === one?.life);
  expect(lives.remembered).toBe(1);
  expect([...(one?.life.twins ?? [])]).toEqual([]);
});

test('it is a new revision when a life comes, is known better, or goes', () => {
  const lives = new Lives(new Outbox(mono(0), () => ''));
  const revisions = [lives.revision];
  const followed = lives.follow({ ...identityOf('c1'), podUid: '' }, mono(0));
  revisions.push(lives.revision);
  if (followed !== undefined) lives.identify(followed.life, identityOf('c1'));
  revisions.push(lives.revision);
  lives.forget(mono(REMEMBER + 1), () => false);
  revisions.push(lives.revision);
  expect(new Set(revisions).size).toBe(revisions.length);
});
