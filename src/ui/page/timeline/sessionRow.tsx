/*
 * The agent's subscriptions to the runtime's events: light until the first event came, which is when one is known to work.
 */
import type { Session } from '../../api.ts';
import { count, moment, msOf, visible } from '../text.ts';
import type { RowProps } from './rowLayout.ts';
import { RowName } from './rowName.tsx';

interface Props extends RowProps {
  readonly sessions: readonly Session[];
  readonly until: number;
}

export function SessionRow({ sessions, scale, row, until }: Props) {
  const middle = row.top + row.height / 2;
  return (
    <g>
      <RowName row={row} name="Event stream" />
      {sessions.map((session) => {
        const { openedAt, armedAt, closedAt } = session;
        const end = closedAt === null ? until : msOf(closedAt);
        const span = scale.span(msOf(openedAt), end);
        if (span === undefined) return null;
        const armed = armedAt === null ? undefined : scale.span(msOf(armedAt), end);
        const right = span.x + span.width;
        const isEndShown = closedAt !== null && end <= scale.range.to;
        return (
          <g key={openedAt}>
            <title>{inWords(session)}</title>
            <rect class="session tone-good" x={span.x} y={middle - 6} width={span.width} height="12" rx="3" />
            {armed !== undefined && (
              <rect class="tone-good" x={armed.x} y={middle - 6} width={armed.width} height="12" rx="3" />
            )}
            {isEndShown && <path class="session-end" d={`M${right} ${row.top}v${row.height}`} />}
          </g>
        );
      })}
      {sessions.length === 0 && (
        <text class="row-none" x={scale.x(scale.range.from) + 2} y={middle + 4}>
          no subscription
        </text>
      )}
    </g>
  );
}

function inWords({ openedAt, armedAt, closedAt, code, message, events }: Session): string {
  const time = (at: string) => `${moment(msOf(at))} UTC`;
  const parts = [
    `Subscribed at ${time(openedAt)}`,
    armedAt === null ? 'no event came' : `first event at ${time(armedAt)}`,
    `${count(events)} events`,
    closedAt === null
      ? 'open'
      : `ended at ${time(closedAt)}: ${visible([code, message].filter(Boolean).join(' '))}`,
  ];
  return parts.join(', ');
}
