/*
 * Entries of a timeline in words that need no other page.
 */
import { CONSEQUENCES_IN_SHORT } from '../../protocol/fallback.ts';
import { duration, NOT_OBSERVED } from '../words.ts';
import type { TimelineEntry } from './entry.ts';

export function sentenceOf(entry: TimelineEntry): string {
  const { kind, what, detail, container_id } = entry;
  switch (kind) {
    case 'event':
      return `${what} received: ${subjectOf(entry)}${bracketed(detail)}`;
    case 'change':
      return `a list showed ${what}: ${subjectOf(entry)}${bracketed(detail)}`;
    case 'status':
      return `the status of ${subjectOf(entry)} ${what === 'slow' ? 'was slow' : what}${bracketed(detail)}`;
    case 'hang':
      return `${what} hung ${lengthOf(entry)}${container_id === null ? '' : `: ${subjectOf(entry)}`}${bracketed(detail)}`;
    case 'finding':
      return `${isResolvedMiss(entry) ? what.replace('missed', 'overdue') : what}${findingNoteOf(entry)}: ${subjectOf(entry)}${bracketed(detail)}`;
    case 'gap':
      return `${NOT_OBSERVED[what] ?? `gap ${what}`} ${lengthOf(entry)}${bracketed(causeOf(detail))}`;
    case 'mode':
      return `the kubelet's PLEG: ${what}${bracketed(consequenceIn(detail))}`;
    case 'condition':
      return `the Node reports ${what}${bracketed(detail)}`;
    case 'session':
      return what === 'opened'
        ? `subscribed to the runtime's events ${lengthOf(entry)}${bracketed(detail)}`
        : `the subscription ended${bracketed(detail)}`;
    case 'agent':
      return `the agent ${what}${bracketed(detail)}`;
    default:
      return `${what} ${subjectOf(entry)}${bracketed(detail)}`;
  }
}

/** The meaning of a kind of finding beyond its name. */
const FINDINGS: Readonly<Record<string, string>> = {
  unobservable: ' (it cannot be known whether it was sent)',
  unannounced: ' (this runtime never announces it)',
  short_life: ' (too short for any list)',
  silent_stream: ' (containers changed, and no event arrived)',
  duplicate_container: ' (two containers of one name at once)',
  regression: ' (running again after it had exited)',
  kubelet_late: " (the kubelet's own status did not show it)",
};

function findingNoteOf(entry: TimelineEntry): string {
  // The detail begins with the cause.
  if (entry.detail?.startsWith('failed_start') === true)
    return ' (this runtime does not announce a start that failed)';
  return FINDINGS[findingKindOf(entry)] ?? '';
}

/** The detail says when it was resolved. */
const isResolvedMiss = (entry: TimelineEntry): boolean =>
  findingKindOf(entry) === 'missed' && /(?:^|, )resolved \d/.test(entry.detail ?? '');

const findingKindOf = ({ what }: TimelineEntry): string => what.split(' ')[0] ?? '';

/** Several entries of one signature, after a number. */
export function pluralOf(entry: TimelineEntry): string {
  const { kind, what } = entry;
  if (kind === 'finding') return isRepeatedSoon(entry) ? findingKindOf(entry) : what;
  if (kind === 'gap') return `gaps (${what})`;
  if (kind === 'session') return what === 'opened' ? 'subscriptions' : 'ends of a subscription';
  return `times ${what}`;
}

/** Each missed event matters by itself; other findings matter because they go on. */
export const isRepeatedSoon = (entry: TimelineEntry): boolean =>
  entry.kind === 'finding' && findingKindOf(entry) !== 'missed';

/** Causes of gaps that do not explain themselves. A cause may be any text. */
const CAUSES: ReadonlyMap<string, string> = new Map([
  ['unproven', 'no event had arrived yet'],
  ['unsafe', 'with this runtime a subscriber could harm the node'],
  ['first_lists', 'what the first lists show may be older'],
]);

/** The cause of a gap, with what it means. */
function causeOf(detail: string | null): string | null {
  const meaning = CAUSES.get(detail ?? '');
  return meaning === undefined ? detail : `${detail}: ${meaning}`;
}

/** The detail of a change of the mode, with what it means instead of the word for it. */
const consequenceIn = (detail: string | null): string | null =>
  detail
    ?.split(', ')
    .map((part) => SHORT.get(part) ?? part)
    .join(', ') ?? null;

const SHORT: ReadonlyMap<string, string> = new Map(Object.entries(CONSEQUENCES_IN_SHORT));

const bracketed = (detail: string | null): string => (detail === null ? '' : ` (${detail})`);

function subjectOf({ pod, container, container_id }: TimelineEntry): string {
  const named = [pod, container].filter((name) => name !== null).join(' ');
  return named === '' ? (container_id ?? 'the stream as a whole') : named;
}

function lengthOf({ at, until }: TimelineEntry): string {
  if (until === null) return 'until now';
  return `for ${duration(Date.parse(until) - Date.parse(at))}`;
}

/** The signature that makes an entry a repetition of another one: it, and the reason. The detail of an opened subscription is only a time. */
export function signatureOf(entry: TimelineEntry): string {
  const { kind, what, detail } = entry;
  if (kind === 'finding') return `${kind} ${isRepeatedSoon(entry) ? findingKindOf(entry) : what}`;
  if (kind === 'session' && what === 'opened') return `${kind} ${what}`;
  return `${kind} ${what} ${detail?.split(/[,:]/)[0] ?? ''}`;
}
