/*
 * The ghost of a container: the time after its end in which somebody still showed it running, or after its start not yet. Two witnesses say so, the kubelet
 * by its own status and the API server. Each witness has a time until which it is *proven* to have shown the old state, and one by which it showed
 * the new one. Unobserved times are shown as such.
 */
import { duration } from '../../../analysis/words.ts';
import type { ChangeLag, TimelineAnswer, TimelineFinding } from '../../api.ts';
import { msOf } from '../text.ts';

export const WITNESSES = ['kubelet', 'API server'] as const;
export type Witness = (typeof WITNESSES)[number];

export interface Ghost {
  /** STARTED or STOPPED. */
  readonly type: string;
  /** When the change had happened at the latest: a ghost begins there. */
  readonly from: number;
  readonly findingId: string | null;
  readonly trails: Readonly<Partial<Record<Witness, Trail>>>;
}

/** The states of a change that a witness showed. */
export interface Trail {
  /** It showed the old state for at least this long after the change, in milliseconds; null where that is not known. */
  readonly atLeast: number | null;
  /** And the new one after at most this long. */
  readonly atMost: number | null;
  /** Why no more is known, in words; null where all is known. */
  readonly why: string | null;
}

/** No status is late before that: --kubelet-late-after cannot be less. */
const HARMLESS_MS = 2_000;
/** As --kubelet-late-after by default. */
const LATE_MS = 10_000;

/** The ghosts of each container, in order. Two findings about one change are one ghost. */
export function ghostsOf({
  lags,
  containers,
}: Pick<TimelineAnswer, 'lags' | 'containers'>): ReadonlyMap<number, readonly Ghost[]> {
  const ghosts = new Map<number, Ghost[]>();
  for (const lag of lags.rows) {
    if (lag.container === null || containers[lag.container] === undefined) continue;
    const ghost = ghostOf(lag);
    const all = ghosts.get(lag.container) ?? [];
    const same = all.findIndex(({ type }) => type === ghost.type);
    if (same === -1) all.push(ghost);
    else all[same] = merged(all[same] ?? ghost, ghost);
    ghosts.set(lag.container, all);
  }
  return ghosts;
}

/** `kubelet: looked alive for 28 to 33 s`, of each witness that somebody asked; empty where none was. */
export function ghostInWords({ lags }: TimelineAnswer, { container, eventType }: TimelineFinding): string {
  const own = lags.rows.filter((lag) => lag.container === container && lag.eventType === eventType);
  const [first, ...more] = own.map(ghostOf);
  if (first === undefined) return '';
  const { type, trails } = more.reduce(merged, first);
  return WITNESSES.flatMap((witness) => {
    const trail = trails[witness];
    return trail === undefined || isUnobserved(trail) ? [] : trailInWords(witness, type, trail).text;
  }).join('; ');
}

function ghostOf(lag: ChangeLag): Ghost {
  const { eventType: type, findingId, kind, at } = lag;
  return {
    ...{ type, from: msOf(at) },
    // A finding that accuses somebody is the one to open.
    findingId: kind === 'unobservable' ? null : findingId,
    trails: { ...kubeletTrail(lag), ...apiTrail(lag) },
  };
}

function kubeletTrail(lag: ChangeLag): Ghost['trails'] {
  const { kubeletKnew, kubeletWhy, kubeletAtLeastMs: atLeast, kubeletAtMostMs: atMost } = lag;
  if (kubeletKnew === null) return {};
  const why = kubeletWhy ?? (atMost === null ? 'it was not asked again' : null);
  return { kubelet: { atLeast, atMost, why } };
}

function apiTrail({ lagMinMs: atLeast, lagMaxMs: atMost, lagReason, isRead }: ChangeLag): Ghost['trails'] {
  if (atLeast === null && atMost === null && lagReason === null && !isRead) return {};
  const why =
    lagReason ??
    (isRead ? 'its pod is still being read' : atMost === null ? 'nothing says since when' : null);
  return { 'API server': { atLeast, atMost, why } };
}

function merged(a: Ghost, b: Ghost): Ghost {
  const trails = Object.fromEntries(
    WITNESSES.flatMap((witness) => {
      const both = [a.trails[witness], b.trails[witness]].filter((trail) => trail !== undefined);
      return both.length === 0 ? [] : [[witness, both.reduce(narrower)]];
    }),
  );
  return { type: a.type, from: Math.min(a.from, b.from), findingId: a.findingId ?? b.findingId, trails };
}

/** Both hold. */
function narrower(a: Trail, b: Trail): Trail {
  const known = (bounds: readonly (number | null)[]) => bounds.filter((bound) => bound !== null);
  const [least, most] = [known([a.atLeast, b.atLeast]), known([a.atMost, b.atMost])];
  const atLeast = least.length === 0 ? null : Math.max(...least);
  return {
    atLeast,
    atMost: most.length === 0 ? null : Math.max(atLeast ?? 0, Math.min(...most)),
    why: most.length > 0 ? null : (a.why ?? b.why),
  };
}

/** Whether nobody observed it. */
export const isUnobserved = ({ atLeast, atMost }: Trail): boolean => atLeast === null && atMost === null;

/** Whether the witness was so fast that nothing was late. */
export const isHarmless = ({ atMost }: Trail): boolean => atMost !== null && atMost <= HARMLESS_MS;

/** Whether a witness is proven to have shown the old state for so long that somebody should look. */
export const isLong = ({ trails }: Ghost): boolean =>
  WITNESSES.some((witness) => (trails[witness]?.atLeast ?? 0) >= LATE_MS);

/** Until when a ghost is drawn: the last that is known of it. */
export const endOf = ({ from, trails }: Ghost): number =>
  from + Math.max(0, ...WITNESSES.map((witness) => trails[witness]?.atMost ?? trails[witness]?.atLeast ?? 0));

/** `API server: looked alive for 34 to 36 s`; in short: `API: 34 to 36 s`. */
export function trailInWords(witness: Witness, type: string, trail: Trail): { text: string; short: string } {
  const who = SHORT[witness];
  if (isUnobserved(trail)) return { text: `${witness}: not observed`, short: `${who}: not observed` };
  const short = `${who}: ${lengthInWords(trail).replace('at least', '≥').replace('at most', '≤')}`;
  if (isHarmless(trail))
    return { text: `${witness}: showed it within ${duration(trail.atMost ?? 0)}`, short };
  const looked = type === 'STARTED' ? 'not shown running for' : 'looked alive for';
  return { text: `${witness}: ${looked} ${lengthInWords(trail)}`, short };
}

export const SHORT: Readonly<Record<Witness, string>> = { kubelet: 'kubelet', 'API server': 'API' };

/** `about 34 s`, `12 to 14 s`, `at least 34 s`, `at most 14 s`. */
export function lengthInWords({ atLeast, atMost }: Trail): string {
  if (atMost === null) return `at least ${rounded(atLeast ?? 0, Math.floor)}`;
  if (atLeast === null || atLeast === 0) return `at most ${rounded(atMost, Math.ceil)}`;
  if (atMost - atLeast <= atMost / 10) return `about ${rounded(atMost, Math.round)}`;
  const [from, to] = [rounded(atLeast, Math.floor).split(' '), rounded(atMost, Math.ceil).split(' ')];
  return `${(from[1] === to[1] ? from.slice(0, 1) : from).join(' ')} to ${to.join(' ')}`;
}

/** In one unit: what is drawn says no more. The title has it exactly. */
function rounded(ms: number, round: (n: number) => number): string {
  if (ms < 10_000) return duration(ms);
  const [unit, name] = UNITS.find(([each]) => ms >= 2 * each) ?? [1000, 's'];
  return `${round(ms / unit)} ${name}`;
}

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
];

/** A sentence: what the witness showed, how that is known, and what nobody knows. */
export function trailSentence(witness: Witness, type: string, trail: Trail): string {
  const who = witness === 'kubelet' ? "kubelet's own status" : 'API server';
  const [old, next] = type === 'STARTED' ? ['not running', 'the start'] : ['running', 'the stop'];
  const { atLeast, atMost, why } = trail;
  const because = why === null ? '' : `: ${why}`;
  if (isUnobserved(trail)) return `Whether the ${who} showed ${next} in time was not observed${because}.`;
  const least =
    atLeast === null || atLeast === 0
      ? ''
      : `still showed it ${old} at least ${duration(atLeast)} after ${next}`;
  const most =
    atMost === null
      ? `when it showed ${next} is not known${because}`
      : `showed ${next} at most ${duration(atMost)} after it`;
  return `The ${who} ${[least, most].filter(Boolean).join(', and ')}.`;
}
