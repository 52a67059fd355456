/*
 * The name of a row, cut where there is no room; the whole of it is in its title.
 */
import type { RowPlace } from './rowLayout.ts';

interface Props {
  readonly row: RowPlace;
  readonly name: string;
  readonly kind?: 'row' | 'container';
}

const CHARACTERS = 26;

export function RowName({ row, name, kind = 'row' }: Props) {
  const shown = name.length > CHARACTERS ? `${name.slice(0, 13)}…${name.slice(-(CHARACTERS - 14))}` : name;
  return (
    <text class={`${kind}-name`} x="0" y={row.label}>
      {shown}
      {shown !== name && <title>{name}</title>}
    </text>
  );
}
