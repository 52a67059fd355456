/*
 * What a drawing is drawn on, and what its SVG file has.
 */
import type { ComponentChildren } from 'preact';

interface Props {
  readonly width: number;
  readonly height: number;
  /** What it shows, for who does not see it. */
  readonly label: string;
  readonly children: ComponentChildren;
}

export function Drawing({ width, height, label, children }: Props) {
  return (
    <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {children}
    </svg>
  );
}
