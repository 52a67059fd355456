/*
 * The agent's subscriptions to the runtime's events: light until the first event came, which is when one is known to work, and wherever a gap
 * says that nothing was observed. Without an end, a subscription is drawn until the last that is known of its agent.
 */
import type { Session, TimelineAnswer } from '../../api.ts';
import type { Range } from '../drawing/timeScale.ts';
import { count, moment, msOf, visible } from '../text.ts';
import { CutMark } from './cutMark.tsx';
import type { RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';

interface Props extends RowProps {
  readonly sessions: TimelineAnswer['sessions'];
  /** When the stream was watched. */
  readonly watched: readonly Range[];
  /** The last that is known of the agent. */
  readonly until: number;
}

export function SessionRow({ sessions, watched, scale, row, until }: Props) {
  const middle = row.top + row.height / 2;
  /** As wide as it is: however short the breaks between them, what was not watched is not painted over. */
  const bars = (periods: readonly Range[]) =>
    periods
      .map(({ from, to }) => {
        const [left, right] = [Math.max(from, scale.range.from), Math.min(to, scale.range.to)].map((at) =>
          scale.x(at),
        );
        return `M${left} ${middle - 6}H${right}v12H${left}z`;
      })
      .join('');
  return (
    <g>
      <RowName row={row} name="Event stream" />
      {sessions.rows.map((session) => {
        const { openedAt, armedAt, closedAt } = session;
        const opened = msOf(openedAt);
        const end = closedAt === null ? until : msOf(closedAt);
        if (end < scale.range.from || opened > Math.min(end, scale.range.to)) return null;
        const armed = armedAt === null ? end : msOf(armedAt);
        const seen = watched
          .filter(
            ({ from, to }) => from < end && to > armed && from < scale.range.to && to > scale.range.from,
          )
          .map(({ from, to }) => ({ from: Math.max(from, armed), to: Math.min(to, end) }));
        const isEndShown = closedAt !== null && end <= scale.range.to;
        return (
          <g key={openedAt}>
            <title>{inWords(session, until)}</title>
            <path class="session tone-good" d={bars([{ from: opened, to: end }])} />
            <path class="watched tone-good" d={bars(seen)} />
            {isEndShown && <path class="session-end" d={`M${scale.x(end)} ${row.top}v${row.height}`} />}
          </g>
        );
      })}
      {sessions.rows.length === 0 && (
        <text class="row-none" x={scale.x(scale.range.from) + 2} y={middle + 4}>
          no subscription
        </text>
      )}
      <CutMark cut={sessions.cut} scale={scale} row={row} />
    </g>
  );
}

function inWords({ openedAt, armedAt, closedAt, code, message, events }: Session, until: number): string {
  const time = (at: string) => `${moment(msOf(at))} UTC`;
  const parts = [
    `Subscribed at ${time(openedAt)}`,
    armedAt === null ? 'no event came' : `first event at ${time(armedAt)}`,
    `${count(events)} events`,
    closedAt === null
      ? `open when its agent was last heard of, at ${moment(until)} UTC`
      : `ended at ${time(closedAt)}: ${visible([code, message].filter(Boolean).join(' '))}`,
  ];
  return parts.join(', ');
}
