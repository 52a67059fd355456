/*
 * The mode of the kubelet and the Ready condition as periods.
 */
import type { TimelineAnswer } from '../../api.ts';
import { msOf } from '../text.ts';
import { type Band, bandsOf } from './bands.ts';

export function modeBands({ modes }: TimelineAnswer, until: number): Band[] {
  const changes = modes.rows.map(({ at, toMode, reason }) => ({
    at: msOf(at),
    state: toMode,
    why: reason ?? '',
  }));
  return bandsOf(changes, until);
}

export function readyBands({ conditions }: TimelineAnswer, until: number): Band[] {
  const changes = conditions.rows.map(({ at, status, reason, causes, message }) => ({
    at: msOf(at),
    state: READY[status] ?? 'Ready unknown',
    why: [reason, message ?? causes.join(', ')].filter(Boolean).join(': '),
  }));
  return bandsOf(changes, until);
}

const READY: Readonly<Record<string, string>> = { True: 'Ready', False: 'NotReady' };
