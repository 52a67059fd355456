/*
 * The mode of the kubelet and the Ready condition as periods: a state lasts from its change until the next one, the last one until now. A mode lasts
 * no longer than anything is known of the agent that reported it.
 */
import { whyOfMode } from '../../../analysis/words.ts';
import type { TimelineAnswer } from '../../api.ts';
import { type Tone, toneOfMode } from '../colours.ts';
import { msOf } from '../text.ts';

interface State {
  readonly state: string;
  readonly tone: Tone;
}

interface StateChange extends State {
  readonly at: number;
  readonly why: string;
}

export interface Band extends Omit<StateChange, 'at'> {
  readonly from: number;
  readonly to: number;
}

export function modeBands({ modes, lastSeen }: TimelineAnswer, until: number): Band[] {
  const isKnown = lastSeen !== null && modes.rows.at(-1)?.toMode !== 'Unknown';
  return bandsOf(
    modes.rows.map(({ at, toMode: mode, reason, kubeletVersion }) => ({
      at: msOf(at),
      state: mode,
      tone: toneOfMode(mode),
      why: whyOfMode({ mode, reason, kubeletVersion }),
    })),
    isKnown ? Math.min(until, msOf(lastSeen)) : until,
  );
}

export const readyBands = ({ conditions }: TimelineAnswer, until: number): Band[] =>
  bandsOf(
    conditions.rows.map(({ at, status, reason, causes, message }) => ({
      at: msOf(at),
      ...(READY[status] ?? { state: 'Ready unknown', tone: 'none' }),
      why: [reason, message ?? causes.join(', ')].filter(Boolean).join(': '),
    })),
    until,
  );

const READY: Readonly<Record<string, State>> = {
  True: { state: 'Ready', tone: 'good' },
  False: { state: 'NotReady', tone: 'bad' },
};

/** `changes` in the order of their time. A state that does not change is one period. */
function bandsOf(changes: readonly StateChange[], until: number): Band[] {
  const bands: Band[] = [];
  for (const [n, { at, ...shown }] of changes.entries()) {
    const to = Math.max(at, changes[n + 1]?.at ?? until);
    const last = bands.at(-1);
    if (last?.state === shown.state && last.why === shown.why) bands[bands.length - 1] = { ...last, to };
    else bands.push({ from: at, to, ...shown });
  }
  return bands;
}
