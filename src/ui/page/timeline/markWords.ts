/*
 * The titles of a container's marks.
 */
import { duration, MATTERS } from '../../../analysis/words.ts';
import type { TimelineFinding } from '../../api.ts';
import { clock, moment, msOf, visible } from '../text.ts';
import type { EventMark, WindowMark } from './markedContainers.ts';

export function holeInWords(finding: TimelineFinding): string {
  const { kind, eventType, from, to, resolvedAt, cause } = finding;
  const between =
    from === null || to === null
      ? ''
      : ` between ${moment(msOf(from))} and ${clock(msOf(to)).slice(0, 8)} UTC`;
  if (kind === 'kubelet_late')
    return `${visible(eventType ?? 'change')}${between}, shown late by the kubelet's own status, ${resolvedAt === null ? 'and not resolved' : `and resolved at ${moment(msOf(resolvedAt))} UTC`}`;
  const window = between === '' ? '' : `, due${between}`;
  const later =
    resolvedAt === null ? 'and not received' : `and resolved only at ${moment(msOf(resolvedAt))} UTC`;
  return `${resolvedAt === null ? 'Missed' : 'Overdue'} ${visible(eventType ?? 'event')}${window}, ${later}${cause === null ? '' : ` (${visible(cause)})`}`;
}

/** A finding of another kind, and whether it matters. */
export function noteInWords({ kind, eventType, at, cause }: TimelineFinding): string {
  const what = [kind, eventType].filter(Boolean).join(' ');
  const why = [cause, MATTERS[kind]].filter(Boolean).join('; ');
  return `${visible(what)} at ${moment(msOf(at))} UTC${why === '' ? '' : ` (${visible(why)})`}`;
}

export const eventInWords = ({ at, type, replayed, exit }: EventMark): string =>
  `${visible(type)}${exit === null ? '' : ` (${exit})`} received at ${clock(at)} UTC${replayed ? ', older than the subscription' : ''}`;

export const windowInWords = ({ from, to, oldState, newState }: WindowMark): string =>
  `Lists: ${visible(oldState)} at ${clock(from)}, ${visible(newState)} at ${clock(to)} UTC (${duration(to - from)} between them)`;
