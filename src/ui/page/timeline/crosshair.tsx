/*
 * The moment under the pointer. It keeps its own state, so that a moving pointer draws nothing else again.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { TimeScale } from '../drawing/timeScale.ts';
import { clock, moment } from '../text.ts';

interface Props {
  readonly scale: TimeScale;
  readonly left: number;
  readonly top: number;
  readonly height: number;
}

const MINUTES_MS = 600_000;

export function Crosshair({ scale, left, top, height }: Props) {
  const group = useRef<SVGGElement>(null);
  const [x, setX] = useState<number>();
  useEffect(() => {
    const svg = group.current?.ownerSVGElement;
    if (!svg) return undefined;
    const onMove = (event: PointerEvent) => setX(event.clientX - svg.getBoundingClientRect().left);
    const onLeave = () => setX(undefined);
    const ending = new AbortController();
    svg.addEventListener('pointermove', onMove, ending);
    svg.addEventListener('pointerleave', onLeave, ending);
    return () => ending.abort();
  }, []);
  const isShown = x !== undefined && x >= left;
  const ms = scale.moment(x ?? left);
  const isNear = scale.range.to - scale.range.from < MINUTES_MS;
  const label = isNear ? clock(ms) : moment(ms).slice(11);
  const right = scale.x(scale.range.to);
  const middle = Math.min(right - 34, Math.max(left + 34, x ?? 0));
  return (
    <g ref={group} class="crosshair">
      {isShown && (
        <>
          <path class="crosshair-line" d={`M${Math.round(x) + 0.5} ${top}V${height}`} />
          <rect class="crosshair-plate" x={middle - 42} y={top - 24} width="84" height="18" rx="3" />
          <text class="crosshair-time" x={middle} y={top - 11} text-anchor="middle">
            {label}
          </text>
        </>
      )}
    </g>
  );
}
