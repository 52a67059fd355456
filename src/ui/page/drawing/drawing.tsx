/*
 * The ground of a drawing, and the parts of its SVG file.
 */
import type { ComponentChildren } from 'preact';

interface Props {
  readonly width: number;
  readonly height: number;
  /** A description for readers who do not see it. */
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
