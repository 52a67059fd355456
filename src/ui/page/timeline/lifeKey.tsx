/*
 * The meaning of the bars of lives and their ghosts.
 */
import { hatch } from './gapRow.tsx';

export function LifeKey() {
  return (
    <>
      <li>
        <svg width="30" height="14" aria-hidden="true">
          <rect class="life life-created" x="0" y="5" width="6" height="4" />
          <rect class="life life-running" x="6" y="0" width="17" height="14" rx="3" />
          <rect class="life life-exited" x="23" y="5" width="7" height="4" />
        </svg>
        ran, proven; thin: created, or ended and kept
      </li>
      <li>
        <svg width="24" height="12" aria-hidden="true">
          <g class="ghost ghost-late">
            <rect class="ghost-bed" x="1" y="1" width="22" height="10" />
            <rect class="ghost-proven" x="1" y="1" width="14" height="10" />
            <path class="ghost-hatch" d={hatch(1, 1, 14, 10)} />
            <path class="ghost-edge" d="M23 1H1V11H23M23 1v10" />
          </g>
        </svg>
        ended, but still shown running; unfilled: possibly
      </li>
    </>
  );
}
