/*
 * How many pods the drawing leaves out, and how to see them.
 */
import { counted } from '../text.ts';
import type { Room, ShownPods } from './podLives.ts';

export const ROOM: Room = { mattering: 12, others: 0 };
const MORE = 20;

interface Props {
  readonly pods: ShownPods;
  readonly room: Room;
  readonly onRoom: (room: Room) => void;
}

export function PodsNotShown({ pods: { leftOut }, room, onRoom }: Props) {
  const { mattering, others } = leftOut;
  const next = (n: number) => `Show ${n > MORE ? `${MORE} of them` : n === 1 ? 'it' : 'them'}`;
  return (
    <>
      {mattering > 0 && (
        <p>
          {counted(mattering, 'more pod')} with a missed or late event or status.{' '}
          <button
            type="button"
            class="small"
            onClick={() => onRoom({ ...room, mattering: room.mattering + MORE })}
          >
            {next(mattering)}
          </button>
        </p>
      )}
      {others > 0 && (
        <p class="soft">
          {counted(others, 'other pod')} changed; nothing missed or late is known of{' '}
          {others === 1 ? 'it' : 'them'}.{' '}
          <button type="button" class="small" onClick={() => onRoom({ ...room, others: room.others + MORE })}>
            {next(others)}
          </button>
        </p>
      )}
    </>
  );
}
