/*
 * The meaning of the figures.
 */
import { EVENT_TYPES, figurePath } from '../drawing/figures.ts';
import { notePath } from './containerRow.tsx';
import { LifeKey } from './lifeKey.tsx';

export function TimelineKey() {
  return (
    <ul class="key" aria-label="Key">
      <LifeKey />
      {EVENT_TYPES.map((type) => (
        <li key={type}>
          <svg width="14" height="14" aria-hidden="true">
            <path class="event" d={figurePath(type, 7, 7, 5)} />
          </svg>
          {type}
        </li>
      ))}
      <li>
        <svg width="24" height="18" aria-hidden="true">
          <rect class="hole" x="1" y="1" width="22" height="16" rx="3" />
          <path class="hole-figure" d={figurePath('STOPPED', 12, 9, 5)} />
        </svg>
        missed: due here, not received
      </li>
      <li>
        <svg width="12" height="12" aria-hidden="true">
          <path class="note" d={notePath(6, 11)} />
        </svg>
        another finding: late, out_of_order, short_life; its title says whether it matters
      </li>
      <li>
        <svg width="20" height="12" aria-hidden="true">
          <rect class="tone-none" x="1" y="1" width="18" height="10" rx="2" />
        </svg>
        not observed
      </li>
      <li>
        <svg width="20" height="16" aria-hidden="true">
          <rect class="window" x="1" y="1" width="18" height="14" />
          <path class="window-ends" d="M3 1h-2v14h2M17 1h2v14h-2" />
        </svg>
        between two lists
      </li>
      {['agent', 'kubelet'].map((whose) => (
        <li key={whose}>
          <svg width="20" height="10" aria-hidden="true">
            <path class={`line-${whose}`} d="M0 5h20" />
          </svg>
          {whose}’s p99
        </li>
      ))}
    </ul>
  );
}
